from __future__ import annotations

from typing import Any, Literal

import pytest
from scorer_evidence import call, evidence

from scorers import tokens
from scorers.evidence import Price, Rates, Usage


def of(*calls: Any, passed: Literal[0, 1] | None = 1, **fields: Any) -> tokens.Tokens:
    return tokens.score(evidence(calls=list(calls), **fields), passed)


def test_usage_is_summed_over_calls() -> None:
    found = of(
        call(
            0,
            usage=Usage(input=100, output=10, cached_read=40, cache_write=0, reasoning=3),
            usage_raw={"a": 1},
        ),
        call(1, main=False, usage=Usage(input=50, output=5, cached_read=20, cache_write=1, reasoning=0)),
    )
    assert (found.prompt_tokens, found.completion_tokens, found.total_tokens) == (150, 15, 165)
    assert (found.cached_read, found.cache_write, found.reasoning) == (60, 1, 3)
    assert (found.model_calls, found.calls_failed, found.tokens_per_correct_task) == (2, 0, 165)
    assert (found.source, found.usage_raw) == ("wire", [{"a": 1}, None])


def test_a_call_without_usage_makes_the_sums_null_and_leaves_a_lower_bound() -> None:
    found = of(call(0), call(1, usage=None))
    assert (found.prompt_tokens, found.total_tokens, found.tokens_per_correct_task) == (None, None, None)
    assert found.reasons["total_tokens"] == "1 of 2 counted calls stated no usage"
    assert found.known is not None
    assert found.known.total_tokens == 110


@pytest.mark.parametrize("error", ["stream_cut", "client_gone"])
def test_a_call_cut_while_the_model_answered_did_consume_tokens(error: str) -> None:
    assert of(call(0), call(1, usage=None, error=error)).total_tokens is None


@pytest.mark.parametrize(
    "error", ["rate_limited", "endpoint_down", "upstream_5xx", "bad_request", "context_overflow"]
)
def test_a_call_that_failed_before_an_answer_consumed_nothing(error: str) -> None:
    found = of(call(0), call(1, usage=None, error=error))
    assert (found.total_tokens, found.model_calls, found.calls_failed) == (110, 2, 1)


@pytest.mark.parametrize("error", ["limit", "limit_tokens", "limit_usd", "unauthorised"])
def test_a_call_that_cab_refused_is_no_model_call(error: str) -> None:
    found = of(call(0), call(1, usage=None, error=error))
    assert (found.total_tokens, found.model_calls) == (110, 1)


def test_no_calls_on_a_recorded_wire_is_a_measured_0() -> None:
    found = of()
    assert (found.total_tokens, found.model_calls, found.source) == (0, 0, "wire")


def test_an_unrecorded_wire_is_null_everywhere() -> None:
    found = of(wire_recorded=False)
    assert (found.total_tokens, found.model_calls, found.known, found.source) == (None, None, None, None)
    assert found.reasons["total_tokens"] == "the wire was not recorded"
    assert found.pass_used_for_division == 1


@pytest.mark.parametrize(("passed", "why"), [(0, "the cell did not pass"), (None, "pass was not measured")])
def test_a_cell_without_a_pass_has_no_tokens_per_pass(passed: Literal[0] | None, why: str) -> None:
    found = of(call(), passed=passed)
    assert (found.tokens_per_correct_task, found.reasons["tokens_per_correct_task"]) == (None, why)
    assert found.total_tokens == 110


def test_a_detail_that_one_call_did_not_state_is_null() -> None:
    found = of(call(0, usage=Usage(input=1, output=1, cached_read=0)), call(1))
    assert found.cached_read is None
    assert found.reasons["cached_read"] == "1 of 2 counted calls did not state it"


def test_cost_is_null_with_a_reason() -> None:
    found = of(call())
    assert (found.cost_usd, found.cost_source) == (None, None)
    assert "price" in found.reasons["cost_usd"]


PRICE = Price(
    rates=[Rates(input=1, output=10, cached_read=0.1, cache_write=2), Rates(above=1000, input=3, output=30)],
    source="sweep file",
)


@pytest.mark.parametrize(
    ("usage", "millionths"),
    [
        (Usage(input=1000, output=10), 1100),
        (Usage(input=1000, output=10, cached_read=500, cache_write=100), 400 + 50 + 200 + 100),
        # Past the threshold all of the call costs more; no rate of their own: as input.
        (Usage(input=1001, output=10, cached_read=500, cache_write=100), 3003 + 300),
    ],
)
def test_a_call_costs_what_its_input_says(usage: Usage, millionths: float) -> None:
    found = of(call(0, usage=usage), call(1, usage=None, error="upstream_5xx"), price=PRICE)
    assert (found.cost_usd, found.cost_source) == (millionths / 1e6, "sweep file")
    assert not {"cost_usd", "cost_source"} & found.reasons.keys()


def test_cost_is_null_where_a_call_stated_no_usage_and_0_where_none_was_made() -> None:
    found = of(call(0), call(1, usage=None), price=PRICE)
    assert (found.cost_usd, found.cost_source) == (None, None)
    assert found.reasons["cost_usd"] == "1 of 2 counted calls stated no usage"
    assert of(price=PRICE).cost_usd == 0


def test_a_price_that_is_not_known_says_why() -> None:
    assert of(call(0), no_price="a scripted model has no price").reasons["cost_usd"] == (
        "a scripted model has no price"
    )
