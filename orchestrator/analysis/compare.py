"""A against B, paired over what both share: by how much they differ, and whether that is more than chance.

The unit of inference is the task. The methods and what they assume are those of docs/reports.md.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from orchestrator.analysis.cells import KINDS, Cell, Kind, category_of
from orchestrator.analysis.groups import contestant_of
from orchestrator.analysis.measures import ALL_ALIKE
from orchestrator.analysis.sides import VALUE, Dimension, Side, differing
from orchestrator.analysis.units import Unit, unit_of
from orchestrator.errors import InputError
from orchestrator.stats.many import holm
from orchestrator.stats.paired import (
    ALPHA,
    MIN_TASKS,
    Contrast,
    Needed,
    Sides,
    cohens_h,
    difference_interval,
    mcnemar,
    needed,
    paired_contrasts,
    sign_flip,
    spread,
)
from orchestrator.stats.paired import (
    Kind as Scale,
)
from orchestrator.stats.rates import cluster_bootstrap
from orchestrator.store.names import NO_STACK
from scorers.aggregate import MIN_COVERAGE, group_of

Verdict = Literal[
    "better",
    "worse",
    "no detectable difference",
    "too few shared tasks",
    "too many lost cells",
    "not measured",
]
Groups = Literal["cli", "model", "pair", "category", "stack", "condition"]
SPLITS: tuple[Groups, ...] = get_args(Groups)

MCNEMAR = "exact McNemar"
SIGN_FLIP = "sign-flip permutation"
SWAP = "paired permutation"
UNTESTED = "none"

FEW = f"fewer than {MIN_TASKS} shared tasks"
NO_NUMBER = "a side is 0, or passes so few tasks that resamples pass none"
NO_UNIT = "no unit has a counted run on both sides"


@dataclass(frozen=True)
class _What:
    """A measure that is compared: by difference or by ratio, a mean or what is spent for each pass."""

    kind: Scale
    higher_is_better: bool
    value: str
    per_pass: bool = False


PASS_RATE = "pass_rate"
MEASURES: Mapping[str, _What] = {
    "composite": _What("difference", True, "composite"),
    "tokens": _What("ratio", False, "tokens"),
    "tokens_per_solved": _What("ratio", False, "tokens", per_pass=True),
    "usd": _What("ratio", False, "usd"),
    "usd_per_solved": _What("ratio", False, "usd", per_pass=True),
    "wall_s": _What("ratio", False, "wall_s"),
    "active_s": _What("ratio", False, "active_s"),
    "blast": _What("difference", False, "blast"),
}
"""What is compared beside the pass rate: means of a cell, over tasks."""


@dataclass(frozen=True)
class Difference:
    """One measure of both sides, over the units that both share, and what may be said of B beside A.

    `value` is B − A, or of a `ratio` B ÷ A, with its 95 % interval. `p` is that of `method` alone and
    `p_adjusted` Holm's over all that are made together. `effect` is Cohen's h, of a pass rate. `needed` goes
    with *no detectable difference*. `reason` says why a number is None.
    """

    measure: str
    kind: Scale
    a: float | None
    b: float | None
    value: float | None
    low: float | None
    high: float | None
    method: str
    p: float | None
    p_adjusted: float | None
    effect: float | None
    needed: Needed | None
    verdict: Verdict
    reason: str | None


@dataclass(frozen=True)
class Comparison:
    """One group of cells that are compared with each other; `name` is empty where there is but one.

    `units` have a counted cell on both sides, and `tasks` is the number of tasks among them. `only_a` and
    `only_b` units were attempted on one side alone. `runs_a` and `runs_b` are the fewest and the most counted
    runs of a unit. `coverage_a` and `coverage_b` are counted ÷ (counted + infra) over what both attempted,
    None where that is nothing; `bounds_a` and `bounds_b` are the pass rates over the same with all infra
    cells as failed and as passed.
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
Paired = Sequence[tuple[Unit, Unit]]


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
        found[name][key] = unit_of(of)
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
    pass_rate = _of_pass_rates(paired)
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
        coverage_a=groups[0].coverage,
        coverage_b=groups[1].coverage,
        bounds_a=(groups[0].pass_rate.low, groups[0].pass_rate.high),
        bounds_b=(groups[1].pass_rate.low, groups[1].pass_rate.high),
        pass_rate=pass_rate,
        others=_of_measures(paired),
    )


