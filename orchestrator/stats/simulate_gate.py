"""How often the gate of nights is wrong: nights are drawn from known probabilities, and tested as real ones
are.

The tests are those of `rotation`, the correction Holm's, over all pairs of a gate together. A *false alarm*
is a gate that calls any pair dropped on a night on which nothing changed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from orchestrator.stats.rotation import Bools, Floats, Ints, common_scale, drop_p_values

ALPHA = 0.05
_PAIRS_AT_ONCE = 4000


@dataclass(frozen=True)
class Setup:
    """A gate over `pairs` pairs on `tasks` tasks, with `runs` runs a night and `nights` nights as baseline.

    Of the tasks the share `solved` always passes, `unsolved` never does, and the others are *flaky*: each has
    a probability of its own, from a beta distribution with the parameters `flaky`. `wobble` is the standard
    deviation, in logits, by which each task of each pair moves on each night by itself; `swing` that by which
    all tasks of a pair move together. `infra` is the probability that a run is lost to an infrastructure
    error; `infra_candidate` that of the candidate's night, where it is another.

    With `drop`, one pair has changed: each of its tasks passes with a probability that is lower by this.
    """

    pairs: int = 6
    tasks: int = 30
    runs: int = 3
    nights: int = 1
    solved: float = 0.3
    unsolved: float = 0.2
    flaky: tuple[float, float] = (2.0, 1.5)
    wobble: float = 0.0
    swing: float = 0.0
    infra: float = 0.01
    infra_candidate: float | None = None
    drop: float = 0.0


@dataclass(frozen=True)
class Rate:
    """A share of `of` simulated gates, with its 95 % interval: exact (Clopper–Pearson) where the gates are
    independent of each other, over the machines where they ran in a row.
    """

    value: float
    low: float
    high: float
    of: int


@dataclass(frozen=True)
class Study:
    """What came of the gates of one set-up.

    `false_alarms`: any pair that had not changed was called dropped. `seen`: the pair that had dropped was,
    None where none had. `dropped_by` is by how much its pass rate was lower in truth, on average.
    """

    setup: Setup
    false_alarms: Rate
    seen: Rate | None
    dropped_by: float | None


def study(setup: Setup, gates: int, seed: int) -> Study:
    """Simulate `gates` gates. The same seed gives the same numbers."""
    rng = np.random.default_rng(seed)
    alarms = np.zeros((gates, setup.pairs), bool)
    falls: list[float] = []
    step = max(1, _PAIRS_AT_ONCE // setup.pairs)
    for start in range(0, gates, step):
        size = min(step, gates - start)
        chances, fallen = _chances(setup, size, rng)
        values, present = _nights(setup, chances, rng)
        p_values = drop_p_values(values, present).reshape(size, setup.pairs)
        alarms[start : start + size] = rejected(p_values, ALPHA)
        falls.append(fallen * size)
    unchanged = alarms[:, 1:] if setup.drop else alarms
    return Study(
        setup=setup,
        false_alarms=rate_of(np.asarray(unchanged.any(axis=1))),
        seen=rate_of(alarms[:, 0]) if setup.drop else None,
        dropped_by=sum(falls) / gates if setup.drop else None,
    )


def study_in_a_row(setup: Setup, rows: int, nights: int, seed: int) -> Study:
    """Each of `rows` machines runs `nights` gated nights one after another, on which nothing ever changes.

    The baseline is what `last-good` means: the last `setup.nights` nights whose gate passed. So a lucky night
    that passed is compared with more than once where the nights after it fail. A rate is over all nights from
    the first with a whole baseline on.
    """
    from scipy.stats import t

    rng = np.random.default_rng(seed)
    kept = setup.nights
    base = _of_kinds(setup, rng.random((rows * setup.pairs, setup.tasks)), rng)
    values, present = _nights(setup, np.repeat(base[..., None], kept + 1, axis=-1), rng)
    alarms = np.zeros((nights, rows), bool)
    for night in range(nights):
        new = _nights(setup, base[..., None], rng)
        values[..., -1], present[..., -1] = new[0][..., 0], new[1][..., 0]
        p_values = drop_p_values(values, present).reshape(rows, setup.pairs)
        alarms[night] = rejected(p_values, ALPHA).any(axis=-1)
        good = np.repeat(~alarms[night], setup.pairs)
        for stack in (values, present):
            stack[good, :, :-1] = stack[good, :, 1:]
    means = alarms.mean(axis=0)
    half = float(t.ppf(0.975, rows - 1) * means.std(ddof=1) / np.sqrt(rows))
    found = float(means.mean())
    return Study(setup, Rate(found, max(0.0, found - half), found + half, alarms.size), None, None)


def rejected(p_values: Floats, alpha: float) -> Bools:
    """Holm's step-down over the last axis: which null hypotheses are rejected at a family-wise `alpha`."""
    order = np.argsort(p_values, axis=-1, kind="stable")
    tests = p_values.shape[-1]
    in_order = np.take_along_axis(p_values, order, axis=-1) <= alpha / np.arange(tests, 0, -1)
    found = np.zeros(p_values.shape, bool)
    np.put_along_axis(found, order, np.logical_and.accumulate(in_order, axis=-1), axis=-1)
    return found


def _chances(setup: Setup, gates: int, rng: np.random.Generator) -> tuple[Floats, float]:
    """Each task's probability to pass on each night, of shape (gates × pairs, tasks, nights, the candidate
    last); and by how much the dropped pair's mean is lower in truth.
    """
    shape = (gates * setup.pairs, setup.tasks)
    base = _of_kinds(setup, rng.random(shape), rng)
    nights = setup.nights + 1
    chances = np.repeat(base[..., None], nights, axis=-1)
    if setup.wobble or setup.swing:
        moved = setup.wobble * rng.standard_normal(chances.shape)
        moved += setup.swing * rng.standard_normal((shape[0], 1, nights))
        with np.errstate(divide="ignore"):
            chances = 1 / (1 + np.exp(-(np.log(chances) - np.log1p(-chances) + moved)))
    if not setup.drop:
        return chances, 0.0
    candidate = chances[:: setup.pairs, :, -1]
    lower = np.maximum(candidate - setup.drop, 0.0)
    fallen = float(np.mean(candidate - lower))
    chances[:: setup.pairs, :, -1] = lower
    return chances, fallen


def _of_kinds(setup: Setup, kind: Floats, rng: np.random.Generator) -> Floats:
    """Each task's probability to pass; `kind`, uniform over [0, 1), says which of the three it is."""
    flaky = rng.beta(*setup.flaky, kind.shape)
    return np.where(kind < setup.solved, 1.0, np.where(kind < setup.solved + setup.unsolved, 0.0, flaky))


def _nights(setup: Setup, chances: Floats, rng: np.random.Generator) -> tuple[Ints, Bools]:
    """Pass rates of each task and night as whole numbers on one scale, and which have a run at all."""
    lost = np.full(chances.shape[-1], float(setup.infra))
    lost[-1] = setup.infra if setup.infra_candidate is None else setup.infra_candidate
    runs = rng.binomial(setup.runs, 1 - lost, chances.shape)
    scale = common_scale(range(1, setup.runs + 1))
    passed = rng.binomial(runs, chances)
    return passed * (scale // np.maximum(runs, 1)), runs > 0


def rate_of(hits: Bools) -> Rate:
    """The share of independent simulations that were hits."""
    from scipy.stats import binomtest

    found = binomtest(int(hits.sum()), len(hits))
    between = found.proportion_ci(0.95, method="exact")
    return Rate(float(found.statistic), float(between.low), float(between.high), len(hits))
