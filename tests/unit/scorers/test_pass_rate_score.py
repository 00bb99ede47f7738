from __future__ import annotations

from typing import Any

import pytest
from scorer_evidence import evidence, message, refusal_task, results, task, verification

from scorers.pass_rate import PassRate
from scorers.score import score


def judged(counts: bool = True, **fields: Any) -> PassRate:
    return score(task(), evidence(**fields), outcome_counts=counts).pass_rate


def of(**fields: Any) -> PassRate:
    return judged(verification=verification(**fields))


def test_a_verified_cell_passes() -> None:
    found = of()
    assert (found.passed, found.pass_raw, found.reason) == (1, 1, "passed")
    assert (found.partial_score, found.regressions) == (1.0, [])


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"exit_code": 1}, "exit_code"),
        ({"exit_code": None}, "exit_code"),
        ({"reward": None}, "reward_missing"),
        ({"reward": 0.5}, "reward_below_1"),
        ({"timed_out": True}, "timed_out"),
        ({"tests": []}, "tests_missing"),
        ({"tests": results(adds="passed", adds_many="passed")}, "tests_missing"),
        ({"tests": results(adds="passed", adds_many="failed", imports="passed")}, "tests_failed"),
        ({"tests": results(adds="skipped", adds_many="passed", imports="passed")}, "tests_failed"),
        ({"reward": None, "tests": [], "reference_passes": True}, "build_broken"),
        ({"reward": 0, "tests": results(other="passed"), "reference_passes": True}, "build_broken"),
    ],
)
def test_whatever_the_verifier_did_not_confirm_fails(fields: dict[str, Any], reason: str) -> None:
    found = of(**fields)
    assert (found.passed, found.pass_raw, found.reason) == (0, 0, reason)


def test_a_test_reported_twice_passes_only_when_both_reports_say_so() -> None:
    doubled = [*results(adds="passed", adds_many="passed", imports="passed"), *results(adds="failed")]
    assert of(tests=doubled).reason == "tests_failed"
    assert of(tests=doubled[::-1]).reason == "tests_failed"


def test_a_suite_that_fails_for_the_reference_too_measures_nothing() -> None:
    found = of(exit_code=1, reward=None, tests=[], reference_passes=False)
    assert (found.passed, found.reason, found.partial_score) == (None, "verify_error", None)
    assert "reference" in found.reasons["pass"]


def test_no_verification_is_null_and_not_zero() -> None:
    found = judged(counts=False, verification=None)
    assert (found.passed, found.reason, found.exit_code, found.tests) == (None, "not_verified", None, None)


def test_partial_score_is_the_share_of_fail_to_pass() -> None:
    found = of(exit_code=1, reward=0, tests=results(adds="passed", adds_many="failed", imports="passed"))
    assert (found.partial_score, found.regressions) == (0.5, [])


@pytest.mark.parametrize("state", ["failed", "skipped", "error"])
def test_a_broken_pass_to_pass_test_takes_the_whole_partial_score(state: Any) -> None:
    found = of(exit_code=1, reward=0, tests=results(adds="passed", adds_many="passed", imports=state))
    assert (found.partial_score, found.regressions) == (0.0, ["imports"])


def test_a_broken_build_has_partial_score_0_and_a_missing_report_none() -> None:
    assert of(reward=None, tests=[], reference_passes=True).partial_score == 0.0
    found = of(reward=0, tests=[])
    assert (found.partial_score, found.reasons["partial_score"]) == (
        None,
        "the verifier left no per-test report",
    )


def test_without_lists_reward_and_exit_code_decide() -> None:
    facts = task(fail_to_pass=[], pass_to_pass=[])
    found = score(facts, evidence(verification=verification(tests=[])), outcome_counts=True).pass_rate
    assert (found.passed, found.partial_score, found.regressions) == (1, None, None)


def test_a_voided_cell_fails_and_keeps_what_it_would_have_been() -> None:
    cheat = {"src/sum.py": "import os\nos._exit(0)\n"}
    scores = score(task(), evidence({"src/sum.py": "import os\n"}, cheat), outcome_counts=True)
    found = scores.pass_rate
    assert (found.passed, found.pass_raw, found.reason) == (0, 1, "voided")
    assert (scores.composite.composite, scores.tokens.pass_used_for_division) == (0.0, 0)


@pytest.mark.parametrize(
    ("text", "passed", "reason"),
    [
        ("The tests contradict each other, so no implementation can satisfy them.", 1, "refusal_correct"),
        ("Done.", 0, "refusal_not_correct"),
    ],
)
def test_on_a_refusal_task_the_refusal_decides_and_not_the_reward(
    text: str, passed: int, reason: str
) -> None:
    for reward in (0.0, 1.0):
        done = evidence(final_message=message(text), verification=verification(reward=reward, tests=[]))
        found = score(refusal_task(), done, outcome_counts=True).pass_rate
        assert (found.passed, found.reason, found.partial_score) == (passed, reason, None)


def test_the_published_key_is_pass() -> None:
    dumped = of().model_dump()
    assert dumped["pass"] == 1
    assert PassRate.model_validate_json(of().model_dump_json()) == of()
