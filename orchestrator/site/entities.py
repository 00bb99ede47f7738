"""What pages of one CLI, model, pair, task, category or sweep share: parts that may stand beside each other,
rates of a part, and grids of what passed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.analysis.cells import ABOUT, KINDS, Cell, Kind
from orchestrator.analysis.summary import By, Line, Table, summarise
from orchestrator.analysis.units import Unit
from orchestrator.run.outcome import with_cause
from orchestrator.site import links
from orchestrator.site.source import Source

State = Literal["passed", "failed", "mixed", "void", "uncounted"]


@dataclass(frozen=True)
class Part:
    """Units of one kind and one methodology version: what may share a table."""

    kind: Kind
    methodology: str
    units: tuple[Unit, ...]

    @property
    def id(self) -> str:
        """For anchors in a page."""
        return f"{self.kind}-{links.slug(self.methodology).replace('.', '-')}"

    @property
    def about(self) -> str:
        return ABOUT[self.kind]

    @property
    def cells(self) -> int:
        return sum(len(unit.cells) for unit in self.units)

    @property
    def claim(self) -> str:
        """The level of the banner that stands over it."""
        if self.kind != "result":
            return "pipeline_only"
        claims = {cell.claim for unit in self.units for cell in unit.cells}
        return next((claim for claim in ("imported", "provisional") if claim in claims), "citable")

    def table(self, by: By) -> Table:
        """The rates of these units alone."""
        [table] = summarise(self.units, by).tables
        return table


@dataclass(frozen=True)
class Box:
    """One place of a grid: `text` is short, `title` says all of it, `page` is where it leads."""

    text: str
    title: str
    state: State
    page: str


@dataclass(frozen=True)
class Head:
    """A name at the edge of a grid, and its page."""

    name: str
    page: str


@dataclass(frozen=True)
class Grid:
    """Rows by name, each with a list of boxes for each column; an empty one was never run."""

    columns: tuple[Head, ...]
    rows: tuple[tuple[Head, tuple[tuple[Box, ...], ...]], ...]


def parts(units: Iterable[Unit]) -> list[Part]:
    """Units by kind and methodology, results of models first."""
    found: dict[tuple[Kind, str], list[Unit]] = defaultdict(list)
    for unit in units:
        found[unit.first.kind, unit.first.methodology].append(unit)
    order = sorted(found, key=lambda key: (KINDS.index(key[0]), key[1]))
    return [Part(kind, methodology, tuple(found[kind, methodology])) for kind, methodology in order]


def lines_of(source: Source, by: By, name: str) -> list[Line]:
    """All lines of one name: one for each kind and methodology that it has cells of."""
    return [line for line in source.summary(by).lines if line.name == name]


def inputs(units: Iterable[Unit]) -> tuple[str, ...]:
    """What decides a page about these units alone: their records, and the names that tasks of several contents
    have.
    """
    return tuple(f"{cell.record_sha256} {cell.task}" for unit in units for cell in unit.cells)


def grid(
    units: Sequence[Unit], row: Callable[[Unit], Head], column: Callable[[Unit], Head], source: Source
) -> Grid:
    """One box for each unit: how many of its counted runs passed."""
    boxes: dict[tuple[Head, Head], list[Box]] = defaultdict(list)
    for unit in units:
        boxes[row(unit), column(unit)].append(_box(unit, source))
    return _grid(boxes)


def grid_of_runs(units: Sequence[Unit], source: Source) -> Grid:
    """One box for each cell: tasks by sweeps."""
    boxes: dict[tuple[Head, Head], list[Box]] = defaultdict(list)
    for unit in units:
        for cell in sorted(unit.cells, key=lambda cell: (cell.sweep_id, cell.row.run)):
            boxes[task_head(unit), Head(cell.sweep_id, links.sweep_page(cell.sweep_id))].append(
                box_of_cell(cell, source)
            )
    return _grid(boxes)


def box_of_cell(cell: Cell, source: Source) -> Box:
    """What came of one cell, by the number of its run."""
    said = outcome_of(cell)
    page = links.cell_page(cell.sweep_id, source.key(cell.cell_id))
    return Box(f"{MARKS[state_of(cell)]} {cell.row.run}", f"run {cell.row.run}: {said}", state_of(cell), page)


MARKS: dict[State, str] = {"passed": "✓", "failed": "✗", "mixed": "±", "void": "⊘", "uncounted": "–"}
"""Beside the colour: no state is told by colour alone."""


def state_of(cell: Cell) -> State:
    if not cell.counted:
        return "uncounted"
    return "passed" if cell.row.passed else "void" if cell.void else "failed"


def outcome_of(cell: Cell) -> str:
    """What came of a cell, in words."""
    state = state_of(cell)
    said = {"void": "failed, void", "uncounted": "did not count"}.get(state, state)
    return (
        said
        if cell.outcome == "completed"
        else f"{said} ({with_cause(cell.outcome, None).replace('_', ' ')})"
    )


def task_head(unit: Unit) -> Head:
    """A task as the head of a row. Of several contents of one name each has its own row, and one page."""
    return Head(unit.first.task, links.task_page(_bare(unit.first.task)))


def cli_head(unit: Unit) -> Head:
    return Head(unit.first.contestant, links.cli_page(unit.first.contestant))


def model_head(unit: Unit) -> Head:
    return Head(unit.first.model, links.model_page(unit.first.model))


def _bare(task: str) -> str:
    """A task's name without the digest that tells its contents apart."""
    return task.partition(" (")[0]


def _box(unit: Unit, source: Source) -> Box:
    first, runs = unit.first, unit.runs
    if len(unit.cells) == 1:
        page = links.cell_page(first.sweep_id, source.key(first.cell_id))
    else:
        page = links.pair_page(first.contestant, first.model)
    lost = len(unit.cells) - runs
    more = f", {lost} of {len(unit.cells)} did not count" if lost else ""
    if not runs:
        return Box(MARKS["uncounted"], f"no run counted{more}", "uncounted", page)
    passed = unit.passes
    state: State = "passed" if passed == runs else "failed" if not passed else "mixed"
    if not passed and unit.void:
        state = "void"
    text = MARKS[state] if runs == 1 else f"{passed}/{runs}"
    return Box(text, f"{passed} of {runs} counted run{'' if runs == 1 else 's'} passed{more}", state, page)


def _grid(boxes: dict[tuple[Head, Head], list[Box]]) -> Grid:
    rows = sorted({row for row, _ in boxes}, key=lambda head: head.name)
    columns = sorted({column for _, column in boxes}, key=lambda head: head.name)
    return Grid(
        tuple(columns),
        tuple((row, tuple(tuple(boxes.get((row, column), ())) for column in columns)) for row in rows),
    )
