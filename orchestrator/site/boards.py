"""Pairs as boards: those that may stand beside each other, with their places by every axis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.analysis.cells import ABOUT, KINDS, Kind
from orchestrator.analysis.groups import contestant_of
from orchestrator.analysis.standing import Place, Span, places
from orchestrator.analysis.summary import By, Line, Table
from orchestrator.site.axes import AXES, PASS, Axis, why_unranked
from orchestrator.site.source import Source
from orchestrator.store.names import NO_STACK
from scorers import METHODOLOGY_VERSION


@dataclass(frozen=True)
class Row:
    """One line of a board. `at` is its number among all lines of the site's pairs, by name, from 0."""

    at: int
    line: Line
    contestant: str
    model: str | None
    places: dict[str, Place]
    unranked: dict[str, str]

    def order(self, axis: Axis) -> tuple[bool, float, str]:
        """Sorts the best first, what was not measured last."""
        value = axis.measure(self.line).value
        if value is None:
            return True, 0.0, self.line.name
        return False, -value if axis.better == "higher" else value, self.line.name


@dataclass(frozen=True)
class Board:
    """Rows of one kind and one methodology, by name. `units` are those of the row that has most."""

    kind: Kind
    methodology: str
    units: int
    shared_units: int | None
    rows: tuple[Row, ...]

    @property
    def id(self) -> str:
        """Of its table in a page."""
        return f"{self.kind}-{self.methodology}".replace(".", "-")

    @property
    def about(self) -> str:
        return ABOUT[self.kind]

    @property
    def why_no_places(self) -> str | None:
        """The commonest reason, where no row has a place by what passed."""
        if any(PASS.key in row.places for row in self.rows):
            return None
        reasons = Counter(row.unranked[PASS.key] for row in self.rows)
        return min(reasons, key=lambda why: (-reasons[why], why))

    @property
    def by_pass(self) -> list[Row]:
        return sorted(self.rows, key=lambda row: row.order(PASS))


def boards(source: Source, by: By = "pair", scope: str | None = None) -> list[Board]:
    """The boards of all results, or of one kind of work: results of models first, and of each kind those of
    this cab's methodology.
    """
    summary = source.summary(by, scope)
    numbers = {line.name: at for at, line in enumerate(sorted(source.summary(by).lines, key=_named))}
    ordered = sorted(summary.tables, key=lambda table: place_of(table.kind, table.methodology))
    return [_board(table, numbers) for table in ordered]


def place_of(kind: Kind, methodology: str) -> tuple[int, bool, str]:
    """Sorts boards: by kind, this cab's methodology version before others."""
    return KINDS.index(kind), methodology != METHODOLOGY_VERSION, methodology


def _named(line: Line) -> tuple[str, str, str]:
    return line.name, line.kind, line.methodology


def contestant(line: Line) -> str | None:
    """The CLI of a line with its stack and condition; None of one that is about no CLI."""
    key = line.key
    if "cli" not in key:
        return None
    return contestant_of(key["cli"], key.get("stack", NO_STACK), key.get("condition"))


def _board(table: Table, numbers: dict[str, int]) -> Board:
    units = max((line.units for line in table.lines), default=0)
    ranked = {axis.key: _places(table.lines, units, axis) for axis in AXES.values()}
    rows = [
        Row(
            at=numbers[line.name],
            line=line,
            contestant=contestant(line) or "",
            model=line.key.get("model"),
            places={key: of[line.name] for key, of in ranked.items() if line.name in of},
            unranked={
                axis.key: why
                for axis in AXES.values()
                if (why := why_unranked(line, units, axis)) is not None
            },
        )
        for line in table.lines
    ]
    return Board(table.kind, table.methodology, units, table.shared_units, tuple(rows))


def _places(lines: Sequence[Line], units: int, axis: Axis) -> dict[str, Place]:
    spans: dict[str, Span] = {}
    for line in lines:
        span = axis.span(line)
        if span is not None and why_unranked(line, units, axis) is None:
            spans[line.name] = span
    return places(spans, axis.better)
