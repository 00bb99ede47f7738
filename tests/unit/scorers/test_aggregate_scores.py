from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scorers.aggregate import Aggregate, Estimate, Group, Row, aggregate, ranks_above


def row(cli: str = "a", model: str = "m", task: str = "t", run: int = 1, **fields: Any) -> Row:
    given: dict[str, Any] = {
        "state": "counted",
        "passed": 1,
        "composite": 1.0,
        "published": 0.9,
        "total_tokens": 100,
    }
    return Row(cli=cli, model=model, task=task, run=run, **(given | fields))


def infra(**fields: Any) -> Row:
    nothing = {"passed": None, "composite": None, "published": None, "total_tokens": None}
    return row(state="infra", **(nothing | fields))


def only(found: Aggregate) -> Group:
    assert len(found.groups) == 1
    return found.groups[0]


def test_a_task_counts_once_however_often_it_ran() -> None:
    rows = [row(task="x", run=i) for i in range(9)] + [row(task="y", passed=0, composite=0.0)]
    found = only(aggregate(rows, "pair"))
    assert (found.pass_rate.value, found.cab_1.value, found.units) == (0.5, 0.5, 2)
    assert (found.pass_rate.low, found.pass_rate.high, found.coverage) == (0.5, 0.5, 1.0)


def test_infra_is_not_a_failure_and_widens_the_bounds() -> None:
    found = only(aggregate([row(run=1), infra(run=2), row(task="u", passed=0, composite=0.0)], "pair"))
    assert found.pass_rate.value == 0.5
    assert (found.pass_rate.low, found.pass_rate.high) == (0.25, 0.5)
    assert (found.counted, found.infra, found.coverage) == (2, 1, pytest.approx(2 / 3))


def test_a_task_that_only_met_infra_has_no_mean_and_stays_in_the_bounds() -> None:
    found = only(aggregate([row(), infra(task="u")], "pair"))
    assert (found.pass_rate.value, found.pass_rate.low, found.pass_rate.high) == (1.0, 0.5, 1.0)


def test_only_infra_is_null_with_bounds_of_ignorance() -> None:
    found = only(aggregate([infra()], "pair"))
    assert (found.pass_rate.value, found.pass_rate.low, found.pass_rate.high) == (None, 0.0, 1.0)
    assert (found.coverage, found.published_0_1) == (0.0, None)


def test_a_composite_that_was_not_measured_leaves_bounds() -> None:
    rows = [row(composite=None, composite_bounds=(0.8, 0.9)), row(task="u", composite=1.0)]
    found = only(aggregate(rows, "pair"))
    assert (found.cab_1.value, found.cab_1.low, found.cab_1.high) == (None, 0.9, pytest.approx(0.95))
    assert found.pass_rate.value == 1.0


def test_a_marginal_uses_only_what_all_compared_share() -> None:
    rows = [
        row(cli="a"),
        row(cli="b", passed=0),
        row(cli="b", task="only-b"),
        row(cli="a", model="only-a", passed=0),
    ]
    found = aggregate(rows, "cli")
    assert found.shared_units == 1
    assert [(g.name, g.units, g.pass_rate.value) for g in found.groups] == [("a", 1, 1.0), ("b", 1, 0.0)]


def test_a_pair_that_never_ran_is_not_compared_on_that_task() -> None:
    rows = [
        row(cli="a", task="x"),
        row(cli="b", task="x"),
        row(cli="a", task="y"),
        row(cli="b", task="y", state="not_run"),
    ]
    found = aggregate(rows, "cli")
    assert (found.shared_units, found.groups[1].not_run) == (1, 1)


def test_tokens_per_pass_charge_the_failed_attempts_and_not_infra() -> None:
    rows = [row(), row(run=2, passed=0, total_tokens=50), infra(run=3, total_tokens=7)]
    found = only(aggregate(rows, "pair"))
    assert (found.tokens_per_correct_task, found.infra_tokens) == (150.0, 7)


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([row(passed=0)], "nothing passed"),
        ([row(), row(run=2, total_tokens=None)], "tokens of 1 counted cells are not known"),
    ],
)
def test_tokens_per_pass_is_null_with_a_reason(rows: list[Row], why: str) -> None:
    found = only(aggregate(rows, "pair"))
    assert (found.tokens_per_correct_task, found.reasons["tokens_per_correct_task"]) == (None, why)


def test_infra_tokens_that_are_not_known_are_null() -> None:
    assert only(aggregate([row(), infra(run=2)], "pair")).infra_tokens is None


def test_published_mean_is_null_when_one_cell_is() -> None:
    assert only(
        aggregate([row(published=0.5), row(run=2, published=0.7)], "pair")
    ).published_0_1 == pytest.approx(0.6)
    assert only(aggregate([row(), row(run=2, published=None)], "pair")).published_0_1 is None


def test_nothing_ranks_above_where_bounds_cross_or_coverage_is_low() -> None:
    high, low = Estimate(value=0.9, low=0.85, high=0.95), Estimate(value=0.8, low=0.75, high=0.84)
    assert ranks_above(high, low, 1.0, 0.95)
    assert not ranks_above(low, high, 1.0, 1.0)
    assert not ranks_above(high, low, 1.0, 0.94)
    assert not ranks_above(high, Estimate(value=0.8, low=0.7, high=0.85), 1.0, 1.0)


def test_no_rows_no_groups() -> None:
    assert aggregate([], "cli").groups == []


rows = st.builds(
    row,
    cli=st.sampled_from("ab"),
    model=st.sampled_from("mn"),
    task=st.sampled_from("tu"),
    run=st.integers(1, 3),
    state=st.sampled_from(["counted", "infra", "not_run"]),
    passed=st.sampled_from([0, 1]),
    composite=st.none() | st.floats(0, 1),
)


@given(
    st.lists(rows, max_size=12), st.sampled_from(["cli", "model", "pair"]), st.randoms(use_true_random=False)
)
def test_order_is_nothing_and_bounds_hold_whatever_infra_would_have_given(
    cells: list[Row], by: Any, rng: random.Random
) -> None:
    found = aggregate(cells, by)
    shuffled = cells[:]
    rng.shuffle(shuffled)
    assert aggregate(shuffled, by).model_dump_json() == found.model_dump_json()
    luck = [r if r.state != "infra" else r.model_copy(update={"state": "counted"}) for r in cells]
    for group, told in zip(found.groups, aggregate(luck, by).groups, strict=True):
        assert 0 <= group.pass_rate.low <= group.pass_rate.high <= 1
        if told.pass_rate.value is not None:
            assert group.pass_rate.low - 1e-12 <= told.pass_rate.value <= group.pass_rate.high + 1e-12
