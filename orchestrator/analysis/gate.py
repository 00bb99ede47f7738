"""Whether a night is worse than the nights before: what a nightly job fails on, and what it was asked over.

A gate fails on a significant drop of a pair's pass rate, after Holm's correction over all tests of the gate;
on any cell of a scripted model or a baseline that passed before and does not now, since those ask no model;
and on a pair of which too little came to a result for either to mean something.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from orchestrator.analysis.cells import Cell
from orchestrator.analysis.drift import Difference, differences
from orchestrator.analysis.gate_tests import Limit, PairTest, pair_tests
from orchestrator.analysis.groups import contestant_of
from orchestrator.analysis.nights import Night, cells_by_night
from orchestrator.errors import InputError
from orchestrator.store.names import CellKey
from scorers.aggregate import MIN_COVERAGE


@dataclass(frozen=True)
class Rules:
    """What a gate fails on. `alpha` bounds the probability of any false alarm of its tests; `coverage` is the
    least share of each pair's cells that counts; `limits` are further axes.
    """

    alpha: float = 0.05
    coverage: float = MIN_COVERAGE
    limits: tuple[Limit, ...] = ()


@dataclass(frozen=True)
class Coverage:
    """How much of a pair came to a result. `unfinished` cells were planned and have no record; `left_out` are
    those that the plan or preflight left out though the baseline has results of the pair. `value` is counted
    ÷ all of them.
    """

    pair: str
    counted: int
    infra: int
    unfinished: int
    left_out: int
    enough: bool

    @property
    def cells(self) -> int:
        return self.counted + self.infra + self.unfinished + self.left_out

    @property
    def value(self) -> float:
        return self.counted / self.cells


@dataclass(frozen=True)
class Scripted:
    """One cell without a model that passed in the baseline, `sweep_id` last, and what it came to now."""

    cell: str
    pair: str
    sweep_id: str
    passed: bool
    now: str


@dataclass(frozen=True)
class Gate:
    """The verdict. `baseline` has the ids of its sweeps, the oldest first, and none on a first night, on
    which coverage alone is asked for. `notes` say what was not compared, and why.
    """

    candidate: str
    baseline: tuple[str, ...]
    rules: Rules
    tests: tuple[PairTest, ...]
    scripted: tuple[Scripted, ...]
    coverage: tuple[Coverage, ...]
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]

    @property
    def worse(self) -> tuple[PairTest, ...]:
        return tuple(test for test in self.tests if test.verdict == "worse")

    @property
    def lost(self) -> tuple[Scripted, ...]:
        return tuple(cell for cell in self.scripted if not cell.passed)

    @property
    def uncovered(self) -> tuple[Coverage, ...]:
        return tuple(it for it in self.coverage if not it.enough)

    @property
    def passed(self) -> bool:
        return not (self.worse or self.lost or self.uncovered)


def gate(candidate: Night, baseline: Sequence[Night], rules: Rules) -> Gate:
    """Compare a night with those before, the oldest first; none is a first night.

    Nights without results of the candidate's methodology are left out, and told. Raises InputError where the
    candidate has results of several methodologies or none at all, where all that was planned was left out, or
    where there is a baseline and nothing in common with it that could show anything.
    """
    kept, notes = _comparable(candidate, baseline)
    *before, now = cells_by_night([*kept, candidate])
    measured = {_pair(cell) for cells in before for cell in cells if cell.counted}
    coverage = _coverage(candidate, now, measured, rules.coverage)
    scripted = tuple(_scripted(kept, before, candidate, now))
    tests = tuple(pair_tests(before, now, rules.alpha, rules.limits))
    untested = not scripted and all(test.verdict == "too few tasks" for test in tests)
    if not coverage and not scripted:
        raise InputError(
            f"every cell of {candidate.sweep_id} was left out: there is nothing to judge",
            mend="see `cab report` for the reasons",
        )
    if baseline and untested and all(it.enough for it in coverage):
        raise InputError(
            f"{candidate.sweep_id} shares too few tasks with the baseline for any drop to be seen",
            place=", ".join(night.sweep_id for night in baseline),
            mend="give more nights as baseline, or one with the same pairs and tasks",
        )
    return Gate(
        candidate=candidate.sweep_id,
        baseline=tuple(night.sweep_id for night in kept),
        rules=rules,
        tests=tests,
        scripted=scripted,
        coverage=coverage,
        differences=tuple(differences(kept, candidate)),
        notes=(*notes, *_not_compared(kept, before, candidate, now)),
    )


def _comparable(candidate: Night, baseline: Sequence[Night]) -> tuple[list[Night], list[str]]:
    """The nights of the candidate's methodology, and what is to be said of the others."""
    if not candidate.sweep.order:
        raise InputError(f"{candidate.sweep_id} has no cells", mend="name another sweep as candidate")
    if len(candidate.methodologies) > 1:
        raise InputError(
            f"{candidate.sweep_id} has results of the methodologies {', '.join(candidate.methodologies)}",
            mend="score it again with `cab cell rescore`, or run it again",
        )
    kept, notes = [], []
    for night in baseline:
        if candidate.methodologies and night.methodologies != candidate.methodologies:
            said = f"{', '.join(night.methodologies) or 'unknown'}, not {candidate.methodologies[0]}"
            notes.append(f"{night.sweep_id} is not compared: its methodology is {said}")
        else:
            kept.append(night)
    if baseline and not kept:
        raise InputError(
            f"no night of the baseline can be compared: {notes[0]}", mend="name another baseline"
        )
    if not kept:
        notes.append("there is no earlier good night: coverage alone was asked for")
    return kept, notes


