"""CLI × model, one number in each field."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from orchestrator.analysis.groups import contestant_of
from orchestrator.site import links
from orchestrator.site.axes import AXES, PASS
from orchestrator.site.boards import Board, Row, boards
from orchestrator.site.output import Page
from orchestrator.site.pages.leaderboard import data_path, interval
from orchestrator.site.source import Source
from orchestrator.store.names import CellKey

HEATS = 6
"""Steps of colour: `heat-0` to `heat-5`."""


@dataclass(frozen=True)
class Grid:
    """A board as a grid: rows are contestants, columns models; None where the two never met."""

    board: Board
    clis: list[str]
    models: list[str]
    fields: dict[tuple[str, str], Row]


def pages(source: Source) -> Iterator[Page]:
    yield Page(links.MATRIX, "matrix.html", lambda: _context(source), (source.everything,))


def _context(source: Source) -> dict[str, Any]:
    return {
        "grids": [_grid(board) for board in boards(source)],
        "axes": list(AXES.values()),
        "chosen": PASS,
        "data": data_path(None),
        "why": _reasons(source),
        "heat": heat,
        "interval": interval,
    }


def heat(share: float) -> int:
    """The step of colour of a share from 0 to 1; only what is wholly 1 has the last."""
    return min(HEATS - 1, int(share * (HEATS - 1)))


def _grid(board: Board) -> Grid:
    fields = {(row.contestant, row.model or ""): row for row in board.rows}
    return Grid(
        board=board,
        clis=sorted({cli for cli, _ in fields}),
        models=sorted({model for _, model in fields}),
        fields=fields,
    )


def _reasons(source: Source) -> dict[tuple[str, str], str]:
    """Why pairs that are in some plan have no number: the first reason that a plan gives, or not finished."""
    found: dict[tuple[str, str], str] = {}
    for cell in source.skipped:
        found.setdefault(_pair(cell.cell_id), cell.reason)
    for record in source.sweeps.values():
        for cell_id in record.order:
            found.setdefault(_pair(cell_id), "planned, and not finished")
    return found


def _pair(cell_id: str) -> tuple[str, str]:
    _, key = CellKey.of_id(cell_id)
    return contestant_of(key.cli, key.stack, key.condition), key.model
