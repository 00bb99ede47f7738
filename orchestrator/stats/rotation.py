"""Has the last of several nights dropped? An exact test whose unit is what one task gave on one night.

Where nothing changed, the results of a task on its nights are exchangeable: that of the candidate could as
well have been that of any other night. The statistic is the sum of the candidate's results over the tasks;
each task's share of it is uniform over its nights, independently of the other tasks, so the null distribution
is a convolution, which is computed whole: nothing is drawn at random, and the p-value is exact.

With one night as baseline this is the sign-flip permutation test on differences of task means, one-sided, and
with one run a task on top of that McNemar's exact test. Runs of one task and night may depend on each other
as they like, and a task may have its better and worse nights; a night on which all tasks move together is a
change to this test, for it is one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

POWER = 0.8
"""The probability of being seen that `detectable_drop` speaks of."""
_AT_ONCE = 1 << 22
"""Numbers of the distributions that are computed together: some tens of MB."""


def drop_p_values(values: Ints, present: Bools) -> Floats:
    """One-sided p-values, of shape (tests,): how probable a sum as low as the candidate's is by chance.

    `values` and `present` have the shape (tests, tasks, nights), the candidate's night last; values are whole
    numbers on any common scale, not negative. A task without a value of the candidate, or of any other night,
    says nothing and is left out. Without tasks a p-value is 1.
    """
    present = _usable(present)
    lowest = np.min(np.where(present, values, np.iinfo(np.int64).max), axis=-1, keepdims=True)
    shifts: Ints = np.where(present, values - lowest, 0)
    observed = shifts[..., -1].sum(axis=-1)
    p_values = np.empty(len(values))
    length = int(observed.max(initial=0)) + 1
    step = max(1, _AT_ONCE // length)
    for start in range(0, len(values), step):
        part = slice(start, start + step)
        p_values[part] = _tail(shifts[part], present[part], observed[part])
    return p_values


def smallest_p(present: Bools) -> Floats:
    """The p-value of a candidate that is the worst of all nights on every task: none can be less."""
    nights = np.maximum(_usable(present).sum(axis=-1), 1)
    return np.asarray(np.prod(1.0 / nights, axis=-1))


def null_deviation(values: Ints, present: Bools) -> Floats:
    """The standard deviation of the candidate's sum where nothing changed, on the scale of `values`."""
    present = _usable(present)
    nights = np.maximum(present.sum(axis=-1), 1)
    kept = np.where(present, values, 0)
    mean = kept.sum(axis=-1) / nights
    squares = np.where(present, (values - mean[..., None]) ** 2, 0.0).sum(axis=-1) / nights
    return np.asarray(np.sqrt(squares.sum(axis=-1)))


def detectable_drop(values: Ints, present: Bools, *, scale: int, level: float) -> Floats:
    """About how far the mean over the tasks has to drop to be seen with a probability of 80 %.

    `level` is what a p-value may be at most. In units of 1 ÷ `scale` of `values`, so that for pass rates it
    is a share of 1. It is never less than that as many tasks fall from 1 to 0 as a p-value of that size
    needs. Infinite where no drop could be seen.
    """
    from scipy.stats import norm

    usable = _usable(present)
    tasks = usable[..., -1].sum(axis=-1)
    spread = null_deviation(values, present) / scale
    nights = np.where(usable.any(axis=-1), usable.sum(axis=-1), 1)
    most = np.sort(-np.log(nights), axis=-1).cumsum(axis=-1)
    needed = (most > math.log(level) + 1e-9).sum(axis=-1) + 1
    # The mean of the candidate less that of the other nights: more than its distance from the mean of all.
    others = np.where(usable.any(axis=-1), nights - 1, 0).sum(axis=-1) / np.maximum(tasks, 1)
    distance = (norm.isf(level) + norm.isf(1 - POWER)) * spread * (1 + 1 / np.maximum(others, 1))
    drop = np.maximum(distance, needed) / np.maximum(tasks, 1)
    return np.asarray(np.where(needed > tasks, np.inf, drop))


def common_scale(runs: Sequence[int], most: int = 1000) -> int:
    """A scale on which a share of any of these numbers of runs is a whole number; `most` where none is as
    small.

    On the latter shares are rounded. A p-value is exact for the rounded ones.
    """
    return min(math.lcm(*(run for run in runs if run > 0)), most)


def _usable(present: Bools) -> Bools:
    """Which values say something: of tasks that the candidate and some other night have."""
    tasks = present[..., -1] & present[..., :-1].any(axis=-1)
    return np.asarray(present & tasks[..., None])


def _tail(shifts: Ints, present: Bools, observed: Ints) -> Floats:
    """P(sum ≤ observed) of each test. What lies above the largest observed sum is not followed."""
    tests, tasks, nights = shifts.shape
    length = int(observed.max(initial=0)) + 1
    at = np.arange(length)
    chance = np.zeros((tests, length))
    chance[:, 0] = 1.0
    weights = present / np.maximum(present.sum(axis=-1, keepdims=True), 1)
    weights[..., -1] += ~present.any(axis=-1)
    for task in range(tasks):
        moved = np.minimum(shifts[:, task], length)
        furthest = int(moved.max(initial=0))
        if not furthest:
            continue
        padded = np.concatenate([np.zeros((tests, furthest)), chance], axis=1)
        chance = np.zeros((tests, length))
        for night in range(nights):
            taken = at + (furthest - moved[:, night, None])
            chance += weights[:, task, night, None] * np.take_along_axis(padded, taken, axis=1)
    return np.asarray(np.minimum(np.where(at <= observed[:, None], chance, 0.0).sum(axis=1), 1.0))