def _of_pass_rates(tasks: Sequence[Paired]) -> Difference:
    """The difference of the pass rates. Its verdict is given when all are known that are made with it."""
    units = [pair for of in tasks for pair in of]
    if not units:
        return _unknown(PASS_RATE, "difference", NO_UNIT)
    rate_a, rate_b = (_mean_of([pair[side].means["passed"] or 0 for pair in units]) for side in (0, 1))
    weight = len(tasks) / len(units)
    # So weighted, their mean is the difference of the rates, however many units a task has.
    differences = [weight * math.fsum(_gain(pair) for pair in of) for of in tasks]
    once = len(tasks) == len(units) and all(a.runs == b.runs == 1 for a, b in units)
    if once:
        method, p = MCNEMAR, mcnemar(differences.count(-1), differences.count(1))
    else:
        method, p = SIGN_FLIP, sign_flip(differences)
    low, high = _interval(differences, once=once)
    return Difference(
        measure=PASS_RATE,
        kind="difference",
        a=rate_a,
        b=rate_b,
        value=rate_b - rate_a,
        low=low,
        high=high,
        method=method,
        p=p,
        p_adjusted=None,
        effect=cohens_h(rate_a, rate_b),
        needed=_needed(tasks, differences),
        verdict="not measured",
        reason=None,
    )


def _gain(pair: tuple[Unit, Unit]) -> float:
    return (pair[1].means["passed"] or 0) - (pair[0].means["passed"] or 0)


def _interval(differences: Sequence[float], *, once: bool) -> tuple[float, float]:
    """Resampled where a task's difference is a mean; of single runs, and where resampling cannot see a
    spread, in closed form.
    """
    if not once and len(differences) >= MIN_TASKS and len(set(differences)) > 1:
        [[low, high]] = cluster_bootstrap(np.array(differences)[:, None], np.ones((len(differences), 1)))
        return float(low), float(high)
    return difference_interval(differences)


def _needed(tasks: Sequence[Paired], differences: Sequence[float]) -> Needed:
    """What it would take; the variance from runs is known where every unit ran twice on both sides."""
    units = [pair for of in tasks for pair in of]
    runs = [unit.runs for pair in units for unit in pair]
    weight = len(tasks) / len(units)
    within = None
    if min(runs) > 1:
        of_tasks = [weight**2 * math.fsum(_variance(unit) for pair in of for unit in pair) for of in tasks]
        within = _mean_of(of_tasks)
    mean = _mean_of(differences)
    harmonic = len(runs) / math.fsum(1 / number for number in runs)
    step = weight / max(runs)
    return needed(mean, spread(differences), len(tasks), within=within, runs=harmonic, step=step)


def _variance(unit: Unit) -> float:
    """Of the mean of a unit's runs."""
    return unit.passes * (unit.runs - unit.passes) / (unit.runs**2 * (unit.runs - 1))


def _of_measures(tasks: Sequence[Paired]) -> tuple[Difference, ...]:
    """All of `MEASURES`, resampled together."""
    known: dict[str, Sides] = {}
    found: dict[str, Difference] = {}
    for measure, what in MEASURES.items():
        sides = _sides(what, tasks)
        if isinstance(sides, str):
            found[measure] = _unknown(measure, what.kind, sides)
        else:
            known[measure] = sides
    enough = len(tasks) >= MIN_TASKS
    contrasts = paired_contrasts(list(known.values())) if enough else [None] * len(known)
    for (measure, sides), contrast in zip(known.items(), contrasts, strict=True):
        found[measure] = _of_measure(measure, sides, contrast)
    return tuple(found[measure] for measure in MEASURES)


def _sides(what: _What, tasks: Sequence[Paired]) -> Sides | str:
    """What each task adds on either side, or why that is not known."""
    units = [unit for of in tasks for pair in of for unit in pair]
    if not units:
        return NO_UNIT
    if unknown := sum(unit.unknown[what.value] for unit in units):
        return f"not measured in {unknown} of {sum(unit.runs for unit in units)} counted cells"
    a, b = (np.array([_sums([pair[side] for pair in of], what) for of in tasks]) for side in (0, 1))
    return (a, b, what.kind) if a[:, 1].any() and b[:, 1].any() else "a side passed nothing"


