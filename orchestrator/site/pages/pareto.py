"""Trade-offs: the share that passed against cost, tokens and time, with what no other pair clearly beats.

A page for each axis: all of them on one would be half a megabyte at hundreds of pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from orchestrator.analysis.standing import Span, beaten_by
from orchestrator.site import links
from orchestrator.site.axes import AXES, PASS, Axis
from orchestrator.site.boards import Board, Row, boards
from orchestrator.site.charts import Point, Scatter, scatter
from orchestrator.site.output import Page
from orchestrator.site.pages.leaderboard import interval
from orchestrator.site.source import Source

AGAINST = ("usd", "tokens", "wall")


@dataclass(frozen=True)
class TradeOff:
    """One chart: `rows` have both numbers, best pass first; `missing` lack one, with the reason.

    `front` names those that passed anything and that no other beats as measured; `beaten` gives for each row
    those that beat it clearly, which is by both intervals.
    """

    axis: Axis
    chart: Scatter | None
    rows: list[Row]
    missing: list[tuple[Row, str]]
    front: list[str]
    beaten: dict[str, list[str]]

    @property
    def by_name(self) -> dict[str, Row]:
        return {row.line.name: row for row in self.rows}


def pages(source: Source) -> Iterator[Page]:
    for key in (None, *AGAINST):
        path = links.PARETO if key is None else links.pareto_page(key)
        yield Page(path, "pareto.html", partial(_context, source, key), (source.everything,))


def _context(source: Source, key: str | None = None) -> dict[str, Any]:
    """What is passed against one axis; of none given, the first that a pair has both numbers of."""
    results = [board for board in boards(source) if board.kind == "result"]
    chosen = AXES[key] if key is not None else _first(results)
    return {
        "boards": [(board, _trade_off(board, chosen)) for board in results],
        "axes": [AXES[name] for name in AGAINST],
        "chosen": chosen,
        "interval": interval,
        "passing": PASS,
    }


def _first(results: Sequence[Board]) -> Axis:
    """An axis that nobody has a number of is not what a reader meets first."""
    lines = [row.line for board in results for row in board.rows if PASS.measure(row.line).value is not None]
    for key in AGAINST:
        if any(AXES[key].measure(line).value is not None for line in lines):
            return AXES[key]
    return AXES[AGAINST[0]]


def _trade_off(board: Board, axis: Axis) -> TradeOff:
    rows: list[Row] = []
    missing: list[tuple[Row, str]] = []
    for row in board.by_pass:
        passed, other = PASS.measure(row.line), axis.measure(row.line)
        if passed.value is None or other.value is None:
            missing.append((row, passed.reason or other.reason or "not measured"))
        else:
            rows.append(row)
    # Who passes nothing is the quickest of all where it gives up at once: no trade-off, whatever it spent.
    solving = [row for row in rows if _value(row, PASS) > 0]
    front = front_of({row.line.name: (_value(row, axis), _value(row, PASS)) for row in solving})
    spans = [_spans(rows, each) for each in (PASS, axis)]
    chart = scatter([_point(row, axis) for row in rows], front, partial(_tick, axis)) if rows else None
    return TradeOff(axis, chart, rows, missing, front, beaten_by(spans, (PASS.better, axis.better)))


def front_of(points: dict[str, tuple[float, float]]) -> list[str]:
    """The names that no other has less x and no less y of, or more y and no more x, by x."""
    found: list[str] = []
    best = (float("inf"), float("-inf"))
    for name, (x, y) in sorted(points.items(), key=lambda item: (item[1][0], -item[1][1], item[0])):
        # Names with the same two numbers stand or fall together.
        if y > best[1] or (x, y) == best:
            found.append(name)
            best = (x, y)
    return found


def _value(row: Row, axis: Axis) -> float:
    value = axis.measure(row.line).value
    assert value is not None
    return value


def _spans(rows: list[Row], axis: Axis) -> dict[str, Span]:
    return {row.line.name: span for row in rows if (span := axis.span(row.line)) is not None}


def _point(row: Row, axis: Axis) -> Point:
    x, y = axis.measure(row.line), PASS.measure(row.line)
    return Point(row.line.name, _value(row, axis), _value(row, PASS), (x.low, x.high), (y.low, y.high))


def _tick(axis: Axis, value: float) -> str:
    """A round value on the axis, without the decimals that a measured one has."""
    if axis.key == "usd":
        return f"${value:g}"
    return axis.shown(value) if axis.key == "tokens" else f"{value:g} s"
