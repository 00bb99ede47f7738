"""What the marks of a table mean: each that is shown, and no other."""

from __future__ import annotations

from collections.abc import Iterable

from rich.cells import cell_len
from rich.console import Console

from orchestrator.analysis.groups import UNRANKED
from orchestrator.report.text import LEGEND, NO_PASS, NOT_APPLICABLE, NOT_MEASURED, VOID

_BETWEEN = "cab-1 [low, high] where a term was not measured"
_CELLS = {
    NOT_MEASURED: LEGEND,
    NOT_APPLICABLE: f"{NOT_APPLICABLE} does not apply",
    NO_PASS: f"{NO_PASS}: nothing passed that tokens could be divided by",
    UNRANKED: f"{UNRANKED}: fewer than 3 runs of a task, or coverage below 95 %",
}
_COLUMNS = {"published-0.1": "published-0.1: only for comparison with published cells"}


def legend(shown: Iterable[tuple[str, Iterable[str]]]) -> list[str]:
    """The explanations of a table; `shown` holds the name and the cells of each column that is there."""
    columns = {name: list(cells) for name, cells in shown}
    cells = {cell for column in columns.values() for cell in column}
    notes = [note for mark, note in _CELLS.items() if mark in cells]
    if any(cell.endswith(f" {VOID}") for cell in columns.get("pass", ())):
        notes.append(f"{VOID}: counted as 0 for an integrity finding")
    if any(cell.startswith("[") for cell in columns.get("cab-1", ())):
        notes.append(_BETWEEN)
    return notes + [note for name, note in _COLUMNS.items() if name in columns]


def print_legend(shown: Iterable[tuple[str, Iterable[str]]], out: Console) -> None:
    """Print the explanations that a table needs, if any."""
    notes = legend(shown)
    line = "; ".join(notes)
    # One note a line rather than a note that is broken in two.
    for text in [line] if line and cell_len(line) <= out.width else notes:
        out.print(text)
