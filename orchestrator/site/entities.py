"""What pages of one CLI, model, pair, task, category or sweep share: parts that may stand beside each other,
rates of a part, and grids of what passed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.analysis.cells import ABOUT, KINDS, Cell, Kind
from orchestrator.analysis.groups import contestant_of
from orchestrator.analysis.summary import By, Line, Table, summarise
from orchestrator.analysis.units import Unit
from orchestrator.report.text import plural
from orchestrator.run.outcome import with_cause
from orchestrator.site import links
from orchestrator.site.source import Source
from orchestrator.store.names import NO_STACK
from scorers import METHODOLOGY_VERSION

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
    def told(self) -> str:
        """What its tables are of, for their captions."""
        of = {"result": "results", "baseline": "baselines", "pipeline": "pipeline checks"}[self.kind]
        return f"{of}, methodology {self.methodology}"

    @property
    def cells(self) -> int:
        return sum(len(unit.cells) for unit in self.units)

    @property
    def claim(self) -> str:
        """The level of the banner that stands over it: one that all of its cells have."""
        if self.kind != "result":
            return "pipeline_only"
        [claim, *others] = self.claims
        return "citable" if others else claim

    @property
    def claims(self) -> Counter[str]:
        """How many of its cells have each claim."""
        return Counter(cell.claim for unit in self.units for cell in unit.cells)

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
    """Units by kind and methodology: results of models first, of this cab's methodology before others."""
    found: dict[tuple[Kind, str], list[Unit]] = defaultdict(list)
    for unit in units:
        found[unit.first.kind, unit.first.methodology].append(unit)
    order = sorted(found, key=lambda key: (KINDS.index(key[0]), key[1] != METHODOLOGY_VERSION, key[1]))
    return [Part(kind, methodology, tuple(found[kind, methodology])) for kind, methodology in order]


def inputs(source: Source, units: Iterable[Unit]) -> tuple[str, ...]:
    """What decides a page about these units alone."""
    return tuple(source.told[cell.cell_id] for unit in units for cell in unit.cells)


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
    said = outcome_of(cell) + _found(cell.findings)
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
    return Head(unit.first.task, links.task_page(unit.first.task))


def cli_head(unit: Unit) -> Head:
    return Head(unit.first.contestant, links.cli_page(unit.first.contestant))


def model_head(unit: Unit) -> Head:
    return Head(unit.first.model, links.model_page(unit.first.model))


def _box(unit: Unit, source: Source) -> Box:
    first, runs = unit.first, unit.runs
    if len(unit.cells) == 1:
        page = links.cell_page(first.sweep_id, source.key(first.cell_id))
    else:
        page = links.pair_page(first.contestant, first.model)
    lost = len(unit.cells) - runs
    more = f", {lost} of {len(unit.cells)} did not count" if lost else ""
    more += _found(unit.sums["findings"])
    if not runs:
        return Box(MARKS["uncounted"], f"no run counted{more}", "uncounted", page)
    passed = unit.passes
    state: State = "passed" if passed == runs else "failed" if not passed else "mixed"
    if not passed and unit.void:
        state = "void"
    text = MARKS[state] if runs == 1 else f"{passed}/{runs}"
    return Box(text, f"{passed} of {runs} counted run{'' if runs == 1 else 's'} passed{more}", state, page)


def _found(findings: float | None) -> str:
    """What integrity found, where it found something."""
    return f", {plural(round(findings), 'integrity finding')}" if findings else ""


def _grid(boxes: dict[tuple[Head, Head], list[Box]]) -> Grid:
    rows = sorted({row for row, _ in boxes}, key=lambda head: head.name)
    columns = sorted({column for _, column in boxes}, key=lambda head: head.name)
    return Grid(
        tuple(columns),
        tuple((row, tuple(tuple(boxes.get((row, column), ())) for column in columns)) for row in rows),
    )


# Rates


