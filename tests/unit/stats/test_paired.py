"""Paired tests against independent references: statsmodels, scipy, enumeration, simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as reference_mcnemar
from statsmodels.stats.power import NormalIndPower
from statsmodels.stats.proportion import proportion_effectsize

from orchestrator.stats.paired import (
    MIN_TASKS,
    Contrast,
    Kind,
    cohens_h,
    difference_interval,
    mcnemar,
    needed,
    paired_contrasts,
    sign_flip,
    spread,
)

counts = st.integers(0, 60)


def paired_contrast(a: np.ndarray, b: np.ndarray, kind: Kind) -> Contrast | None:
    [found] = paired_contrasts([(a, b, kind)])
    return found


def of_means(values: np.ndarray) -> np.ndarray:
    return np.stack([values, np.ones_like(values)], axis=1)


@given(counts, counts)
def test_mcnemar_is_that_of_statsmodels(only_a: int, only_b: int) -> None:
    expected = reference_mcnemar([[5, only_a], [only_b, 5]], exact=True).pvalue
    assert mcnemar(only_a, only_b) == pytest.approx(min(1, expected), abs=1e-12)


@given(st.integers(0, 7), st.integers(0, 7), st.integers(0, 9))
def test_on_single_runs_the_permutation_is_mcnemars_test(only_a: int, only_b: int, alike: int) -> None:
    differences = [-1.0] * only_a + [1.0] * only_b + [0.0] * alike
    assert sign_flip(differences) == pytest.approx(mcnemar(only_a, only_b))


@given(st.lists(st.sampled_from([-1, -2 / 3, -1 / 3, 0, 1 / 3, 2 / 3, 1]), max_size=8))
def test_the_permutation_counts_all_ways_to_swap_sides(differences: list[float]) -> None:
    ways = list(itertools.product((-1, 1), repeat=len(differences)))
    observed = abs(sum(differences))
    as_far = sum(
        abs(sum(s * d for s, d in zip(way, differences, strict=True))) >= observed - 1e-9 for way in ways
    )
    assert sign_flip(differences) == pytest.approx(as_far / len(ways))


def test_many_tasks_are_sampled_and_near_scipys() -> None:
    differences = np.random.default_rng(7).normal(0.15, 0.4, 40)
    reference = stats.permutation_test(
        (differences,),
        lambda it, axis: np.mean(it, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=20_000,
        rng=np.random.default_rng(8),
    )
    assert sign_flip(differences.tolist()) == pytest.approx(reference.pvalue, abs=0.01)
    assert sign_flip(differences.tolist()) == sign_flip(differences.tolist())


def test_fewer_tasks_than_the_minimum_can_show_nothing() -> None:
    assert mcnemar(0, MIN_TASKS - 1) > 0.05
    assert sign_flip([1.0] * (MIN_TASKS - 1)) > 0.05
    assert mcnemar(0, MIN_TASKS) < 0.05


def test_no_difference_is_no_evidence() -> None:
    assert (mcnemar(0, 0), sign_flip([]), sign_flip([0.0, 0.0])) == (1, 1, 1)


def test_the_interval_of_a_difference_is_agresti_and_mins() -> None:
    # 100 tasks, of which A alone passes 8 and B alone 20: with half a task added to each of four cells,
    # 12 / 102 ± 1.96 · √(8.5 + 20.5 − 12² / 102) / 102.
    low, high = difference_interval([-1.0] * 8 + [1.0] * 20 + [0.0] * 72)
    assert low == pytest.approx(12 / 102 - 1.959964 * math.sqrt(29 - 144 / 102) / 102, abs=1e-6)
    assert high == pytest.approx(12 / 102 + 1.959964 * math.sqrt(29 - 144 / 102) / 102, abs=1e-6)


def test_no_difference_among_few_tasks_is_not_certain() -> None:
    low, high = difference_interval([0.0] * 10)
    assert low < -0.1 < 0.1 < high
    assert difference_interval([1.0] * 6)[1] <= 1


def test_a_ratio_is_of_sums_and_swapping_sides_inverts_it() -> None:
    random = np.random.default_rng(9)
    a, b = of_means(random.lognormal(8, 1, 20)), of_means(random.lognormal(8.4, 1, 20))
    there, back = paired_contrast(a, b, "ratio"), paired_contrast(b, a, "ratio")
    assert there is not None
    assert back is not None
    assert there.value == pytest.approx(b[:, 0].sum() / a[:, 0].sum())
    assert there.value == pytest.approx(1 / back.value)
    assert there.low < there.value < there.high
    assert there.p == pytest.approx(back.p, abs=0.02)


def test_with_few_tasks_its_p_value_counts_all_swaps() -> None:
    a = np.array([[3.0, 1.0], [5.0, 1.0], [2.0, 1.0], [8.0, 1.0], [4.0, 1.0], [6.0, 1.0]])
    b = np.array([[4.0, 1.0], [9.0, 1.0], [2.5, 1.0], [7.0, 1.0], [8.0, 1.0], [9.0, 1.0]])
    observed = abs(math.log(b[:, 0].sum() / a[:, 0].sum()))
    as_far = 0
    for way in itertools.product((False, True), repeat=6):
        swapped = [(y, x) if swap else (x, y) for swap, x, y in zip(way, a[:, 0], b[:, 0], strict=True)]
        left, right = (sum(side) for side in zip(*swapped, strict=True))
        as_far += abs(math.log(right / left)) >= observed - 1e-9
    found = paired_contrast(a, b, "ratio")
    assert found is not None
    assert found.p == pytest.approx(as_far / 64)


def test_what_comes_to_no_number_has_no_contrast() -> None:
    some, nothing = of_means(np.arange(1.0, 9.0)), of_means(np.zeros(8))
    assert paired_contrast(some, nothing, "ratio") is None
    assert paired_contrast(some, nothing, "difference") is not None
    one_pass = np.stack([np.ones(8), np.eye(8)[0]], axis=1)
    assert paired_contrast(one_pass, some, "ratio") is None


def test_several_measures_are_each_what_they_are_alone() -> None:
    random = np.random.default_rng(12)
    tokens, times = ([of_means(random.lognormal(8, 1, 10)) for _ in range(2)] for _ in range(2))
    found = paired_contrasts(
        [(*tokens, "ratio"), (*times, "difference"), (0 * tokens[0], tokens[1], "ratio")]
    )
    assert found[2] is None
    for_themselves = [paired_contrast(*tokens, "ratio"), paired_contrast(*times, "difference")]
    for together, alone in zip(found[:2], for_themselves, strict=True):
        assert together is not None
        assert alone is not None
        assert (together.value, together.p) == pytest.approx((alone.value, alone.p))
        assert (together.low, together.high) == pytest.approx((alone.low, alone.high), rel=0.1)
    assert paired_contrasts([]) == []


def test_alike_sides_do_not_differ() -> None:
    same = of_means(np.arange(1.0, 11.0))
    found = paired_contrast(same, same, "difference")
    assert found is not None
    assert (found.value, found.low, found.high, found.p) == (0, 0, 0, 1)


@pytest.mark.parametrize("tasks", [8, 25])
def test_equal_sides_are_rarely_called_different(tasks: int) -> None:
    """60 pairs of sides of equal chances, each task's its own; 5 % are 3; chance makes it 9 once in 250."""
    random = np.random.default_rng(tasks)
    called = of_tokens = 0
    for _ in range(60):
        chances = random.beta(0.7, 0.7, tasks)
        a, b = (random.binomial(3, chances) / 3 for _ in range(2))
        called += sign_flip((b - a).tolist()) < 0.05
        size = random.lognormal(9, 1, tasks)
        spent = [of_means(size * random.lognormal(0, 0.6, tasks)) for _ in range(2)]
        found = paired_contrast(*spent, "ratio")
        of_tokens += found is not None and found.p < 0.05
    assert called < 9
    assert of_tokens < 9


