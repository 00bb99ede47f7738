"""Bets on differences: fair under the null whatever the tasks are like, and judged together."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest

from orchestrator.stats.sequential import (
    ALPHA,
    Floats,
    Race,
    adjusted,
    fewest_rounds,
    interval,
    log_evidence,
    moved_together,
)
from orchestrator.stats.simulate_ranking import Setup, run, study

PAIR = ((0, 1),)


def expected_growth(first: list[float], second: list[float], past: list[list[float]]) -> float:
    """By what the wealth is multiplied in the round after `past` on average, of all that may happen in it."""
    before = math.exp(log_evidence(np.array(past))[-1]) if past else 1.0
    total = 0.0
    for outcome in product((-1.0, 0.0, 1.0), repeat=len(first)):
        chance = 1.0
        for difference, one, two in zip(outcome, first, second, strict=True):
            wins, loses = one * (1 - two), two * (1 - one)
            chance *= {1.0: wins, -1.0: loses, 0.0: 1 - wins - loses}[difference]
        total += chance * math.exp(log_evidence(np.array([*past, outcome]))[-1])
    return total / before


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([0.5, 0.5, 0.5], [0.5, 0.5, 0.5]),
        ([1.0, 0.0, 0.3], [0.0, 1.0, 0.3]),
        ([0.9, 0.2, 0.4], [0.4, 0.7, 0.4]),
        ([0.2, 0.1, 0.0], [0.9, 0.9, 0.1]),
    ],
)
@pytest.mark.parametrize("past", [[], [[1, -1, 0]], [[1, -1, 0], [1, 0, -1], [1, -1, 0]], [[-1, -1, 1]] * 4])
def test_no_bet_is_expected_to_win_where_the_mean_is_not_above_null(
    first: list[float], second: list[float], past: list[list[float]]
) -> None:
    assert expected_growth(first, second, past) <= 1 + 1e-12


def test_a_bet_wins_where_there_is_a_difference_and_more_of_it_wins_more() -> None:
    assert expected_growth([0.9, 0.6], [0.5, 0.4], []) > 1.1
    assert expected_growth([0.9, 0.9], [0.1, 0.1], []) > expected_growth([0.9, 0.6], [0.5, 0.4], [])


def test_what_is_known_of_tasks_leaves_less_to_chance() -> None:
    # Better on three tasks out of four, always; without centres the fourth would take most of it back.
    rounds = np.array([[1.0, 1.0, 1.0, -1.0]] * 6)
    won = np.diff(log_evidence(rounds))
    assert won[0] < won[-1]
    assert log_evidence(rounds)[-1] > log_evidence(rounds[:, [0, 1, 3, 3]])[-1]


def test_the_order_of_tasks_and_the_batch_do_not_matter() -> None:
    rng = np.random.default_rng(1)
    rounds = rng.integers(-1, 2, (3, 7, 5)).astype(float)
    whole = log_evidence(rounds)
    assert np.allclose(whole, log_evidence(rounds[..., [3, 1, 4, 0, 2]]))
    for index in range(3):
        assert np.allclose(whole[index], log_evidence(rounds[index]))
    assert np.allclose(whole[:, :4], log_evidence(rounds[:, :4]))


def brute(values: Floats) -> list[float]:
    """The least mean over all sets that each is part of."""
    indexes = range(len(values))
    return [
        min(
            float(np.mean([values[other] for other in of]))
            for size in range(1, len(values) + 1)
            for of in combinations(indexes, size)
            if index in of
        )
        for index in indexes
    ]


@pytest.mark.parametrize("seed", range(5))
def test_values_are_adjusted_for_every_set_of_hypotheses(seed: int) -> None:
    values = np.random.default_rng(seed).lognormal(0, 2, 7)
    assert np.allclose(np.exp(adjusted(np.log(values))), brute(values))


def test_a_value_too_large_for_a_float_is_as_good_as_infinite() -> None:
    assert adjusted(np.array([2000.0, 0.0]))[0] > 500


def test_what_follows_from_two_decisions_is_decided_and_stays_so() -> None:
    pairs = ((0, 1), (0, 2), (1, 2))
    race = Race(3, pairs)
    race.look(np.array([9.0, 0.0, 9.0]), np.zeros(3))
    assert race.verdicts.tolist() == [1, 1, 1]
    assert not race.undecided.any()
    race.look(np.zeros(3), np.array([9.0, 9.0, 9.0]))
    assert race.verdicts.tolist() == [1, 1, 1]
    assert race.decided_in.tolist() == [1, 1, 1]


def test_several_pairs_need_more_than_one() -> None:
    enough = math.log(2 / ALPHA) + 0.01
    alone, beside = Race(2, PAIR), Race(4, tuple(combinations(range(4), 2)))
    alone.look(np.array([enough]), np.array([-9.0]))
    beside.look(np.array([enough, *[-9.0] * 5]), np.full(6, -9.0))
    assert alone.verdicts.tolist() == [1]
    assert not beside.verdicts.any()
    assert beside.undecided.all()


def test_an_interval_narrows_around_the_mean_and_is_everything_before_the_first_round() -> None:
    rng = np.random.default_rng(2)
    rounds = (rng.random((60, 10)) < 0.7).astype(float) - (rng.random((60, 10)) < 0.4)
    assert interval(rounds[:0], rounds[:0], ALPHA) == (-1.0, 1.0)
    few, many = interval(rounds[:4], rounds[:4], ALPHA), interval(rounds, rounds, ALPHA)
    assert few[0] <= many[0] < rounds.mean() < many[1] <= few[1]
    assert many[1] - many[0] < 0.3
    wide = interval(np.maximum(rounds - 0.1, -1), np.minimum(rounds + 0.1, 1), ALPHA)
    assert wide[0] < many[0] < many[1] < wide[1]


def test_an_interval_is_the_same_from_both_sides() -> None:
    rounds = np.random.default_rng(3).integers(-1, 2, (8, 6)).astype(float)
    low, high = interval(rounds, rounds, ALPHA)
    assert interval(-rounds, -rounds, ALPHA) == (-high, -low)


@pytest.mark.parametrize(("tasks", "pairs"), [(1, 1), (3, 1), (6, 3)])
def test_the_fewest_rounds_are_those_of_the_clearest_pair(tasks: int, pairs: int) -> None:
    needed = fewest_rounds(tasks, pairs)
    won, lost = log_evidence(np.ones((needed, tasks))), log_evidence(-np.ones((needed, tasks)))
    for number, decided in ((needed - 1, False), (needed, True)):
        up, down = (float(it[number - 1]) if number else 0.0 for it in (won, lost))
        sure = np.array([up] * pairs), np.array([down] * pairs)
        assert bool((adjusted(np.concatenate(sure))[:pairs] >= -math.log(ALPHA)).all()) is decided


def test_tied_contestants_are_told_apart_in_at_most_five_per_cent_of_sweeps() -> None:
    for setup in (Setup((0.5,) * 3, tasks=6, own=1.0, infra=0.05), Setup((0.5, 0.5), tasks=4, most=30)):
        found = study(setup, 300, seed=4)
        assert found.false_alarms.high <= ALPHA
        # The same looks with a test for one look: what this is for.
        assert found.peeking.low > ALPHA


def test_those_that_differ_are_told_apart_and_then_no_longer_run() -> None:
    found = study(Setup((0.25, 0.75), tasks=8), 200, seed=5)
    assert found.false_alarms.value == 0
    assert found.told_apart is not None
    assert found.told_apart > 0.95
    assert found.cells < 0.5
    assert found.as_many_cells is not None
    assert found.one_look == 1


def test_a_lost_run_counts_against_whatever_is_claimed() -> None:
    setup = Setup((0.5, 0.5), tasks=6, most=4)
    passed = np.broadcast_to(np.array([1.0, 0.0])[:, None, None], (1, 2, 4, 6))
    assert run(setup, passed, passed)[0].tolist() == [[1]]
    lost = passed.copy()
    lost[:, 0] = 0
    assert run(setup, lost, passed)[0].tolist() == [[0]]


def test_tasks_that_move_together_are_seen_and_others_seldom() -> None:
    rng = np.random.default_rng(6)
    alone = [moved_together((rng.random((10, 12)) < 0.5).astype(float)) for _ in range(60)]
    assert sum(p is not None and p <= 0.05 for p in alone) <= 8
    bad = rng.random((10, 1)) < 0.3
    together = moved_together(((rng.random((10, 12)) < 0.5) & ~bad).astype(float))
    assert together is not None
    assert together <= 0.01
    assert moved_together(np.eye(2)) is None
    assert moved_together(np.ones((9, 4))) is None
