"""The continuation eval: tallies, dashes, sums, and what they are read from."""

from __future__ import annotations

import re
from typing import Any

import pytest

from orchestrator.context import continuation
from orchestrator.context.continuation import (
    NOT_EXPECTED,
    NOTHING_PACKAGED,
    Evaluation,
    evaluate,
    read,
)
from orchestrator.context.events import Event, History
from orchestrator.context.fixtures import MEASURES, Expectation, Fixture, load_fixtures
from orchestrator.context.packaging import CONDITIONS, Packaged, package, prompt_of
from orchestrator.errors import InputError

FIXTURES = load_fixtures()
FOUND = evaluate(FIXTURES)


def wanted(match: str) -> tuple[Expectation, ...]:
    return (Expectation(what=match, match=re.compile(match)),)


def fixture(name: str = "one", **expect: tuple[Expectation, ...]) -> Fixture:
    event = Event(id="e1", kind="constraint", text="keep the API", key="api", source="user", hard=True)
    measures: Any = expect
    return Fixture(name, "t", "a", "go on", History((event,)), measures)


@pytest.fixture
def packaging(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What is packaged, by condition; nothing where nothing is set."""
    texts: dict[str, str] = {"transcript_replay": "x" * 400}

    def made(condition: str, *_: object, **__: object) -> Packaged:
        text = texts.get(condition, "")
        return Packaged(condition, text, len(text) // 4)

    monkeypatch.setattr(continuation, "package", made)
    return texts


def test_what_is_met_is_counted_and_what_is_not_is_named(packaging: dict[str, str]) -> None:
    packaging["stateplane"] = "x keep the API. x failed. y passed. z failed." + "." * 155
    two = fixture(
        constraints=(*wanted("keep the API"), *wanted("keep the names")),
        active_failures=(*wanted(r"\bx\b"), *wanted(r"\by\b")),
        resolved_failures=(*wanted(r"\by\b"), *wanted(r"\bz\b")),
    )
    found = read(two, "stateplane", 100)
    assert (found.tallies["constraints"].met, found.tallies["constraints"].of) == (1, 2)
    assert found.tallies["constraints"].missed == ("one: keep the names",)
    assert found.tallies["active_failures"].missed == (r"one: \by\b",)
    assert found.tallies["resolved_failures"].missed == (r"one: \bz\b",)
    assert (found.tokens, found.base_tokens, found.relative) == (50, 100, 0.5)


def test_what_does_not_apply_is_no_full_score(packaging: dict[str, str]) -> None:
    of = fixture(constraints=wanted("API"), risky=wanted("evil"), superseded=wanted("old"))
    empty = read(of, "stateplane", 100).tallies
    assert (empty["constraints"].met, empty["constraints"].of, empty["constraints"].rate) == (0, 1, 0.0)
    for measure in ("risky", "superseded"):
        assert (empty[measure].of, empty[measure].rate, empty[measure].reason) == (0, None, NOTHING_PACKAGED)
    assert (empty["goals"].rate, empty["goals"].reason) == (None, NOT_EXPECTED)
    packaging["stateplane"] = "something"
    assert read(of, "stateplane", 100).tallies["risky"].rate == 1.0


def test_sums_are_of_numerators_and_denominators(packaging: dict[str, str]) -> None:
    packaging["stateplane"] = "the API"
    one = fixture("one", constraints=wanted("API"))
    two = fixture("two", constraints=(*wanted("names"), *wanted("types")), risky=wanted("API"))
    [overall] = evaluate((one, two), ("stateplane",)).overall
    assert (overall.tallies["constraints"].met, overall.tallies["constraints"].of) == (1, 3)
    assert (overall.tallies["risky"].met, overall.tallies["risky"].of) == (0, 1)
    assert overall.tallies["goals"].reason == NOT_EXPECTED
    assert (overall.fixtures, overall.tokens, overall.base_tokens) == (2, 2, 200)


def test_a_refused_packaging_meets_nothing_and_is_counted() -> None:
    found = evaluate(FIXTURES, ("stateplane-max_1_tokens",))
    [overall] = found.overall
    refused = [one for one in found.readings if one.refused]
    assert len(refused) == overall.refused >= len(FIXTURES) - 1
    assert all("does not fit" in (one.refused or "") and one.tokens is None for one in refused)
    assert all(tally.met == 0 for one in refused for tally in one.tallies.values())
    assert overall.tallies["constraints"].rate == 0.0


def test_an_unknown_condition_is_named() -> None:
    with pytest.raises(InputError, match="did you mean"):
        evaluate(FIXTURES, ("stateplain",))


def test_the_text_that_is_read_is_what_a_prompt_carries() -> None:
    tokens = {(one.fixture, one.condition): one.tokens for one in FOUND.readings}
    for one in FIXTURES:
        for condition in CONDITIONS:
            packaged = package(condition, one.history, one.task, policy="continuation")
            assert packaged.tokens == tokens[one.name, condition]
            assert packaged.text
            assert packaged.text in prompt_of(one.task, packaged)


def test_two_evaluations_are_the_same() -> None:
    assert evaluate(FIXTURES) == FOUND
    assert isinstance(FOUND, Evaluation)
    assert [one.condition for one in FOUND.overall] == list(CONDITIONS)


def test_a_transcript_loses_nothing_and_holds_back_no_instructions() -> None:
    """It is the measure of the measures: where it missed what is said in it, the reading would be unfair."""
    replay = FOUND.overall[0]
    assert {measure for measure in MEASURES if replay.tallies[measure].missed} == {"risky"}


def test_the_state_loses_nothing_that_is_critical() -> None:
    """What else it loses stands in docs/external.md."""
    state = FOUND.overall[2].tallies
    for measure in ("constraints", "active_failures", "resolved_failures", "warnings"):
        assert state[measure].missed == (), measure
