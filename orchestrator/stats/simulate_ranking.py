"""How often adaptive runs are wrong, and what they save: sweeps are drawn from known probabilities, and run
as real ones are.

A *false alarm* is a sweep in which any pair of contestants is told apart that is equally good, or the wrong
way round, at any of its looks.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from orchestrator.stats.sequential import ALPHA, Bools, Floats, Ints, Race, log_evidence
from orchestrator.stats.simulate_gate import Rate, rate_of, rejected

_SWEEPS_AT_ONCE = 250
_HALVINGS = 40
_FARTHEST = 15.0


@dataclass(frozen=True)
class Setup:
    """Sweeps of a contestant for each of `rates`, the means of its pass probability over the `tasks`.

    Tasks differ in difficulty, by a standard deviation of `spread` logits, and each contestant finds each
    task easier or harder than the others do, by one of `own`. `infra` is the probability that a run is
    lost; `infra_failing` that a run which the first contestant fails is lost. With `swing` the assumption
    is broken that the tasks of a round are independent: in each round all tasks of a contestant move
    together, by a standard deviation of so many logits.
    """

    rates: tuple[float, ...]
    tasks: int = 10
    least: int = 2
    most: int = 12
    spread: float = 1.5
    own: float = 0.0
    infra: float = 0.0
    infra_failing: float = 0.0
    swing: float = 0.0

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return list(combinations(range(len(self.rates)), 2))

    @property
    def truth(self) -> Ints:
        """Of each pair: 1 where the first is better, -1 where the second is, 0 where neither is."""
        return np.array(
            [np.sign(self.rates[one] - self.rates[two]) for one, two in self.pairs], dtype=np.int64
        )


@dataclass(frozen=True)
class Study:
    """What came of the sweeps of one set-up.

    `told_apart` is the share of the pairs that do differ which were told apart rightly, None where none
    does; `cells` the share of the most runs of every contestant that was run. The rest is about tests
    that are made for one look, at the same data: `peeking` is the share of sweeps with a false alarm
    where one is made after every round, `one_look` the share of differing pairs told apart where it is
    made once, after the most runs, and `as_many_cells` the same where it is made once, after the uniform
    runs that take as many cells as the adaptive ones did on average, rounded.
    """

    setup: Setup
    false_alarms: Rate
    told_apart: float | None
    cells: float
    peeking: Rate
    one_look: float | None
    as_many_cells: float | None


def study(setup: Setup, sweeps: int, seed: int) -> Study:
    """Simulate so many sweeps. The same seed gives the same numbers."""
    rng = np.random.default_rng(seed)
    alarms, told, cells, fixed = [], [], [], []
    for start in range(0, sweeps, _SWEEPS_AT_ONCE):
        least, most = _draw(setup, min(_SWEEPS_AT_ONCE, sweeps - start), rng)
        verdicts, rounds = run(setup, least, most)
        alarms.append(_wrong(verdicts, setup.truth))
        told.append(_right(verdicts, setup.truth))
        cells.append(rounds.mean() / setup.most)
        fixed.append(_one_look_each(setup, (least + most) / 2))
    looks = np.concatenate(fixed)
    peeked: Bools = np.any(_wrong(looks, setup.truth), axis=-1)
    share = float(np.mean(cells))
    at_most = [
        _right(looks[:, number], setup.truth) for number in (-1, round(share * setup.most) - setup.least)
    ]
    return Study(
        setup=setup,
        false_alarms=rate_of(np.concatenate(alarms)),
        told_apart=_mean(told),
        cells=share,
        peeking=rate_of(peeked),
        one_look=_mean(at_most[:1]),
        as_many_cells=_mean(at_most[1:]),
    )


def run(setup: Setup, least: Floats, most: Floats) -> tuple[Ints, Ints]:
    """The verdicts (sweeps, pairs) and the runs of each contestant (sweeps, contestants) of adaptive sweeps.

    `least` and `most` (sweeps, contestants, rounds, tasks) are what each run would score where it was run,
    which differ where its result is lost.
    """
    pairs = tuple(setup.pairs)
    one, two = (list(numbers) for numbers in zip(*pairs, strict=True))
    first = log_evidence(least[:, one] - most[:, two])
    second = log_evidence(least[:, two] - most[:, one])
    race = Race(len(setup.rates), pairs, batch=least.shape[:1])
    going = np.ones(least.shape[:2], dtype=np.bool_)
    rounds = np.zeros(least.shape[:2], dtype=np.int64)
    won = np.zeros((2, *first.shape[:2]))
    for number in range(1, setup.most + 1):
        if number > setup.least:
            going &= race.undecided
        both = going[:, one] & going[:, two]
        rounds += going
        won = np.where(both, np.stack([first[..., number - 1], second[..., number - 1]]), won)
        race.look(won[0], won[1])
    return race.verdicts, rounds


def _draw(setup: Setup, sweeps: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """(sweeps, contestants, rounds, tasks) twice: what each run scores, a lost one as failed, as passed."""
    count = len(setup.rates)
    logits = (
        rng.normal(0, setup.spread, (sweeps, 1, setup.tasks)) if setup.spread else np.zeros((sweeps, 1, 1))
    )
    logits = logits + rng.normal(0, setup.own, (sweeps, count, setup.tasks))
    logits = _levelled(logits, np.array(setup.rates)[:, None])
    swings = rng.normal(0, setup.swing, (sweeps, count, setup.most, 1))
    chances = 1 / (1 + np.exp(-(logits[:, :, None, :] + swings)))
    passed = rng.random(chances.shape) < chances
    lost = rng.random(chances.shape) < setup.infra
    lost[:, 0] |= ~passed[:, 0] & (rng.random(chances.shape)[:, 0] < setup.infra_failing)
    return (passed & ~lost).astype(np.float64), (passed | lost).astype(np.float64)


def _levelled(logits: Floats, rates: Floats) -> Floats:
    """Moved together, so that the mean probability over the tasks is that of `rates` (contestants, 1)."""
    low, high = np.full((*logits.shape[:-1], 1), -_FARTHEST), np.full((*logits.shape[:-1], 1), _FARTHEST)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        below = (1 / (1 + np.exp(-(logits + middle)))).mean(axis=-1, keepdims=True) < rates
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(logits + (low + high) / 2, dtype=np.float64)


def _one_look_each(setup: Setup, scores: Floats) -> Ints:
    """(sweeps, numbers of runs from the least on, pairs): what a test for one look says after that many runs
    of every contestant.

    It is the z test of the difference of two rates over fixed tasks, by the variance of runs within each
    task, with Holm's correction over the pairs.
    """
    from scipy.stats import norm

    found = []
    for number in range(setup.least, setup.most + 1):
        seen = scores[:, :, :number]
        means, variances = (
            seen.mean(axis=(2, 3)),
            seen.var(axis=2, ddof=1).mean(axis=-1) / (number * setup.tasks),
        )
        one, two = (list(numbers) for numbers in zip(*setup.pairs, strict=True))
        difference = means[:, one] - means[:, two]
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.nan_to_num(np.abs(difference) / np.sqrt(variances[:, one] + variances[:, two]), nan=0.0)
        called = rejected(2 * norm.sf(z), ALPHA)
        found.append(np.where(called, np.sign(difference), 0).astype(np.int64))
    return np.stack(found, axis=1)


def _wrong(verdicts: Ints, truth: Ints) -> Bools:
    """(…): whether any pair was called what it is not."""
    return np.asarray(((verdicts != 0) & (verdicts != truth)).any(axis=-1))


def _right(verdicts: Ints, truth: Ints) -> Floats:
    """(sweeps, differing pairs): 1 where a pair was told apart rightly."""
    return np.asarray((verdicts == truth)[..., truth != 0], dtype=np.float64)


def _mean(of: list[Floats]) -> float | None:
    whole = np.concatenate(of)
    return float(whole.mean()) if whole.size else None
