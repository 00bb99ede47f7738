"""Changes of level and mixed results: exact where that can be checked, seldom seen where nothing is."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import binomtest

from orchestrator.stats.change import MIN_NIGHTS, disagreement, disagreement_within, mixed_p, step


def test_a_new_level_is_found_where_it_began() -> None:
    found = step([0.8, 0.82, 0.78, 0.8, 0.79, 0.6, 0.61, 0.58, 0.6, 0.62])
    assert found is not None
    assert (found.at, found.before, found.after) == (5, pytest.approx(0.798), pytest.approx(0.602))
    assert found.p < 0.02


def test_eight_nights_are_judged_by_all_their_orders() -> None:
    levels = [0.9, 0.8, 0.85, 0.88, 0.7, 0.72, 0.75, 0.6]
    orders = np.array(list(permutations(levels)))
    contrasts = [
        abs(orders[:, :at].mean(axis=1) - orders[:, at:].mean(axis=1)) * np.sqrt(at * (8 - at))
        for at in range(2, 7)
    ]
    greatest = np.max(contrasts, axis=0)
    found = step(levels)
    assert found is not None
    assert found.p == pytest.approx(np.mean(greatest >= greatest[0] - 1e-9))


def test_few_nights_are_not_tested_and_equal_ones_do_not_change() -> None:
    assert step([1.0] * (MIN_NIGHTS - 1)) is None
    same = step([1.0] * MIN_NIGHTS)
    assert same is not None
    assert same.p == 1.0


def test_one_odd_night_is_no_new_level() -> None:
    found = step([0.8, 0.81, 0.79, 0.8, 0.8, 0.79, 0.81, 0.8, 0.8, 0.1])
    assert found is not None
    assert found.p > 0.05


def test_nights_by_chance_seldom_change() -> None:
    rng = np.random.default_rng(3)
    found = [step(rng.normal(size=8).tolist()) for _ in range(40)]
    # Of 40 tests that are wrong in 5 %, more than 6 are in one of 300 such samples.
    assert sum(it is not None and it.p <= 0.05 for it in found) <= 6


def test_the_same_levels_give_the_same_p() -> None:
    levels = np.random.default_rng(4).normal(size=12).tolist()
    assert step(levels) == step(levels)


def test_mixed_results_are_a_binomial_test() -> None:
    assert mixed_p(30, 25) == pytest.approx(binomtest(5, 30, 0.05, alternative="greater").pvalue)
    assert mixed_p(30, 5) == mixed_p(30, 25)
    assert mixed_p(30, 30) == mixed_p(30, 0) == 1.0


def test_disagreement_is_of_pairs_of_runs() -> None:
    assert disagreement(4, 1) == pytest.approx(3 / 6)
    assert disagreement(1, 1) is None
    # Within nights nothing differs, between them all does.
    assert disagreement_within([(3, 3), (3, 0)]) == 0.0
    assert disagreement_within([(3, 1), (1, 1)]) == pytest.approx(2 / 3)
    assert disagreement_within([(1, 1), (1, 0)]) is None
