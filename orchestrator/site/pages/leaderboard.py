"""The first page: all pairs of CLI and model with their places, and CLIs and models over what all share.

The page holds the pairs of all tasks by the share that passed. Another axis or a single kind of work is in
data files, which are loaded when they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from orchestrator.report.beside import beside
from orchestrator.site import links
from orchestrator.site.axes import AXES, PASS, Axis
from orchestrator.site.boards import Board, Row, boards
from orchestrator.site.output import File, Page, data_file
from orchestrator.site.source import Source

PLAIN = 4
"""Numbers without interval beside the one that was chosen."""


def pages(source: Source) -> Iterator[Page | File]:
    yield Page(links.INDEX, "leaderboard.html", lambda: _context(source), (source.everything,))
    for scope in (None, *source.scopes):
        yield data_file(data_path(scope), partial(_data, source, scope), (source.everything, str(scope)))


def data_path(scope: str | None) -> str:
    """The data file of the pairs, of all work or of one kind."""
    return "data/pairs.js" if scope is None else f"data/pairs/{scope}.js"


def plain_axes(chosen: Axis) -> list[Axis]:
    """Those shown without interval beside the chosen one."""
    return [axis for axis in AXES.values() if axis is not chosen][:PLAIN]


def _context(source: Source) -> dict[str, Any]:
    of_pairs = boards(source)
    return {
        "boards": of_pairs,
        "marginals": [
            (by, [board for board in boards(source, by) if board.kind == "result" and board.shared_units])
            for by in ("cli", "model")
        ],
        "axes": list(AXES.values()),
        "chosen": PASS,
        "plain": plain_axes(PASS),
        "data": data_path(None),
        "scopes": [(scope, data_path(scope)) for scope in source.scopes],
        "interval": interval,
        "runs": runs,
        "cells": len(source.frame),
        "sweeps": len(source.sweeps),
        "digest": source.digest,
    }


def _data(source: Source, scope: str | None) -> dict[str, Any]:
    """By board and row: each axis' value, bounds and text, its place, what was counted and found."""
    return {
        board.id: {
            "methodology": board.methodology,
            "units": board.units,
            "rows": {row.at: _row(row) for row in board.rows},
        }
        for board in boards(source, scope=scope)
    }


def _row(row: Row) -> dict[str, Any]:
    line = row.line
    return {
        "name": line.name,
        "cli": row.contestant,
        "model": row.model,
        "page": links.url(links.pair_page(row.contestant, row.model or "")),
        "n": [line.counted, line.counted + line.infra],
        "units": line.units,
        "runs": runs(row),
        "beside": [[it.text, it.why] if it.why else [it.text] for it in beside(line)],
        "claim": line.claim,
        "axes": {axis.key: _axis(row, axis) for axis in AXES.values()},
    }


def _axis(row: Row, axis: Axis) -> list[Any]:
    """[value, low, high, text, interval's text, place, why no place or value], and where lost cells leave
    more room than the interval, both ends of that.
    """
    it = axis.measure(row.line)
    place = row.places.get(axis.key)
    why = row.unranked.get(axis.key)
    if it.value is None:
        return [None, None, None, "–", "", "", it.reason]
    span = axis.span(row.line)
    wider = [] if span is None or (span.low, span.high) == (it.low, it.high) else [span.low, span.high]
    return [
        _rounded(it.value),
        _rounded(it.low),
        _rounded(it.high),
        axis.plain(it.value),
        interval(it.low, it.high, axis),
        "" if place is None else str(place),
        why,
        *map(_rounded, wider),
    ]


def interval(low: float | None, high: float | None, axis: Axis) -> str:
    """An interval in numbers, without units; empty where there is none."""
    if low is None and high is None:
        return ""
    return f"[{axis.plain(low)}, {axis.plain(high) if high is not None else '∞'}]"


def runs(row: Row) -> str:
    """How often each task was run: one number, or the fewest and the most."""
    fewest, most = row.line.runs
    return str(fewest) if fewest == most else f"{fewest}–{most}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")


def widest(board: Board, axis: Axis) -> tuple[float, float]:
    """The scale on which a board's intervals are drawn."""
    if axis.scale is not None:
        return axis.scale
    measures = [axis.measure(row.line) for row in board.rows]
    tops = [bound for it in measures for bound in (it.value, it.high) if bound is not None]
    return 0.0, max(tops, default=1.0) or 1.0
