"""A against B, paired over what both share: by how much they differ, and whether that is more than chance.

The unit of inference is the task. The methods and what they assume are those of docs/reports.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from orchestrator.analysis.cells import KINDS, Cell, Kind, category_of
from orchestrator.analysis.differences import (
    NO_UNIT,
    PASS_RATE,
    Difference,
    What,
    corrected,
    judged,
    of_measures,
    of_pass_rates,
)
from orchestrator.analysis.groups import contestant_of
from orchestrator.analysis.measures import UNJUDGED
from orchestrator.analysis.sides import VALUE, Dimension, Side, differing
from orchestrator.analysis.units import Unit
from orchestrator.errors import InputError
from orchestrator.stats.paired import MIN_TASKS
from orchestrator.store.names import NO_STACK
from scorers.aggregate import MIN_COVERAGE, group_of

Groups = Literal["cli", "model", "pair", "category", "stack", "condition"]
SPLITS: tuple[Groups, ...] = get_args(Groups)

MEASURES: Mapping[str, What] = {
    "composite": What("difference", "higher", "composite"),
    "tokens": What("ratio", "lower", "tokens"),
    "tokens_per_solved": What("ratio", "lower", "tokens", per_pass=True),
    "usd": What("ratio", "lower", "usd"),
    "usd_per_solved": What("ratio", "lower", "usd", per_pass=True),
    "wall_s": What("ratio", "lower", "wall_s"),
    "active_s": What("ratio", "lower", "active_s"),
    "blast": What("difference", "lower", "blast"),
}
"""What is compared beside the pass rate: means of a cell, over tasks."""


@dataclass(frozen=True)
class Comparison:
    """One group of cells that are compared with each other; `name` is empty where there is but one.

    `units` have a counted cell on both sides, and `tasks` is the number of tasks among them. `only_a` and
    `only_b` units were attempted on one side alone. `runs_a` and `runs_b` are the fewest and the most counted
    runs of a unit. `coverage_a` and `coverage_b` are counted ÷ (counted + infra) over what both attempted,
    None where that is nothing; `bounds_a` and `bounds_b` are the pass rates over the same with all infra
    cells as failed and as passed. `unjudged_a` and `unjudged_b` of the infra cells wait for a verdict.
    """

    name: str
    kind: Kind
    methodology: str
    tasks: int
    units: int
    only_a: int
    only_b: int
    runs_a: tuple[int, int]
    runs_b: tuple[int, int]
    infra_a: int
    infra_b: int
    unjudged_a: int
    unjudged_b: int
    coverage_a: float | None
    coverage_b: float | None
    bounds_a: tuple[float, float]
    bounds_b: tuple[float, float]
    pass_rate: Difference
    others: tuple[Difference, ...]

    @property
    def differences(self) -> tuple[Difference, ...]:
        return (self.pass_rate, *self.others)


@dataclass(frozen=True)
class Compared:
    """All comparisons of two sides. `by` says what was compared each for itself, None that all was one."""

    a: Side
    b: Side
    by: Groups | None
    comparisons: tuple[Comparison, ...]


Key = tuple[str, ...]


def compare(a: Side, b: Side, by: Groups | None = None) -> Compared:
    """Both sides over all that they share, or each `by` for itself.

    Kinds of cells and methodology versions are compared each with its own. Raises InputError where the sides
    differ in what they would be split by, or share not one unit that was attempted.
    """
    apart = differing(a, b)
    if by in apart or (by == "pair" and apart & {"cli", "model"}):
        raise InputError(
            f"the sides differ in their {by}", place=f"--by {by}", mend="split by something else"
        )
    of_a, of_b = (_by_group(side.cells, apart, by) for side in (a, b))
    names = sorted(of_a.keys() & of_b.keys(), key=lambda name: (KINDS.index(name[0]), *name[1:]))
    found = [_compared(name, of_a[name], of_b[name]) for name in names]
    shared = [comparison for comparison in found if comparison.coverage_a is not None]
    if not shared:
        raise InputError(_nothing_shared(a, b), place=f"{a.name}, {b.name}", mend="see `cab report` for each")
    return Compared(a, b, by, _adjusted(shared))


def _nothing_shared(a: Side, b: Side) -> str:
    for what, names in (
        ("kinds", [{str(cell.kind) for cell in side.cells} for side in (a, b)]),
        ("methodology versions", [{cell.methodology for cell in side.cells} for side in (a, b)]),
    ):
        if not names[0] & names[1]:
            said = " and ".join(", ".join(sorted(of)) for of in names)
            return f"results of the {what} {said} are never compared"
    return "share no task that both attempted, with all else alike"


Name = tuple[Kind, str, str]
"""Kind, methodology version, and the group."""


def _by_group(
    cells: Sequence[Cell], apart: frozenset[Dimension], by: Groups | None
) -> dict[Name, dict[Key, Unit]]:
    """The units of one side by group, and by what they are paired over."""
    together: dict[tuple[Name, Key], list[Cell]] = defaultdict(list)
    alike = [value for dimension, value in VALUE.items() if dimension not in {*apart, "sweep"}]
    for cell in cells:
        name = (cell.kind, cell.methodology, _group_name(cell, apart, by))
        together[name, (*(value(cell) for value in alike), cell.task_name, cell.content or "")].append(cell)
    found: dict[Name, dict[Key, Unit]] = defaultdict(dict)
    for (name, key), of in together.items():
        found[name][key] = Unit(tuple(of))
    return found


def _group_name(cell: Cell, apart: frozenset[Dimension], by: Groups | None) -> str:
    """What a cell is compared within; of a contestant what both sides have of it."""
    stack = NO_STACK if "stack" in apart else cell.stack
    contestant = contestant_of(cell.cli, stack, None if "condition" in apart else cell.condition)
    match by:
        case None:
            return ""
        case "cli":
            return contestant
        case "pair":
            return f"{contestant} × {cell.model}"
        case "category":
            return category_of(cell.task_name)
    return VALUE[by](cell)


def _compared(name: Name, a: Mapping[Key, Unit], b: Mapping[Key, Unit]) -> Comparison:
    attempted = [{key for key, unit in side.items() if unit.scores.attempted} for side in (a, b)]
    shared = attempted[0] & attempted[1]
    groups = [group_of("", {key: unit.scores for key, unit in side.items()}, shared) for side in (a, b)]
    keys = sorted(key for key in shared if a[key].runs and b[key].runs)
    tasks: dict[Key, list[tuple[Unit, Unit]]] = defaultdict(list)
    for key in keys:
        tasks[key[-2:]].append((a[key], b[key]))
    paired = list(tasks.values())
    runs = [[side[key].runs for key in keys] or [0] for side in (a, b)]
    unjudged = [sum(side[key].unjudged for key in shared) for side in (a, b)]
    differences = [of_pass_rates(paired), *of_measures(paired, MEASURES)]
    if any(unjudged):
        differences = [replace(it, reason=UNJUDGED) if it.reason == NO_UNIT else it for it in differences]
    kind, methodology, group = name
    return Comparison(
        name=group,
        kind=kind,
        methodology=methodology,
        tasks=len(paired),
        units=len(keys),
        only_a=len(attempted[0] - shared),
        only_b=len(attempted[1] - shared),
        runs_a=(min(runs[0]), max(runs[0])),
        runs_b=(min(runs[1]), max(runs[1])),
        infra_a=groups[0].infra,
        infra_b=groups[1].infra,
        unjudged_a=unjudged[0],
        unjudged_b=unjudged[1],
        coverage_a=groups[0].coverage,
        coverage_b=groups[1].coverage,
        bounds_a=(groups[0].pass_rate.low, groups[0].pass_rate.high),
        bounds_b=(groups[1].pass_rate.low, groups[1].pass_rate.high),
        pass_rate=differences[0],
        others=tuple(differences[1:]),
    )


def _adjusted(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """With verdicts. The pass rates are one family of tests, all other measures together a second."""
    rates = corrected([it.pass_rate if it.tasks >= MIN_TASKS else None for it in comparisons])
    found = []
    others = iter(corrected([other for it in comparisons for other in it.others]))
    for it, p in zip(comparisons, rates, strict=True):
        found.append(
            replace(
                it,
                pass_rate=judged(it.pass_rate, p, it, "higher", _lost(it, it.pass_rate)),
                others=tuple(
                    judged(other, next(others), it, MEASURES[other.measure].better, _lost(it, other))
                    for other in it.others
                ),
            )
        )
    return tuple(found)


def _lost(of: Comparison, it: Difference) -> str | None:
    """Why lost cells stand against a verdict: too many, or they could turn a pass rate's round."""
    coverages = of.coverage_a or 0, of.coverage_b or 0
    if min(coverages) < MIN_COVERAGE:
        return f"coverage below {MIN_COVERAGE:.0%}"
    apart = of.bounds_b[0] > of.bounds_a[1] or of.bounds_a[0] > of.bounds_b[1]
    if it.measure == PASS_RATE and not apart:
        return "the lost cells could turn it round"
    return None
