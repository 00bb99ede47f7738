"""Rates against independent references: statsmodels, enumeration, small cases by hand, simulation."""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from orchestrator.stats.rates import (
    MIN_CLUSTERS,
    cluster_bootstrap,
    expanded_percentiles,
    pass_at_k,
    pass_hat_k,
    resample,
    seed_of,
    spread_over_runs,
    wilson,
)


@given(st.integers(1, 400).flatmap(lambda trials: st.tuples(st.integers(0, trials), st.just(trials))))
def test_wilson_is_that_of_statsmodels(case: tuple[int, int]) -> None:
    successes, trials = case
    assert wilson(successes, trials) == pytest.approx(
        proportion_confint(successes, trials, method="wilson"), abs=1e-12
    )


@given(st.floats(0, 1), st.integers(1, 50))
def test_wilson_holds_its_rate_and_stays_between_0_and_1(rate: float, trials: int) -> None:
    low, high = wilson(rate * trials, trials)
    assert 0 <= low <= rate + 1e-12
    assert rate - 1e-12 <= high <= 1
    assert high > low


def test_wilson_of_all_or_nothing_reaches_the_end() -> None:
    assert wilson(0, 10)[0] == 0
    assert wilson(10, 10)[1] == 1


@pytest.mark.parametrize(("runs", "passed", "k"), [(5, 2, 1), (5, 2, 3), (4, 0, 2), (4, 4, 2), (6, 3, 4)])
def test_pass_at_k_and_pass_hat_k_are_shares_of_all_ways_to_draw_k_runs(
    runs: int, passed: int, k: int
) -> None:
    outcomes = [1] * passed + [0] * (runs - passed)
    drawn = list(itertools.combinations(outcomes, k))
    assert pass_at_k(runs, passed, k) == pytest.approx(sum(map(any, drawn)) / len(drawn))
    assert pass_hat_k(runs, passed, k) == pytest.approx(sum(map(all, drawn)) / len(drawn))


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("chance", [0.1, 0.5, 0.8])
def test_they_are_unbiased(k: int, chance: float) -> None:
    """Over everything that five runs of a task can come to, their mean is the chance itself."""
    weights = [stats.binom.pmf(passed, 5, chance) for passed in range(6)]
    at = sum(weight * pass_at_k(5, passed, k) for passed, weight in enumerate(weights))
    hat = sum(weight * pass_hat_k(5, passed, k) for passed, weight in enumerate(weights))
    assert at == pytest.approx(1 - (1 - chance) ** k)
    assert hat == pytest.approx(chance**k)


def test_the_spread_over_runs_is_what_runs_of_all_tasks_would_show() -> None:
    # Two tasks, of which the second always passes; the first does so in half of its runs: the rate of a whole
    # run is 0.5 or 1, each as often, and the sample of four runs is a little wider than that.
    assert spread_over_runs([(4, 2), (4, 4)]) == pytest.approx(math.sqrt(Fraction(1, 3)) / 2)
    assert spread_over_runs([(3, 3), (3, 0)]) == 0
    assert spread_over_runs([(1, 1), (4, 2)]) is None
    assert spread_over_runs([]) is None


def test_resampling_is_that_of_drawing_clusters_with_replacement() -> None:
    columns = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [4.0, 40.0], [5.0, 50.0]])
    sums = resample(columns, 3000)
    assert sums.shape == (3000, 2)
    assert np.allclose(sums[:, 1], 10 * sums[:, 0])
    # Of five draws from 1 to 5: the mean is 15, and the variance 5 × 2.
    assert sums[:, 0].mean() == pytest.approx(15, abs=0.3)
    assert sums[:, 0].var() == pytest.approx(10, rel=0.15)


def test_the_bootstrap_is_near_scipys() -> None:
    values = np.random.default_rng(1).lognormal(0, 0.7, size=(40, 1))
    reference = stats.bootstrap(
        (values[:, 0],), np.mean, n_resamples=4000, method="percentile", rng=np.random.default_rng(2)
    ).confidence_interval
    [[low, high]] = cluster_bootstrap(values, np.ones((40, 1)))
    # Expanded for 40 clusters: by a few percent, on either side.
    assert low == pytest.approx(reference.low, rel=0.06)
    assert high == pytest.approx(reference.high, rel=0.06)
    assert high - low > reference.high - reference.low


def test_a_ratio_is_of_sums_and_not_a_mean_of_ratios() -> None:
    totals, sizes = np.array([[100.0], [0.0]] * 20), np.array([[1.0], [9.0]] * 20)
    [[low, high]] = cluster_bootstrap(totals, sizes)
    assert low < 10 < high < 25


def test_resamples_without_a_pass_leave_the_upper_bound_open() -> None:
    totals, sizes = np.ones((6, 1)), np.array([[1.0], *[[0.0]] * 5])
    [[low, high]] = cluster_bootstrap(totals, sizes)
    assert math.isfinite(low)
    assert high == math.inf


def test_the_same_numbers_give_the_same_interval_and_others_another_seed() -> None:
    numbers = np.random.default_rng(3).random((12, 2))
    ones = np.ones_like(numbers)
    assert np.array_equal(cluster_bootstrap(numbers, ones), cluster_bootstrap(numbers.copy(), ones))
    assert seed_of(numbers) != seed_of(numbers + 1e-9)
    assert seed_of(numbers) != seed_of(numbers.reshape(2, 12))


def test_many_clusters_are_resampled_in_blocks() -> None:
    values = np.random.default_rng(4).random((70_000, 1))
    sums = resample(values, 3)
    assert sums[:, 0] == pytest.approx(values.sum(), rel=0.02)


def test_blocks_are_so_small_that_no_other_thread_is_woken_for_them() -> None:
    program = (
        "import numpy as np, hashlib\n"
        "from orchestrator.stats.rates import resample\n"
        "values = np.random.default_rng(4).random((800, 16))\n"
        "print(hashlib.sha256(resample(values).tobytes()).hexdigest())"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "OPENBLAS_NUM_THREADS": str(threads)},
            capture_output=True,
            check=True,
        ).stdout
        for threads in (1, 4)
    }
    assert len(said) == 1


def test_too_few_clusters_are_refused() -> None:
    few = np.ones((MIN_CLUSTERS - 1, 1))
    with pytest.raises(ValueError, match="fewer than 5"):
        cluster_bootstrap(few, few)


def test_percentiles_are_wider_the_fewer_the_clusters() -> None:
    values = np.linspace(0, 1, 1001)[:, None]
    plain = np.quantile(values, [0.025, 0.975])
    few, many = expanded_percentiles(values, 6)[0], expanded_percentiles(values, 10_000)[0]
    assert many == pytest.approx(plain, abs=0.002)
    assert few[0] < 0.01
    assert few[1] > 0.99


@pytest.mark.parametrize(("tasks", "runs"), [(10, 1), (10, 3), (25, 3)])
def test_intervals_hold_the_true_rate_as_often_as_they_say(tasks: int, runs: int) -> None:
    """100 sweeps of tasks whose chances differ; by chance alone fewer than 88 are held once in 250."""
    random = np.random.default_rng(tasks * runs)
    held = 0
    for _ in range(100):
        passed = random.binomial(runs, random.beta(2, 2, tasks)) / runs
        if runs == 1:
            low, high = wilson(passed.sum(), tasks)
        else:
            [[low, high]] = cluster_bootstrap(passed[:, None], np.ones((tasks, 1)))
        held += low <= 0.5 <= high
    assert held >= 88