def test_the_tasks_needed_are_those_of_the_normal_approximation() -> None:
    found = needed(0.1, 0.25, 30)
    # For a paired difference the sample is one: statsmodels' test with a second sample of infinite size.
    reference = NormalIndPower(ddof=0).solve_power(0.1 / 0.5, alpha=0.05, power=0.8, ratio=0)
    assert found.tasks == math.ceil(reference)
    assert found.detectable == pytest.approx(2.8016 * 0.5 / math.sqrt(30), rel=1e-3)
    assert found.runs is None


@pytest.mark.parametrize(
    "share", [1.0, 0.5, 1 / 3, 0.2, 1 / 7, 0.06, 0.01, 0.8, 0.95, 1e-3, 0.8014034528708301]
)
def test_as_many_tasks_as_let_enough_of_them_differ(share: float) -> None:
    """Where nothing varies, the number is that of the negative binomial distribution alone."""
    found = needed(share, 0.0, 30, step=1.0)
    assert found.tasks == 6 + int(stats.nbinom.ppf(0.8, 6, share))


def test_that_many_tasks_show_it_four_times_in_five() -> None:
    random = np.random.default_rng(10)
    tasks = needed(0.15, 0.24, 30).tasks
    assert tasks is not None
    draws = random.choice([-1.0, 0.0, 1.0], p=[0.055, 0.74, 0.205], size=(200, tasks))
    seen = sum(mcnemar(int((it < 0).sum()), int((it > 0).sum())) < 0.05 for it in draws)
    assert 0.65 < seen / 200 < 0.9