@dataclass(frozen=True)
class Rates:
    """A table of rates: `head` is the word over its first column."""

    id: str
    caption: str
    head: str
    rows: tuple[tuple[Head, Line], ...]


def beside(source: Source, part: Part, by: Literal["cli", "model"], name: str) -> list[Rates]:
    """What the page of a CLI or a model tells of a part of its cells beside others: its line over what all
    attempted, and the line of each of its pairs.
    """
    pairs = by_model(source, part) if by == "cli" else by_cli(source, part)
    return [table for table in (among_all(source, part, by, name), pairs) if table is not None]


def by_model(source: Source, part: Part) -> Rates:
    """The pairs of one CLI, by model."""
    rows = [(Head(line.key["model"], _pair_page(line)), line) for line in _pairs(source, part)]
    return Rates(f"models-{part.id}", f"With each model: {part.told}", "model", tuple(rows))


def by_cli(source: Source, part: Part) -> Rates:
    """The pairs of one model, by CLI."""
    rows = [(Head(contestant_name(line), _pair_page(line)), line) for line in _pairs(source, part)]
    return Rates(f"clis-{part.id}", f"With each CLI: {part.told}", "CLI", tuple(rows))


def of_pair(source: Source, part: Part) -> Rates:
    """The one pair that a part is of."""
    rows = [(Head(line.name, _pair_page(line)), line) for line in _pairs(source, part)]
    return Rates(f"pairs-{part.id}", f"All tasks: {part.told}", "CLI × model", tuple(rows))


def of_these_units(part: Part, caption: str) -> Rates:
    """The pairs of a part on its own tasks, where these are not all that a pair was run on."""
    rows = [(Head(line.name, _pair_page(line)), line) for line in part.table("pair").lines]
    return Rates(f"pairs-{part.id}", f"{caption}: {part.told}", "CLI × model", tuple(rows))


def _pairs(source: Source, part: Part) -> list[Line]:
    """The lines of the pairs that a part holds every unit of."""
    names = {(unit.first.contestant, unit.first.model) for unit in part.units}
    return [
        line
        for table in source.summary("pair").tables
        if (table.kind, table.methodology) == (part.kind, part.methodology)
        for line in table.lines
        if (contestant_name(line), line.key["model"]) in names
    ]


def by_category(part: Part) -> Rates:
    rows = [(Head(line.name, links.category_page(line.name)), line) for line in part.table("category").lines]
    return Rates(f"categories-{part.id}", f"In each category: {part.told}", "category", tuple(rows))


def by_task(part: Part) -> Rates:
    rows = [(Head(line.name, links.task_page(line.name)), line) for line in part.table("task").lines]
    return Rates(f"tasks-{part.id}", f"On each task: {part.told}", "task", tuple(rows))


def among_all(source: Source, part: Part, by: Literal["cli", "model"], name: str) -> Rates | None:
    """The line of a CLI or a model among all others, over what all of them attempted; None where there is no
    other.
    """
    for table in source.summary(by).tables:
        lines = [line for line in table.lines if line.name == name]
        if (
            (table.kind, table.methodology) == (part.kind, part.methodology)
            and lines
            and len(table.lines) > 1
        ):
            units, others = table.shared_units, "(model, task)" if by == "cli" else "(CLI, task)"
            word = "CLI" if by == "cli" else "model"
            # One that never ran is among the lines, and took no part in what is shared.
            shared_by = [line for line in table.lines if line.units] or table.lines
            page = links.cli_page(name) if by == "cli" else links.model_page(name)
            return Rates(
                f"all-{part.id}",
                f"Over the {units} {others} pairs that all {len(shared_by)} {word}s attempted: {part.told}",
                word,
                ((Head(name, page), lines[0]),),
            )
    return None


def contestant_name(line: Line) -> str:
    """The CLI of a line, with its stack and condition."""
    key = line.key
    return contestant_of(key["cli"], key.get("stack", NO_STACK), key.get("condition"))


def _pair_page(line: Line) -> str:
    return links.pair_page(contestant_name(line), line.key["model"])
