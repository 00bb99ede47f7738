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

_USABLE = 0.999
_MOST_LOG = 700
"""Logarithm of a ratio beyond which it is no number that a float can hold."""
_EXACT = 14
"""Tasks up to which all 2ⁿ ways to swap their sides are counted."""
_DRAWS = 10_000


def mcnemar(only_a: int, only_b: int) -> float:
    """The exact p-value of McNemar's test, from the numbers of tasks that one side alone passed."""
    from scipy.special import bdtr

    return min(1.0, 2 * float(bdtr(min(only_a, only_b), only_a + only_b, 0.5))) if only_a + only_b else 1.0


def sign_flip(differences: Sequence[float]) -> float:
    """The p-value of a mean difference over tasks, by the ways in which each task's sides could be swapped.

    All of them where at most 14 differ from 0, else a sample of 10,000 seeded from the differences.
    """
    given = np.array([value for value in differences if value], dtype=float)
    if not len(given):
        return 1.0
    swapped = _swaps(len(given), seed_of(given))
    return _reached(np.abs((1 - 2 * swapped) @ given), abs(math.fsum(given)), exact=len(given) <= _EXACT)


def _swaps(tasks: int, seed: int) -> Floats:
    """Ways in which the sides of tasks can be swapped, a row for each: all of them, or a sample."""
    if tasks <= _EXACT:
        ways = np.arange(1 << tasks)[:, None] >> np.arange(tasks) & 1
    else:
        ways = np.random.default_rng(seed).integers(0, 2, size=(_DRAWS, tasks))
    return ways.astype(np.float64)


def _reached(values: Floats, observed: float, *, exact: bool) -> float:
    """The share of the ways whose value is at least the observed one, which is one of them."""
    # Sums in another order differ in their last bits, and a tie counts. No number is as far as can be.
    least = observed * (1 - 1e-9) - 1e-15
    as_far = int(np.count_nonzero(np.nan_to_num(values, nan=np.inf) >= least))
    return as_far / len(values) if exact else (as_far + 1) / (len(values) + 1)


def difference_interval(differences: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of a mean of differences between -1 and 1, of one run a task on either side.

    Wald's, with half a task added to each of the four ways in which a pair can come out (Agresti and Min):
    it has a width also where no task differs.
    """
    tasks = len(differences) + 2
    middle = math.fsum(differences) / tasks
    half = NormalDist().inv_cdf(0.5 + LEVEL / 2) * math.sqrt(spread(differences) / tasks)
    return max(-1.0, middle - half), min(1.0, middle + half)


Kind = Literal["difference", "ratio"]


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


Sides = tuple[Floats, Floats, Kind]
"""A's and B's total and size of each task, of shape (tasks, 2), and how they are compared."""


def paired_contrasts(measures: Sequence[Sides]) -> list[Contrast | None]:
    """B's Σ totals ÷ Σ sizes beside A's, of several measures of the same tasks: the intervals by resampling
    tasks with both of their sides, the p-values by the ways in which each task's sides could be swapped.

    A `ratio` is B's over A's. Resampling alone would find a difference too often where a few tasks are most
    of a sum. None where a side, or one in a thousand resamples of it, comes to no number: nothing to divide
    by, or a ratio of 0.
    """
    if not measures:
        return []
    combined = np.hstack([np.hstack([a, b]) for a, b, _ in measures])
    sums = resample(combined, RESAMPLES)
    swaps = _swaps(len(combined), seed_of(combined))
    found = []
    for number, (a, b, kind) in enumerate(measures):
        resampled = _contrast(sums[:, 4 * number :][:, :2], sums[:, 4 * number + 2 :][:, :2], kind)
        found.append(_paired(a, b, kind, resampled, swaps))
    return found


def _paired(a: Floats, b: Floats, kind: Kind, resampled: Floats, swaps: Floats) -> Contrast | None:
    of_a, of_b = a.sum(axis=0), b.sum(axis=0)
    [observed] = _contrast(of_a[None, :], of_b[None, :], kind).tolist()
    usable = resampled[np.isfinite(resampled)]
    if not math.isfinite(observed) or len(usable) < _USABLE * len(resampled):
        return None
    [[low, high]] = expanded_percentiles(usable[:, None], len(a)).tolist()
    swapped = swaps @ (b - a)
    values = np.abs(_contrast(of_a + swapped, of_b - swapped, kind))
    p, error = _reached(values, abs(observed), exact=len(a) <= _EXACT), float(usable.std())
    if kind == "difference":
        return Contrast(observed, low, high, p, error)
    if max(map(abs, (observed, low, high))) > _MOST_LOG:
        return None
    return Contrast(math.exp(observed), math.exp(low), math.exp(high), p, error)


def _contrast(a: Floats, b: Floats, kind: Kind) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        of_a, of_b = a[:, 0] / a[:, 1], b[:, 0] / b[:, 1]
        found: Floats = np.log(of_b) - np.log(of_a) if kind == "ratio" else of_b - of_a
    return found


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
    mean: float,
    variance: float,
    tasks: int,
    *,
    within: float | None = None,
    runs: float = 1,
    step: float = 0,
) -> Needed:
    """From the mean difference of `tasks` tasks and its variance from task to task, by the normal
    approximation.

    `within` is the part of the variance that comes from runs, at `runs` runs a task on either side; None
    where that is not known. `step` is the least by which a task can differ: an exact test sees nothing where
    fewer than `MIN_TASKS` tasks do, however little varies.
    """
    from scipy.special import betaincinv

    normal = NormalDist()
    reach = (normal.inv_cdf(1 - ALPHA / 2) + normal.inv_cdf(POWER)) ** 2
    # The share of tasks at which enough of them differ with that chance.
    share = float(betaincinv(MIN_TASKS, tasks - MIN_TASKS + 1, POWER)) if tasks >= MIN_TASKS else 1.0
    detectable = max(math.sqrt(reach * variance / tasks), step * share)
    if not mean:
        return Needed(detectable, None, None)
    differing = min(1.0, abs(mean) / step) if step else 1.0
    at_least = MIN_TASKS + _most_misses(differing)
    more_tasks = max(at_least, math.ceil(reach * variance / mean**2))
    of_runs = min(variance, within or 0)
    left = mean**2 * tasks / reach - (variance - of_runs)
    return Needed(detectable, more_tasks, math.ceil(of_runs * runs / left) if left > 0 and of_runs else None)


def _most_misses(share: float) -> int:
    """How many tasks that do not differ come before the `MIN_TASKS`th that does, at most, with a chance of
    `POWER`, where this share of tasks differs: a quantile of the negative binomial distribution.
    """
    # Not scipy.stats.nbinom.ppf, which is this: importing it takes a second.
    from scipy.special import nbdtr, nbdtrik

    misses = max(0, math.ceil(float(nbdtrik(POWER, MIN_TASKS, share))))
    return misses - 1 if misses and nbdtr(misses - 1, MIN_TASKS, share) >= POWER else misses


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