def _pair(cell: Cell) -> str:
    return f"{cell.contestant} × {cell.model}"


def _pair_of(key: CellKey) -> str:
    return f"{contestant_of(key.cli, key.stack, key.condition)} × {key.model}"


def _coverage(
    candidate: Night, now: Iterable[Cell], measured: set[str], bound: float
) -> tuple[Coverage, ...]:
    """Of each pair that the candidate planned. Cells that were left out count where the baseline has the
    pair.
    """
    states: dict[str, Counter[str]] = defaultdict(Counter)
    finished = {_matrix_id(cell) for cell in now}
    for cell in now:
        if cell.row.state != "not_run":
            states[_pair(cell)][cell.row.state] += 1
        elif _pair(cell) in measured:
            states[_pair(cell)]["left_out"] += 1
    for key in candidate.planned:
        if key.matrix_id() not in finished | candidate.not_run.keys():
            states[_pair_of(key)]["unfinished"] += 1
    for matrix_id in candidate.not_run.keys() - finished:
        if (pair := _pair_of(_key(matrix_id))) in measured:
            states[pair]["left_out"] += 1
    return tuple(
        Coverage(
            pair=pair,
            counted=of["counted"],
            infra=of["infra"],
            unfinished=of["unfinished"],
            left_out=of["left_out"],
            enough=of["counted"] >= bound * of.total(),
        )
        for pair, of in sorted(states.items())
    )


def _scripted(
    nights: Sequence[Night], before: Sequence[Iterable[Cell]], candidate: Night, now: Iterable[Cell]
) -> Iterable[Scripted]:
    """The cells without a model that passed on the last night that has a verdict on them, if they are planned
    now.
    """
    last: dict[str, tuple[Cell, str]] = {}
    for night, cells in zip(nights, before, strict=True):
        last |= {_matrix_id(cell): (cell, night.sweep_id) for cell in cells if cell.counted}
    ended = {_matrix_id(cell): cell for cell in now}
    planned = {key.matrix_id() for key in candidate.planned} | candidate.not_run.keys()
    for matrix_id, (cell, sweep_id) in sorted(last.items()):
        if cell.kind == "result" or not cell.row.passed or matrix_id not in planned:
            continue
        found = ended.get(matrix_id)
        passed = found is not None and found.counted and found.row.passed == 1
        yield Scripted(
            matrix_id, _pair(cell), sweep_id, passed, _ended(found, candidate.not_run.get(matrix_id))
        )


def _ended(cell: Cell | None, why_not: str | None) -> str:
    """What a cell came to, in words."""
    if cell is None:
        return "was not finished" if why_not is None else f"was not run: {why_not}"
    if not cell.counted:
        return f"ended as {cell.outcome}"
    if cell.row.passed:
        return "passes"
    return "fails" if cell.outcome == "completed" else f"fails ({cell.outcome})"


def _not_compared(
    nights: Sequence[Night], before: Sequence[Iterable[Cell]], candidate: Night, now: Iterable[Cell]
) -> list[str]:
    """What one side has and the other has not planned, and tasks whose files changed."""
    if not nights:
        return []
    planned, left_out = _tasks(candidate.planned), _tasks(map(_key, candidate.not_run))
    here = planned | left_out
    there = {(_pair(cell), cell.task_name) for cells in before for cell in cells}
    pairs_planned, pairs_here, pairs_there = ({pair for pair, _ in of} for of in (planned, here, there))
    both = pairs_here & pairs_there
    changed = _renamed(cell.task for cells in (*before, now) for cell in cells)
    said = [
        ("planned tonight, not in the baseline", pairs_planned - pairs_there),
        ("in the baseline, not planned tonight", pairs_there - pairs_here),
        ("tasks new to a pair of the baseline", _of(planned - there, both)),
        ("tasks of the baseline, not planned tonight for a pair that had them", _of(there - here, both)),
        ("tasks whose files changed, so not compared", changed),
    ]
    return [f"{what}: {', '.join(sorted(names))}" for what, names in said if names]


def _tasks(keys: Iterable[CellKey]) -> set[tuple[str, str]]:
    """The pairs of these cells, each with its tasks."""
    return {(_pair_of(key), key.task) for key in keys}


def _of(tasks: Iterable[tuple[str, str]], pairs: Collection[str]) -> set[str]:
    """The tasks of these pairs."""
    return {task for pair, task in tasks if pair in pairs}


def _renamed(tasks: Iterable[str]) -> set[str]:
    """Tasks that `cells_of` tells apart by their content."""
    return {task.partition(" ")[0] for task in tasks if " " in task}


def _matrix_id(cell: Cell) -> str:
    return CellKey.of_id(cell.cell_id)[1].matrix_id()


def _key(matrix_id: str) -> CellKey:
    return CellKey.of_id(f"sweep/{matrix_id}")[1]
