"""What past nights say: how pairs went, where their level changed, which tasks are flaky, and what was
changed when.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from orchestrator.analysis.cells import Cell, Kind
from orchestrator.analysis.drift import Difference, builds_of, differences
from orchestrator.analysis.measures import Measure
from orchestrator.analysis.nights import Night, cells_by_night
from orchestrator.analysis.summary import summarise
from orchestrator.errors import InputError
from orchestrator.stats.change import (
    MIN_NIGHTS,
    disagreement,
    disagreement_within,
    mixed_p,
    step,
)
from orchestrator.stats.many import holm

ALPHA = 0.05


@dataclass(frozen=True)
class Point:
    """A pair on one night: its pass rate with interval, and how many of its cells came to a result."""

    sweep_id: str
    pass_rate: Measure
    tasks: int
    counted: int
    infra: int


@dataclass(frozen=True)
class Shift:
    """A change of level from `since` on, the first night of the new one. `before` and `after` are the mean
    pass rates of either side, of nights made comparable by each task's own mean. `p_holm` is corrected over
    all pairs. What else changed with that night is in `differences`.
    """

    since: str
    before: float
    after: float
    p: float
    p_holm: float
    significant: bool
    differences: tuple[Difference, ...]


@dataclass(frozen=True)
class PairHistory:
    """One pair over the nights, the oldest first; None on a night without it. `shift` is its greatest change
    of level, None where nights are too few to test, which `untested` says.
    """

    pair: str
    kind: Kind
    points: tuple[Point | None, ...]
    shift: Shift | None
    untested: str | None


@dataclass(frozen=True)
class MixedTask:
    """A task of a pair that passed in some runs and failed in others, with the same image, CLI, task and
    model build.

    `runs` and `passes` are those of the `nights` nights with these pins, `since` the first of them. `differ`
    is how probable it is that two of its runs differ, `differ_within` two of one night, None where none had
    two. `p` is of the hypothesis that at most one run in twenty differs, `p_holm` corrected over all tasks
    that were tested. `flaky` is whether that is refuted; of a script, which always does the same, any
    difference is enough.
    """

    pair: str
    kind: Kind
    task: str
    since: str
    nights: int
    runs: int
    passes: int
    differ: float
    differ_within: float | None
    p: float
    p_holm: float
    flaky: bool


@dataclass(frozen=True)
class Builds:
    """The builds of a model that answered from one night to another, both included."""

    model: str
    builds: tuple[str, ...]
    first: str
    last: str
    nights: int


@dataclass(frozen=True)
class Changed:
    """What was not on a night as on the one before."""

    sweep_id: str
    differences: tuple[Difference, ...]


@dataclass(frozen=True)
class History:
    """The nights' ids, the oldest first, and what they say. `mixed` has the likeliest to be flaky first;
    `builds` has the models that more than one set of builds answered for.
    """

    nights: tuple[str, ...]
    pairs: tuple[PairHistory, ...]
    mixed: tuple[MixedTask, ...]
    tested_tasks: int
    builds: tuple[Builds, ...]
    changed: tuple[Changed, ...]
    notes: tuple[str, ...]


def history(nights: Sequence[Night]) -> History:
    """What these nights say, the oldest first. Those of another methodology than the newest are left out, and
    told.

    Raises InputError where there is nothing finished in any.
    """
    measured = [night for night in nights if night.methodologies]
    if not measured:
        raise InputError("there is no finished cell in any of the nights", mend="run a sweep first")
    newest = measured[-1].methodologies
    kept = [night for night in measured if night.methodologies == newest]
    other = [night.sweep_id for night in measured if night.methodologies != newest]
    empty = [night.sweep_id for night in nights if not night.methodologies]
    notes = (
        [f"left out, since their methodology is not {', '.join(newest)}: {', '.join(other)}"] if other else []
    )
    notes += [f"left out, since no cell of theirs is finished: {', '.join(empty)}"] if empty else []
    cells = cells_by_night(kept)
    changed = [Changed(now.sweep_id, tuple(differences([was], now))) for was, now in pairwise(kept)]
    mixed, tested = _mixed(kept, cells)
    return History(
        nights=tuple(night.sweep_id for night in kept),
        pairs=tuple(_pairs(kept, cells, {it.sweep_id: it.differences for it in changed})),
        mixed=tuple(mixed),
        tested_tasks=tested,
        builds=tuple(_builds(kept)),
        changed=tuple(it for it in changed if it.differences),
        notes=tuple(notes),
    )


def _name(cell: Cell) -> str:
    return f"{cell.contestant} × {cell.model}"


def _pairs(
    nights: Sequence[Night],
    cells: Sequence[Sequence[Cell]],
    changed: Mapping[str, tuple[Difference, ...]],
) -> list[PairHistory]:
    lines = [{line.name: line for line in summarise(night.frame, "pair").lines} for night in nights]
    kinds = {name: line.kind for of in lines for name, line in of.items()}
    found = []
    for name in sorted(kinds, key=lambda name: (kinds[name] != "result", name)):
        points = tuple(
            Point(night.sweep_id, line.pass_rate, line.tasks, line.counted, line.infra)
            if (line := of.get(name))
            else None
            for night, of in zip(nights, lines, strict=True)
        )
        shift, untested = _shift(name, [night.sweep_id for night in nights], cells, changed)
        found.append(PairHistory(name, kinds[name], points, shift, untested))
    tested = [it.shift for it in found if it.shift]
    corrected = iter(holm([shift.p for shift in tested]))
    return [replace(it, shift=_judged(it.shift, next(corrected))) if it.shift else it for it in found]


def _judged(shift: Shift, p_holm: float) -> Shift:
    return replace(shift, p_holm=p_holm, significant=p_holm <= ALPHA)


def _shift(
    pair: str,
    nights: Sequence[str],
    cells: Sequence[Sequence[Cell]],
    changed: Mapping[str, tuple[Difference, ...]],
) -> tuple[Shift | None, str | None]:
    """The greatest change of level of a pair, not yet corrected, or why there is no test."""
    rates = [_rates(of, pair) for of in cells]
    of_task: dict[str, list[float]] = defaultdict(list)
    for night in rates:
        for task, rate in night.items():
            of_task[task].append(rate)
    means = {task: sum(values) / len(values) for task, values in of_task.items()}
    if not means:
        return None, "no result at all"
    overall = sum(means.values()) / len(means)
    # Nights may lack a task: what is compared is how far the others are from their own means.
    levels = [
        (at, overall + sum(rate - means[task] for task, rate in night.items()) / len(night))
        for at, night in enumerate(rates)
        if night
    ]
    found = step([level for _, level in levels])
    if found is None:
        return None, f"fewer than {MIN_NIGHTS} nights with a result"
    since = nights[levels[found.at][0]]
    return Shift(since, found.before, found.after, found.p, 1.0, False, changed.get(since, ())), None


def _rates(cells: Sequence[Cell], pair: str) -> dict[str, float]:
    """Pass rates of a pair's tasks on one night."""
    runs: dict[str, list[int]] = defaultdict(list)
    for cell in cells:
        if cell.counted and _name(cell) == pair:
            runs[cell.task].append(cell.row.passed or 0)
    return {task: sum(of) / len(of) for task, of in runs.items()}


