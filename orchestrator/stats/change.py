"""What a series of nights tells: where its level changed, and whether a task's runs agree with each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from orchestrator.stats.rates import Floats, seed_of

MIN_NIGHTS = 8
"""With fewer, no order of the nights is so rare that a change in it could be told from chance."""
MIN_SIDE = 2
"""Nights on either side of a change: one odd night is no new level."""
MIXED = 0.05
"""A task is flaky where more than one run in twenty differs from the others."""

Ints = NDArray[np.int64]

_EXACT = 8
_DRAWS = 20_000


@dataclass(frozen=True)
class Step:
    """The greatest change of level in a series: `at` is the index of the first value after it, `before` and
    `after` are the means of either side, and `p` is how often nights in random order show one as great
    somewhere.
    """

    at: int
    before: float
    after: float
    p: float


def step(levels: Sequence[float]) -> Step | None:
    """Where the level of a series of at least `MIN_NIGHTS` nights changed most; None of a shorter one.

    The nights are exchanged whole, so that what moves all tasks of a night together is part of the noise. All
    orders where there are 8, else 20,000 of them, seeded from the levels.
    """
    if len(levels) < MIN_NIGHTS:
        return None
    series = np.array(levels, dtype=float)
    observed = _contrasts(series[None])[0]
    split = int(np.argmax(np.abs(observed)))
    # Sums in another order differ in their last bits, and a tie counts.
    reached = abs(float(observed[split])) - 1e-9 * float(np.abs(series - series.mean()).sum())
    found = np.abs(_contrasts(series[_orders(series)])).max(axis=1)
    hits = int(np.count_nonzero(found >= reached))
    p = hits / len(found) if len(series) <= _EXACT else (hits + 1) / (len(found) + 1)
    at = split + MIN_SIDE
    return Step(at, float(series[:at].mean()), float(series[at:].mean()), p)


def _orders(series: Floats) -> Ints:
    """Orders of the nights, one a row."""
    nights = len(series)
    if nights <= _EXACT:
        return _all_orders(nights)
    random = np.random.default_rng(seed_of(series))
    return random.permuted(np.tile(np.arange(nights, dtype=np.int64), (_DRAWS, 1)), axis=1)


@cache
def _all_orders(nights: int) -> Ints:
    return np.array(list(permutations(range(nights))), dtype=np.int64)


def _contrasts(series: Floats) -> Floats:
    """For each row and each split, the difference of the two means over its standard deviation but for a
    factor.
    """
    nights = series.shape[1]
    left = np.arange(MIN_SIDE, nights - MIN_SIDE + 1)
    centred = series - series.mean(axis=1, keepdims=True)
    sums = np.cumsum(centred, axis=1)[:, left - 1]
    return np.asarray(-sums / np.sqrt(left * (nights - left) / nights))


def mixed_p(runs: int, passes: int) -> float:
    """The p-value of a task whose runs differ in at most `MIXED` of them, one-sided and exact (binomial)."""
    from scipy.stats import binom

    fewer = min(passes, runs - passes)
    return float(binom.sf(fewer - 1, runs, MIXED)) if fewer else 1.0


def disagreement(runs: int, passes: int) -> float | None:
    """How probable it is that two runs differ, without bias; None of fewer than two."""
    return None if runs < 2 else 2 * passes * (runs - passes) / (runs * (runs - 1))


def disagreement_within(nights: Sequence[tuple[int, int]]) -> float | None:
    """The same of two runs of one night; `nights` has (runs, passes) of each. None where no night has two
    runs.
    """
    pairs = math.fsum(runs * (runs - 1) / 2 for runs, _ in nights)
    return math.fsum(passes * (runs - passes) for runs, passes in nights) / pairs if pairs else None