def _of_measure(measure: str, sides: Sides, found: Contrast | None) -> Difference:
    a, b, kind = sides
    of_a, of_b = (float(side[:, 0].sum() / side[:, 1].sum()) for side in (a, b))
    reason: str | None = FEW if len(a) < MIN_TASKS else NO_NUMBER
    if found:
        reason = ALL_ALIKE if found.low == found.high else None
    return Difference(
        measure=measure,
        kind=kind,
        a=of_a,
        b=of_b,
        value=_contrast(of_a, of_b, kind),
        low=found.low if found and not reason else None,
        high=found.high if found and not reason else None,
        method=SWAP if found else UNTESTED,
        p=found.p if found else None,
        p_adjusted=None,
        effect=None,
        needed=_needed_of(found, kind, len(a)) if found and not reason else None,
        verdict="not measured",
        reason=reason,
    )


def _sums(units: Sequence[Unit], what: _What) -> tuple[float, float]:
    """What one side of a task adds above and below the line: of a run of each unit a mean and 1, or what was
    spent and the passes.
    """
    below = math.fsum(unit.passes / unit.runs for unit in units) if what.per_pass else len(units)
    return math.fsum(unit.means[what.value] or 0 for unit in units), below


def _needed_of(found: Contrast, kind: Scale, tasks: int) -> Needed:
    """What it would take of tasks, by the spread of the resamples."""
    value = math.log(found.value) if kind == "ratio" else found.value
    it = needed(value, found.error**2 * tasks, tasks)
    return replace(it, detectable=math.exp(it.detectable)) if kind == "ratio" else it


def _contrast(a: float, b: float, kind: Scale) -> float | None:
    if kind == "difference":
        return b - a
    return b / a if a and math.isfinite(b / a) else None


def _unknown(measure: str, kind: Scale, reason: str) -> Difference:
    nothing = dict.fromkeys(("a", "b", "value", "low", "high", "p", "p_adjusted", "effect", "needed"))
    return Difference(
        measure=measure, kind=kind, method=UNTESTED, verdict="not measured", reason=reason, **nothing
    )


def _mean_of(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _adjusted(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """With verdicts. The pass rates are one family of tests, all other measures together a second."""
    rates = _corrected([it.pass_rate if it.tasks >= MIN_TASKS else None for it in comparisons])
    found = []
    others = iter(_corrected([other for it in comparisons for other in it.others]))
    for it, p in zip(comparisons, rates, strict=True):
        found.append(
            replace(
                it,
                pass_rate=_judged(it, it.pass_rate, p),
                others=tuple(_judged(it, other, next(others)) for other in it.others),
            )
        )
    return tuple(found)


def _corrected(family: Sequence[Difference | None]) -> list[float | None]:
    tested = [it.p for it in family if it is not None and it.p is not None]
    adjusted = iter(holm(tested))
    return [None if it is None or it.p is None else next(adjusted) for it in family]


def _judged(of: Comparison, it: Difference, p: float | None) -> Difference:
    verdict: Verdict
    reason = it.reason
    if of.tasks < MIN_TASKS:
        verdict, reason = "too few shared tasks", FEW
    elif p is None or it.value is None:
        verdict = "not measured"
    elif p >= ALPHA:
        verdict = "no detectable difference"
    elif why := _lost(of, it):
        verdict, reason = "too many lost cells", why
    else:
        grew = it.value > (1 if it.kind == "ratio" else 0)
        verdict = "better" if grew == _higher_is_better(it.measure) else "worse"
    wanted = _more(of, it.needed) if verdict == "no detectable difference" and it.needed else None
    return replace(it, p_adjusted=p, verdict=verdict, reason=reason, needed=wanted)


def _more(of: Comparison, wanted: Needed) -> Needed:
    """More than what there is, which was not enough: neither chance nor Holm's correction is in the
    approximation.
    """
    runs = min(of.runs_a[0], of.runs_b[0]) + 1
    return replace(
        wanted,
        tasks=None if wanted.tasks is None else max(wanted.tasks, of.tasks + 1),
        runs=None if wanted.runs is None else max(wanted.runs, runs),
    )


def _higher_is_better(measure: str) -> bool:
    return measure == PASS_RATE or MEASURES[measure].higher_is_better


def _lost(of: Comparison, it: Difference) -> str | None:
    """Why lost cells stand against a verdict: too many, or they could turn a pass rate's round."""
    coverages = of.coverage_a or 0, of.coverage_b or 0
    if min(coverages) < MIN_COVERAGE:
        return f"coverage below {MIN_COVERAGE:.0%}"
    apart = of.bounds_b[0] > of.bounds_a[1] or of.bounds_a[0] > of.bounds_b[1]
    if it.measure == PASS_RATE and not apart:
        return "the lost cells could turn it round"
    return None