def _mixed(nights: Sequence[Night], cells: Sequence[Sequence[Cell]]) -> tuple[list[MixedTask], int]:
    """Tasks with mixed results under the same pins, and how many were tested at all."""
    together: dict[tuple[str, ...], dict[int, list[Cell]]] = defaultdict(lambda: defaultdict(list))
    for at, (night, of) in enumerate(zip(nights, cells, strict=True)):
        images = dict(night.frame.select("cell_id", "image_digest").iter_rows())
        builds = builds_of(night)
        for cell in of:
            if cell.counted:
                pins = (images[cell.cell_id] or "", cell.cli_version or "", *builds.get(cell.model, ()))
                together[(_name(cell), cell.task, *pins)][at].append(cell)
    found = [
        _task(name[0], name[1], {nights[at].sweep_id: of for at, of in by_night.items()})
        for name, by_night in sorted(together.items())
    ]
    tested = [task for task in found if task is not None]
    judged = [
        replace(task, p_holm=p_holm, flaky=p_holm <= ALPHA or (task.kind != "result" and task.differ > 0))
        for task, p_holm in zip(tested, holm([task.p for task in tested]), strict=True)
    ]
    mixed = [task for task in judged if task.differ > 0]
    return sorted(mixed, key=lambda it: (not it.flaky, it.kind == "result", it.p, it.pair, it.task)), len(
        tested
    )


def _task(pair: str, task: str, nights: Mapping[str, Sequence[Cell]]) -> MixedTask | None:
    counts = [(len(cells), sum(cell.row.passed or 0 for cell in cells)) for cells in nights.values()]
    runs, passes = sum(runs for runs, _ in counts), sum(passes for _, passes in counts)
    differ = disagreement(runs, passes)
    if differ is None:
        return None
    first, cells = next(iter(nights.items()))
    return MixedTask(
        pair=pair,
        kind=cells[0].kind,
        task=task,
        since=first,
        nights=len(nights),
        runs=runs,
        passes=passes,
        differ=differ,
        differ_within=disagreement_within(counts),
        p=mixed_p(runs, passes),
        p_holm=1.0,
        flaky=False,
    )


def _builds(nights: Sequence[Night]) -> list[Builds]:
    """The builds of each model over the nights, of those that changed."""
    spans: dict[str, list[Builds]] = defaultdict(list)
    for night in nights:
        for model, builds in builds_of(night).items():
            if spans[model] and spans[model][-1].builds == builds:
                last = spans[model][-1]
                spans[model][-1] = replace(last, last=night.sweep_id, nights=last.nights + 1)
            else:
                spans[model].append(Builds(model, builds, night.sweep_id, night.sweep_id, 1))
    return [span for _, of in sorted(spans.items()) if len(of) > 1 for span in of]
