"""The test of nights against what it must be: brute force, McNemar and the sign-flip test."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, permutation_test

from orchestrator.stats.rotation import (
    common_scale,
    detectable_drop,
    drop_p_values,
    null_deviation,
    smallest_p,
)


def p_value(rows: list[list[int | None]]) -> float:
    """Of one test: a row a task, its nights with the candidate's last; None is no value."""
    values = np.array([[[0 if value is None else value for value in row] for row in rows]])
    return float(drop_p_values(values, np.array([[[value is not None for value in row] for row in rows]]))[0])


def by_enumeration(rows: list[list[int]]) -> float:
    sums = [sum(chosen) for chosen in product(*rows)]
    return float(np.mean(np.array(sums) <= sum(row[-1] for row in rows)))


def test_one_run_a_night_is_mcnemars_exact_test() -> None:
    fell, rose, same = [[1, 0]] * 9, [[0, 1]] * 2, [[1, 1]] * 20 + [[0, 0]] * 7
    assert p_value(fell + rose + same) == pytest.approx(binom.cdf(2, 11, 0.5), rel=1e-12)
    assert p_value(same) == 1.0


def test_one_baseline_night_is_the_sign_flip_test() -> None:
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 4, (9, 2))
    exact = permutation_test(
        (rows[:, 1] - rows[:, 0],),
        lambda x, axis: x.sum(axis=axis),
        permutation_type="samples",
        alternative="less",
        n_resamples=np.inf,
    )
    assert p_value(rows.tolist()) == pytest.approx(float(exact.pvalue), rel=1e-12)


def test_several_nights_are_what_enumeration_gives() -> None:
    rows = np.random.default_rng(1).integers(0, 4, (6, 4)).tolist()
    assert p_value(rows) == pytest.approx(by_enumeration(rows), rel=1e-12)


def test_a_batch_gives_each_test_what_it_gives_alone() -> None:
    rng = np.random.default_rng(2)
    values, present = rng.integers(0, 7, (40, 12, 3)), rng.random((40, 12, 3)) < 0.8
    alone = [float(drop_p_values(values[[at]], present[[at]])[0]) for at in range(40)]
    assert drop_p_values(values, present).tolist() == pytest.approx(alone, rel=1e-12)


def test_a_task_without_the_candidate_or_without_a_baseline_says_nothing() -> None:
    rows: list[list[int | None]] = [[1, 0]] * 4
    assert p_value([*rows, [1, None], [None, 0]]) == p_value(rows) == 1 / 16
    assert p_value([[None, 0], [1, None]]) == 1.0


def test_values_may_lie_anywhere_on_their_scale() -> None:
    rows = [[5, 2], [9, 8], [7, 7], [4, 6]]
    assert p_value(rows) == p_value([[a + 1000 * at, b + 1000 * at] for at, (a, b) in enumerate(rows)])


def test_the_smallest_p_is_reached_by_the_worst_candidate() -> None:
    rows: list[list[int | None]] = [[3, 3, 0], [2, 2, 1], [1, None, 0]]
    present = np.array([[[value is not None for value in row] for row in rows]])
    assert smallest_p(present)[0] == p_value(rows) == pytest.approx(1 / 18)


def test_the_deviation_is_that_of_the_null_distribution() -> None:
    rows = np.random.default_rng(3).integers(0, 5, (5, 3))
    sums = [sum(chosen) for chosen in product(*rows.tolist())]
    assert null_deviation(rows[None], np.ones((1, 5, 3), bool))[0] == pytest.approx(np.std(sums))


def test_the_detectable_drop_is_seen_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(4)
    before, after = rng.binomial(3, 0.8, (400, 30)), rng.binomial(3, 0.6, (400, 30))
    values, present = np.stack([before, after], axis=-1), np.ones((400, 30, 2), bool)
    said = np.median(detectable_drop(values, present, scale=3, level=0.05))
    seen = np.mean(drop_p_values(values, present) <= 0.05)
    # A drop of 0.2 is somewhat more than the 0.18 that it takes for 80 %.
    assert 0.15 < said < 0.2
    assert 0.8 < seen < 0.95


def test_a_drop_takes_as_many_tasks_as_a_p_value_needs() -> None:
    ceiling, present = np.ones((1, 20, 2), np.int64), np.ones((1, 20, 2), bool)
    # 1/2^4 is above 5 %, 1/2^5 is not.
    assert detectable_drop(ceiling, present, scale=1, level=0.05)[0] == 5 / 20
    assert detectable_drop(ceiling[:, :4], present[:, :4], scale=1, level=0.05)[0] == np.inf


def test_the_scale_of_shares() -> None:
    assert common_scale([3, 3, 2, 0]) == 6
    assert common_scale([]) == 1
    assert common_scale([7, 8, 9, 11]) == 1000
