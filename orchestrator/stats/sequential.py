"""Inference that holds at every look: which of several means differ, by bets against "they do not".

*What is estimated.* For two contestants, over a fixed set of tasks: the mean over the tasks of the difference
of their pass probabilities. The tasks are not a sample; what is random are the runs. A *round* is one run of
every task by both, and gives one difference in [-1, 1] for each task (1: only the first passed).

*What is assumed.* Given the past, the differences of a round are independent over the tasks, and the
difference of a task has the same mean in every round. Nothing is assumed of how tasks differ from each other,
nor of why a result is missing.

*The bet.* Against "the mean difference is at most null" a gambler whose wealth is 1 multiplies it in each
round by the product over the tasks of 1 + bet × (difference - null - centre). The bet, and the centres, which
sum to 0 over the tasks, are fixed before the round. With independent tasks the expectation of the product is
the product of the expectations, and this is at most its value at their mean (the inequality of the geometric
and the arithmetic mean): at most 1 where the null is true, however the tasks differ. So the wealth is a
nonnegative supermartingale, and by Ville's inequality it *ever* reaches 1/alpha with probability at most
alpha: one may look after every round, and stop for any reason. (Waudby-Smith and Ramdas, "Estimating means of
bounded random variables by betting", 2024, for bets; here one bet is held over all tasks of a round.)

*The centres* are what is known of each task from earlier rounds: how much further apart the two are on it
than on average, shrunk to 0 as far as that may be noise. They take the variance between tasks out of the
bets, as pairing by task does in a test.

*Several pairs.* At every look the bets of all pairs, in both directions, are judged together by closed
testing with means of e-values (Vovk and Wang, "E-values: calibration, combination and applications", 2021):
a mean of supermartingales is one, so that *any* wrong decision at *any* look has probability at most alpha.
It is never weaker than Bonferroni's or Holm's correction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

ALPHA = 0.05
"""Probability of any wrong decision at any look, at most."""

BETS = (0.1, 0.25, 0.5, 0.8)
"""Small bets find small differences, large ones find large differences soon; the wealth is spread evenly.
They depend on neither the data nor the number of rounds planned, so that rounds may be added at any time.
"""

_KEPT = 0.05
"""Share of its wealth that a bet keeps on a task whatever happens."""

_NULLS = 201
"""Values of a difference that intervals look at: hundredths, a part of them at a time."""
_PARTS = 8

_LARGEST_LOG = 600.0
_ROUNDS_TO_MOVE = 3
_ORDERS = 999
_AT_ONCE = 500_000


def log_evidence(differences: Floats, null: Floats | float = 0.0) -> Floats:
    """The logarithm of the wealth that was won against "the mean difference is at most `null`", after each
    round.

    `differences` has the shape (…, rounds, tasks) and lies in [-1, 1], `null` that of the leading axes (or
    broadcasts to it) and lies in [-1, 1]; the result has the shape (…, rounds). Where a result is missing the
    difference is the least that it may have been.
    """
    rounds = differences.shape[-2]
    nulls = np.asarray(null, dtype=np.float64)
    lead = np.broadcast_shapes(differences.shape[:-2], nulls.shape)
    wealth = np.zeros((*lead, len(BETS)))
    found = np.zeros((*lead, rounds))
    for number in range(rounds):
        centres = _centres(differences[..., :number, :])
        largest = centres.max(axis=-1, initial=0.0)
        for index, bet in enumerate(BETS):
            held = np.minimum(bet, (1 - _KEPT) / np.maximum(1 + nulls, 1e-9))
            # As much of the centres as leaves the bet something in the worst case.
            room = (1 - _KEPT) / held - 1 - nulls
            part = np.clip(room / np.maximum(largest, 1e-9), 0.0, 1.0)
            won = differences[..., number, :] - nulls[..., None] - part[..., None] * centres
            wealth[..., index] += np.log1p(held[..., None] * won).sum(axis=-1)
        found[..., number] = np.logaddexp.reduce(wealth, axis=-1) - math.log(len(BETS))
    return found


def _centres(past: Floats) -> Floats:
    """For each task, how much further from the others' mean its next difference may be expected: 0 in sum.

    Empirical Bayes: the means of the tasks are shrunk by the share of their variance that is noise, which one
    round alone does not tell.
    """
    rounds, tasks = past.shape[-2:]
    if rounds < 2 or tasks < 2:
        return np.zeros((*past.shape[:-2], tasks))
    means = past.mean(axis=-2)
    apart = means - means.mean(axis=-1, keepdims=True)
    of_mean = past.var(axis=-2, ddof=1).mean(axis=-1) / rounds
    between = np.maximum(apart.var(axis=-1, ddof=1) - of_mean, 0.0)
    share = between / np.maximum(between + of_mean, 1e-12)
    return np.asarray(apart * share[..., None], dtype=np.float64)


def interval(least: Floats, most: Floats, alpha: float) -> tuple[float, float]:
    """The values of the mean difference that no look so far has ruled out: a confidence sequence.

    `least` and `most` (rounds, tasks) are the differences with missing results taken as the worst and the
    best for the first contestant. With probability 1 - alpha the mean is within the interval at all looks.
    """
    return _lowest(least, alpha / 2), -_lowest(-most, alpha / 2)


def _lowest(differences: Floats, alpha: float) -> float:
    """Below which value the mean is not: the largest null that is ruled out with all that are below it."""
    if not differences.shape[-2]:
        return -1.0
    low = -1.0
    for nulls in np.array_split(np.linspace(-1.0, 1.0, _NULLS), _PARTS):
        evidence = log_evidence(np.broadcast_to(differences, (len(nulls), *differences.shape)), nulls)
        ruled_out = evidence.max(axis=-1) >= -math.log(alpha)
        first_left = len(nulls) if ruled_out.all() else int(np.argmin(ruled_out))
        low = float(nulls[first_left - 1]) if first_left else low
        if first_left < len(nulls):
            break
    return round(low, 2)


def adjusted(log_values: Floats) -> Floats:
    """Logarithms of e-values (…, hypotheses), adjusted for there being several.

    A hypothesis may be rejected at level alpha where its adjusted value reaches 1/alpha: the mean over every
    set of hypotheses that it is part of is then at least as large. Any dependence between them is allowed.
    """
    values = np.exp(np.minimum(log_values, _LARGEST_LOG))
    order = np.argsort(values, axis=-1, kind="stable")
    ascending = np.take_along_axis(values, order, axis=-1)
    below = np.cumsum(ascending, axis=-1)
    least = ascending.copy()
    for others in range(1, values.shape[-1]):
        # The smallest others alone can lower a mean, and once one more does not, none does.
        means = (ascending[..., others:] + below[..., others - 1 : others]) / (others + 1)
        if not (means < least[..., others:]).any():
            break
        least[..., others:] = np.minimum(least[..., others:], means)
    found = np.empty_like(least)
    np.put_along_axis(found, order, least, axis=-1)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(found), dtype=np.float64)


@dataclass
class Race:
    """Which pairs of contestants are decided, round after round; of one race, or of a batch of races at once.

    `verdicts` (…, pairs) is 1 where the first of a pair is better, -1 where the second is and 0 where it is
    open; `decided_in` is the round in which it came to that, 0 while it is open. A decision stays. What
    follows from others (a above b, b above c) is decided with them: it is wrong only where one of them is.
    """

    contestants: int
    pairs: tuple[tuple[int, int], ...]
    batch: tuple[int, ...] = ()
    alpha: float = ALPHA
    rounds: int = 0
    verdicts: Ints = field(init=False)
    decided_in: Ints = field(init=False)

    def __post_init__(self) -> None:
        both = np.array(self.pairs, dtype=np.int64).reshape(-1, 2)
        self._first, self._second = both[:, 0], both[:, 1]
        self.verdicts = np.zeros((*self.batch, len(both)), dtype=np.int64)
        self.decided_in = np.zeros_like(self.verdicts)

    def look(self, first_better: Floats, second_better: Floats) -> None:
        """Judge one more round, by the logarithms of what was won so far by betting on either of each pair
        (…, pairs): 0 where nothing was bet yet, and what it was where a pair did not run on.
        """
        self.rounds += 1
        both = adjusted(np.concatenate([first_better, second_better], axis=-1))
        enough = both >= -math.log(self.alpha)
        first, second = np.split(enough, 2, axis=-1)
        self._decide(first & ~second, second & ~first)
        above = self._above()
        for between in range(self.contestants):
            above |= above[..., :, between, None] & above[..., None, between, :]
        up, down = above[..., self._first, self._second], above[..., self._second, self._first]
        self._decide(up & ~down, down & ~up)

    def _decide(self, first: Bools, second: Bools) -> None:
        new = (self.verdicts == 0) & (first | second)
        self.verdicts[new] = np.where(first, 1, -1)[new]
        self.decided_in[new] = self.rounds

    def _above(self) -> Bools:
        """(…, contestants, contestants): whether the one was decided to be better than the other."""
        above = np.zeros((*self.batch, self.contestants, self.contestants), dtype=np.bool_)
        above[..., self._first, self._second] = self.verdicts == 1
        above[..., self._second, self._first] = self.verdicts == -1
        return above

    @property
    def undecided(self) -> Bools:
        """(…, contestants): who has an open pair left."""
        open_pairs = self.verdicts == 0
        found = np.zeros((*self.batch, self.contestants), dtype=np.bool_)
        for index, (one, two) in enumerate(self.pairs):
            found[..., one] |= open_pairs[..., index]
            found[..., two] |= open_pairs[..., index]
        return found


def fewest_rounds(tasks: int, pairs: int, alpha: float = ALPHA) -> int:
    """In how many rounds a pair can be decided at the earliest: one that passes all tasks against one that
    passes none, beside others that are as clear.
    """
    needed = math.log((pairs + 1) / alpha)
    rounds = 1
    while log_evidence(np.ones((rounds, tasks)))[-1] < needed:
        rounds += 1
    return rounds


def moved_together(scores: Floats) -> float | None:
    """A p-value against the independence of the tasks of a round, by one contestant's `scores` (rounds,
    tasks).

    It is the permutation test of whether the means of rounds are further apart than they are with each task's
    rounds in any other order; None for fewer than three rounds, or where nothing varies.
    """
    if len(scores) < _ROUNDS_TO_MOVE or not (scores != scores[0]).any():
        return None
    rng, apart, as_far = np.random.default_rng(0), scores.sum(axis=-1).var(), 0
    at_once = max(1, _AT_ONCE // scores.size)
    for start in range(0, _ORDERS, at_once):
        some = np.tile(scores, (min(at_once, _ORDERS - start), 1, 1))
        others = rng.permuted(some, axis=1).sum(axis=-1).var(axis=-1)
        # Equal ones may differ in the last bit.
        as_far += int((others >= apart - 1e-9).sum())
    return (1 + as_far) / (1 + _ORDERS)
