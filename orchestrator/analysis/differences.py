"""How two sides of the same tasks differ, each with what ran on a task once or several times, and what may be
said of it.

The unit of inference is the task. The methods and what they assume are those of docs/reports.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np

from orchestrator.analysis.measures import ALL_ALIKE
from orchestrator.analysis.units import Runs
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

Verdict = Literal[
    "better",
    "worse",
    "higher",
    "lower",
    "no detectable difference",
    "too few shared tasks",
    "too many lost cells",
    "not measured",
]
"""Of B beside A. `higher` and `lower` are of what is neither good nor bad."""
Direction = Literal["higher", "lower", "neither"]
"""Which is better."""

MCNEMAR = "exact McNemar"
SIGN_FLIP = "sign-flip permutation"
SWAP = "paired permutation"
UNTESTED = "none"

FEW = f"fewer than {MIN_TASKS} shared tasks"
NO_NUMBER = "a side is 0, or passes so few tasks that resamples pass none"
NO_UNIT = "no unit has a counted run on both sides"
PASS_RATE = "pass_rate"

Paired = Sequence[tuple[Runs, Runs]]
"""All that ran on one task on both sides, A's first."""


@dataclass(frozen=True)
class What:
    """A measure that is compared: by difference or by ratio, a mean or what is spent for each pass."""

    kind: Scale
    better: Direction
    value: str
    per_pass: bool = False


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


def of_pass_rates(tasks: Sequence[Paired]) -> Difference:
    """The difference of the pass rates. Its verdict is given when all are known that are made with it."""
    units = [pair for of in tasks for pair in of]
    if not units:
        return unknown(PASS_RATE, "difference", NO_UNIT)
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


def _gain(pair: tuple[Runs, Runs]) -> float:
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


def _variance(unit: Runs) -> float:
    """Of the mean of a unit's runs."""
    return unit.passes * (unit.runs - unit.passes) / (unit.runs**2 * (unit.runs - 1))


def of_measures(tasks: Sequence[Paired], measures: Mapping[str, What]) -> tuple[Difference, ...]:
    """All of `measures`, resampled together. Their verdicts are given when all are known that are made with
    them.
    """
    known: dict[str, Sides] = {}
    found: dict[str, Difference] = {}
    for measure, what in measures.items():
        sides = _sides(what, tasks)
        if isinstance(sides, str):
            found[measure] = unknown(measure, what.kind, sides)
        else:
            known[measure] = sides
    enough = len(tasks) >= MIN_TASKS
    contrasts = paired_contrasts(list(known.values())) if enough else [None] * len(known)
    for (measure, sides), contrast in zip(known.items(), contrasts, strict=True):
        found[measure] = _of_measure(measure, sides, contrast)
    return tuple(found[measure] for measure in measures)


def _sides(what: What, tasks: Sequence[Paired]) -> Sides | str:
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


def _sums(units: Sequence[Runs], what: What) -> tuple[float, float]:
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


def unknown(measure: str, kind: Scale, reason: str) -> Difference:
    """One that was not measured, with the reason."""
    nothing = dict.fromkeys(("a", "b", "value", "low", "high", "p", "p_adjusted", "effect", "needed"))
    return Difference(
        measure=measure, kind=kind, method=UNTESTED, verdict="not measured", reason=reason, **nothing
    )


def _mean_of(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def corrected(family: Sequence[Difference | None]) -> list[float | None]:
    """The p-values of what is tested together, adjusted by Holm's method; None for what has no test."""
    tested = [it.p for it in family if it is not None and it.p is not None]
    adjusted = iter(holm(tested))
    return [None if it is None or it.p is None else next(adjusted) for it in family]


class Shared(Protocol):
    """What a difference is over: the tasks of both sides, and the fewest and the most runs of each."""

    @property
    def tasks(self) -> int: ...
    @property
    def runs_a(self) -> tuple[int, int]: ...
    @property
    def runs_b(self) -> tuple[int, int]: ...


def judged(
    it: Difference, p: float | None, over: Shared, better: Direction, lost: str | None = None
) -> Difference:
    """With its verdict. `p` is corrected; `lost` says why lost cells stand against a verdict."""
    verdict: Verdict
    reason = it.reason
    if not over.tasks:
        verdict = "not measured"
    elif over.tasks < MIN_TASKS:
        verdict, reason = "too few shared tasks", reason if it.value is None else FEW
    elif p is None or it.value is None:
        verdict = "not measured"
    elif p >= ALPHA:
        verdict = "no detectable difference"
    elif lost:
        verdict, reason = "too many lost cells", lost
    else:
        grew = it.value > (1 if it.kind == "ratio" else 0)
        if better == "neither":
            verdict = "higher" if grew else "lower"
        else:
            verdict = "better" if grew == (better == "higher") else "worse"
    wanted = _more(over, it.needed) if verdict == "no detectable difference" and it.needed else None
    return replace(it, p_adjusted=p, verdict=verdict, reason=reason, needed=wanted)


def _more(over: Shared, wanted: Needed) -> Needed:
    """More than what there is, which was not enough: neither chance nor Holm's correction is in the
    approximation.
    """
    runs = min(over.runs_a[0], over.runs_b[0]) + 1
    return replace(
        wanted,
        tasks=None if wanted.tasks is None else max(wanted.tasks, over.tasks + 1),
        runs=None if wanted.runs is None else max(wanted.runs, runs),
    )