def test_more_runs_help_only_as_far_as_runs_differ() -> None:
    assert needed(0.0, 0.25, 30) == needed(0.0, 0.25, 30, within=0.2, runs=2)
    assert needed(0.0, 0.25, 30).tasks is None
    mostly_runs = needed(0.1, 0.10, 30, within=0.09, runs=2)
    assert mostly_runs.runs == 7
    # Of the variance 0.09 is of two runs: 0.18 of one.
    assert needed(0.1, 0.01 + 0.18 / 7, 30).detectable <= 0.1 < needed(0.1, 0.01 + 0.18 / 6, 30).detectable
    assert needed(0.1, 0.25, 30, within=0.01, runs=2).runs is None


@pytest.mark.parametrize("tasks", [6, 7, 10, 30, 100])
def test_what_single_runs_are_said_to_show_the_exact_test_shows(tasks: int) -> None:
    """However alike the tasks are: fewer than six that differ are never significant."""
    found = needed(0.0, spread([0.0] * tasks), tasks, step=1)
    of_wins = stats.binom(tasks, found.detectable).pmf(range(tasks + 1))
    assert sum(p for wins, p in enumerate(of_wins) if mcnemar(0, wins) < 0.05) >= 0.8 - 1e-9
    # With three runs a task may differ by a third.
    assert needed(0.0, 0.0, tasks, step=1 / 3).detectable == pytest.approx(found.detectable / 3)
    several = needed(0.5, spread([1.0] * 5 + [0.0] * 5), 10, step=1).tasks
    assert several is not None
    assert (
        stats.binom.sf(MIN_TASKS - 1, several, 0.5) >= 0.8 > stats.binom.sf(MIN_TASKS - 1, several - 1, 0.5)
    )


def test_the_spread_of_single_runs_is_that_of_half_a_task_more_in_each_cell() -> None:
    assert spread([0.0] * 8) == pytest.approx(0.1)
    assert spread([1.0, -1.0]) == pytest.approx(3 / 4)


@given(st.floats(0, 1), st.floats(0, 1))
def test_cohens_h_is_that_of_statsmodels(a: float, b: float) -> None:
    assert cohens_h(a, b) == pytest.approx(proportion_effectsize(b, a), abs=1e-9)
