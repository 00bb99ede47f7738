"""Rates and means of tasks that were run once or several times, with their intervals.

Runs of one task are not independent of each other, so the unit of inference is the *cluster*: a task with
all that ran on it. An interval says what further tasks of the same kind would give.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95
RESAMPLES = 2000
MIN_CLUSTERS = 5
"""Below it there are too few ways to resample for percentiles to mean anything."""

Floats = NDArray[np.float64]

_CHUNK = 250_000
"""Products of a block of resampling weights with the columns. So few are done where they are asked for: with
more, the library for matrices wakes threads, which takes several times as long as the products.
"""


def wilson(successes: float, trials: int, level: float = LEVEL) -> tuple[float, float]:
    """Wilson's score interval of a proportion. `successes` may be a fraction of a count; `trials` >= 1."""
    z = NormalDist().inv_cdf(0.5 + level / 2)
    rate = successes / trials
    middle = (rate + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * math.sqrt(rate * (1 - rate) / trials + z * z / (4 * trials * trials))
    return (0.0 if rate == 0 else max(0.0, middle - half)), (1.0 if rate == 1 else min(1.0, middle + half))


def pass_at_k(runs: int, passed: int, k: int) -> float:
    """The chance that of `k` runs at least one passes, without bias from `runs` >= `k` runs of a task."""
    return 1 - math.comb(runs - passed, k) / math.comb(runs, k)


def pass_hat_k(runs: int, passed: int, k: int) -> float:
    """The chance that `k` runs all pass, without bias from `runs` >= `k` runs of a task."""
    return math.comb(passed, k) / math.comb(runs, k)


def spread_over_runs(tasks: Sequence[tuple[int, int]]) -> float | None:
    """The standard deviation of a pass rate over tasks from one run of them all to the next.

    `tasks` holds (runs, passed) of each. None where any task has fewer than two runs.
    """
    if not tasks or any(runs < 2 for runs, _ in tasks):
        return None
    variances = (passed * (runs - passed) / (runs * (runs - 1)) for runs, passed in tasks)
    return math.sqrt(math.fsum(variances)) / len(tasks)


def seed_of(*arrays: Floats) -> int:
    """A seed that depends on the numbers and their shapes alone."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(repr(array.shape).encode() + np.ascontiguousarray(array, dtype="<f8").tobytes())
    return int.from_bytes(digest.digest()[:8], "little")


def cluster_bootstrap(totals: Floats, sizes: Floats, *, level: float = LEVEL) -> Floats:
    """Intervals of the ratios Σ totals ÷ Σ sizes, by resampling clusters; shape (measures, 2).

    `totals` and `sizes` have a row for each cluster and a column for each measure; rows are resampled whole.
    A bound is infinite where too many resamples have a size of 0, and an interval has no width where all
    clusters are alike. Raises ValueError below `MIN_CLUSTERS` clusters.
    """
    clusters, measures = totals.shape
    sums = resample(np.hstack([totals, sizes]))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = sums[:, :measures] / sums[:, measures:]
    return expanded_percentiles(np.nan_to_num(ratios, nan=np.inf, posinf=np.inf), clusters, level)


def resample(columns: Floats, resamples: int = RESAMPLES) -> Floats:
    """The sums of the columns over clusters drawn with replacement; a row for each resample.

    `columns` has a row for each cluster. Raises ValueError below `MIN_CLUSTERS` clusters.
    """
    clusters = columns.shape[0]
    if clusters < MIN_CLUSTERS:
        raise ValueError(f"{clusters} clusters are fewer than {MIN_CLUSTERS}")
    random = np.random.default_rng(seed_of(columns))
    rows = max(1, _CHUNK // columns.size)
    return np.concatenate(
        [
            _weights(random, min(rows, resamples - start), clusters) @ columns
            for start in range(0, resamples, rows)
        ]
    )


def expanded_percentiles(resampled: Floats, clusters: int, level: float = LEVEL) -> Floats:
    """Intervals from resampled values, of shape (resamples, measures); shape (measures, 2).

    Plain percentiles are too narrow where clusters are few. These are widened by what Student's t is wider
    than the normal distribution, and by the bias of a variance over n instead of n - 1.
    """
    from scipy.special import stdtrit

    t = float(stdtrit(clusters - 1, 0.5 + level / 2))
    below = NormalDist().cdf(-math.sqrt(clusters / (clusters - 1)) * t)
    ordered = np.sort(resampled, axis=0)
    low = math.floor(below * (len(ordered) - 1))
    return np.stack([ordered[low], ordered[len(ordered) - 1 - low]], axis=1)


def _weights(random: np.random.Generator, rows: int, clusters: int) -> Floats:
    """How often each cluster is drawn in each resample."""
    drawn = random.integers(0, clusters, size=(rows, clusters))
    drawn += np.arange(rows)[:, None] * clusters
    counts = np.bincount(drawn.ravel(), minlength=rows * clusters).reshape(rows, clusters)
    return counts.astype(np.float64)
