"""Two sides of the same tasks: whether they differ, by how much, and how much it takes to see it.

All tests are two-sided. The unit is the task: what is given is one difference, or one pair of sums, for each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np

from orchestrator.stats.rates import LEVEL, Floats, expanded_percentiles, resample, seed_of

ALPHA = 1 - LEVEL
POWER = 0.8
MIN_TASKS = 6
"""With fewer no exact test can come below 0.05, whatever is seen: 2 / 2⁵ is 0.0625."""
RESAMPLES = 10_000

_EXACT = 14
"""Differences up to which all 2ⁿ ways to sign them are counted."""
_DRAWS = 20_000


def mcnemar(only_a: int, only_b: int) -> float:
    """The exact p-value of McNemar's test, from the numbers of tasks that one side alone passed."""
    from scipy.special import bdtr

    return min(1.0, 2 * float(bdtr(min(only_a, only_b), only_a + only_b, 0.5))) if only_a + only_b else 1.0


def sign_flip(differences: Sequence[float]) -> float:
    """The p-value of a mean difference over tasks, by the ways in which each task's sides could be swapped.

    All of them where at most 14 differ from 0, else a sample of 20,000 seeded from the differences.
    """
    given = np.array([value for value in differences if value], dtype=float)
    if not len(given):
        return 1.0
    # Sums in another order differ in their last bits, and a tie counts.
    reached = abs(math.fsum(given)) - 1e-9 * float(np.abs(given).sum())
    if len(given) <= _EXACT:
        ways = np.arange(1 << len(given))[:, None] >> np.arange(len(given)) & 1
        return float(np.mean(np.abs((1 - 2 * ways) @ given) >= reached))
    random = np.random.default_rng(seed_of(given))
    signs = 1 - 2 * random.integers(0, 2, size=(_DRAWS, len(given)))
    return float((np.count_nonzero(np.abs(signs @ given) >= reached) + 1) / (_DRAWS + 1))


def difference_interval(differences: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of a mean of differences between -1 and 1, of one run a task on either side.

    Wald's, with half a task added to each of the four ways in which a pair can come out (Agresti and Min):
    it has a width also where no task differs.
    """
    tasks = len(differences) + 2
    middle = math.fsum(differences) / tasks
    half = NormalDist().inv_cdf(0.5 + LEVEL / 2) * math.sqrt(spread(differences) / tasks)
    return max(-1.0, middle - half), min(1.0, middle + half)


@dataclass(frozen=True)
class Contrast:
    """How B differs from A: `value` with its 95 % interval, and the p-value of no difference. `error` is the
    standard error, of a ratio that of its logarithm.
    """

    value: float
    low: float
    high: float
    p: float
    error: float


Kind = Literal["difference", "ratio"]


def paired_bootstrap(a: Floats, b: Floats, kind: Kind, *, resamples: int = RESAMPLES) -> Contrast | None:
    """B's Σ totals ÷ Σ sizes beside A's, by resampling tasks with both of their sides.

    `a` and `b` have a row for each task: total and size. A `ratio` is B's over A's, and lies between
    intervals of its logarithm. The p-value is the level at which the interval just holds no difference.
    None where a side, or too many resamples of it, come to no number: nothing to divide by, or a ratio of 0.
    """
    combined = np.hstack([a, b])
    observed = _contrast(combined.sum(axis=0)[None, :], kind)
    found = _contrast(resample(combined, resamples), kind)
    usable = found[np.isfinite(found)]
    if not np.isfinite(observed).all() or len(usable) < _USABLE * len(found):
        return None
    [[low, high]] = expanded_percentiles(usable[:, None], len(a)).tolist()
    value = float(observed[0])
    p, error = _p_value(usable, len(a)), float(usable.std())
    if kind == "ratio":
        value, low, high = math.exp(value), math.exp(low), math.exp(high)
    return Contrast(value, low, high, p, error)


_USABLE = 0.999


def _contrast(sums: Floats, kind: Kind) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        a, b = sums[:, 0] / sums[:, 1], sums[:, 2] / sums[:, 3]
        found: Floats = np.log(b) - np.log(a) if kind == "ratio" else b - a
    return found


def _p_value(resampled: Floats, tasks: int) -> float:
    """The least level at which `expanded_percentiles` would leave out 0."""
    from scipy.special import stdtr

    # Rounding makes a 0 of the data into something beside it.
    tiny = 1e-12 * float(np.abs(resampled).max(initial=0))
    beyond = min(np.count_nonzero(resampled <= tiny), np.count_nonzero(resampled >= -tiny))
    tail = min(0.5, (beyond + 1) / (len(resampled) + 1))
    t = NormalDist().inv_cdf(tail) / math.sqrt(tasks / (tasks - 1))
    return min(1.0, 2 * float(stdtr(tasks - 1, t)))


@dataclass(frozen=True)
class Needed:
    """What it would take to see a difference with a chance of 80 % at a level of 5 %.

    `detectable` is the smallest difference that the tasks at hand would show; `tasks` how many it would take
    to show the one that was observed, at as many runs; `runs` how many runs a task on either side, with the
    tasks at hand. None where no number is enough, or where it cannot be told: no difference was observed, or
    (of runs) a task ran once and nobody knows how far its runs differ.
    """

    detectable: float
    tasks: int | None
    runs: int | None


def needed(
    mean: float, variance: float, tasks: int, *, within: float | None = None, runs: float = 1
) -> Needed:
    """From the mean difference of `tasks` tasks and its variance from task to task, by the normal
    approximation.

    `within` is the part of the variance that comes from runs, at `runs` runs a task on either side; None
    where that is not known.
    """
    normal = NormalDist()
    reach = (normal.inv_cdf(1 - ALPHA / 2) + normal.inv_cdf(POWER)) ** 2
    detectable = math.sqrt(reach * variance / tasks)
    if not mean:
        return Needed(detectable, None, None)
    more_tasks = max(MIN_TASKS, math.ceil(reach * variance / mean**2))
    of_runs = min(variance, within or 0)
    left = mean**2 * tasks / reach - (variance - of_runs)
    return Needed(detectable, more_tasks, math.ceil(of_runs * runs / left) if left > 0 and of_runs else None)


def spread(differences: Sequence[float]) -> float:
    """The variance of differences between -1 and 1 from task to task, as `difference_interval` takes it: that
    few tasks show no difference is no proof that there is none.
    """
    tasks, total = len(differences) + 2, math.fsum(differences)
    return (_squares(differences) + 1 - total * total / tasks) / tasks


def cohens_h(a: float, b: float) -> float:
    """The size of a difference between two proportions; 0.2 is called small, 0.5 medium, 0.8 large."""
    return 2 * math.asin(math.sqrt(b)) - 2 * math.asin(math.sqrt(a))


def _squares(values: Sequence[float]) -> float:
    return math.fsum(value * value for value in values)
