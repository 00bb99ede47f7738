"""The simulations of docs/statistics.md, smaller: the gate is seldom wrong, and sees what is large."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from orchestrator.stats.many import holm
from orchestrator.stats.simulate_gate import ALPHA, Setup, rejected, study, study_in_a_row

GATES = 400
# Of 400 gates that are wrong in 5 %, more than 31 are in one of 100 such studies.
MOST = 31 / GATES


@pytest.mark.parametrize(
    "setup",
    [
        Setup(),
        Setup(nights=3),
        Setup(runs=1, tasks=60),
        Setup(solved=0, unsolved=0, flaky=(1.0, 1.0)),
        Setup(wobble=1.0, infra=0.05),
        Setup(infra_candidate=0.15),
    ],
    ids=["plain", "three nights", "one run", "all flaky", "wobble", "infra"],
)
def test_unchanged_nights_are_seldom_called_dropped(setup: Setup) -> None:
    assert study(setup, GATES, seed=7).false_alarms.value <= MOST


def test_nights_in_a_row_are_no_worse() -> None:
    found = study_in_a_row(Setup(pairs=3, tasks=20), 20, 20, seed=7).false_alarms
    assert found.value <= MOST
    assert (found.of, found.low <= found.value <= found.high) == (400, True)


def test_the_bound_is_near_enough_to_mean_something() -> None:
    # Of a test that never alarms the two above would say nothing.
    found = study(Setup(pairs=1, tasks=60, runs=5, solved=0, unsolved=0), GATES, seed=7).false_alarms
    assert 0.02 < found.value <= MOST
    assert found.low < ALPHA < found.high or found.high < ALPHA


def test_a_drop_is_seen_the_sooner_the_more_is_known() -> None:
    drop = Setup(drop=0.25)
    seen = []
    for setup in (replace(drop, runs=1), drop, replace(drop, nights=4)):
        found = study(setup, GATES, seed=7)
        assert found.seen is not None
        assert found.dropped_by is not None
        assert 0.15 < found.dropped_by < 0.2
        assert found.false_alarms.value <= MOST
        seen.append(found.seen.value)
    assert seen == sorted(seen)
    assert seen[0] < 0.5
    assert seen[-1] > 0.95


def test_nights_on_which_everything_moves_are_called_dropped() -> None:
    # Said in the document: to the test they are changes.
    assert study(Setup(swing=0.5), GATES, seed=7).false_alarms.value > 2 * ALPHA


def test_the_correction_is_holms() -> None:
    p_values = np.random.default_rng(7).random((200, 5)) ** 3
    expected = [[value <= ALPHA for value in holm(row)] for row in p_values.tolist()]
    assert rejected(p_values, ALPHA).tolist() == expected
    assert any(any(row) for row in expected)


def test_lost_runs_are_lost_on_the_night_that_is_said() -> None:
    whole = Setup(pairs=1, drop=0.25, infra=0)
    seen = [study(replace(whole, infra_candidate=lost), 200, seed=7).seen for lost in (None, 0.0, 0.6)]
    assert seen[0] == seen[1]
    assert seen[1] is not None
    assert seen[2] is not None
    assert seen[2].value < seen[1].value


def test_the_same_seed_gives_the_same_numbers() -> None:
    setup = Setup(pairs=2, tasks=10, drop=0.3)
    assert study(setup, 50, seed=3) == study(setup, 50, seed=3) != study(setup, 50, seed=4)
