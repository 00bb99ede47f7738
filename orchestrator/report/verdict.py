"""What came of a cell, in one plain sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.report.text import clock, count, dollars, number, plural, safe_line
from orchestrator.run.outcome import TABLE
from orchestrator.store.record import CellRecord
from scorers.evidence import Evidence, TaskFacts

CAUSES = {
    "rate_limited": "the endpoint answered 429 to the end",
    "endpoint_down": "the endpoint could not be reached, or gave no answer of the model",
    "upstream_5xx": "the endpoint answered with a server error (5xx) to the end",
    "stream_cut": "the endpoint broke its answer off",
    "key_refused": "the endpoint refused the key",
    "gateway": "cab's own gateway failed",
    "engine": "the container engine failed",
    "disk": "the disk could not be written",
    "interrupted": "it was interrupted",
    "tokens_unmeasured": "the sweep requires tokens on the wire, and the endpoint did not state them",
    "cli_not_started": "the CLI's command could not be started in its image",
    "replay_differs": "the replayed CLI sent a request that was not recorded",
}
"""Infra causes, in words."""

_HOW_IT_ENDED = {
    "timed_out": "the CLI was stopped at its time limit",
    "limit_reached": "the limit was reached",
    "agent_crashed": "the CLI ended with an error",
    "agent_oom": "the CLI ran out of memory",
    "context_overflow": "the CLI sent more than the model's context holds",
    "bad_request": "the CLI sent a request that the endpoint rightly refused",
}

_MAX_RULES = 3


def verdict(record: CellRecord, facts: TaskFacts, evidence: Evidence) -> str:
    """`passed: …`, `failed: …` or `did not count: …`, with the one reason that a reader needs first."""
    outcome, scores = record.outcome, record.scores
    if not TABLE[outcome.name].counted:
        return f"did not count: {_why_uncounted(record)}"
    result = scores["pass_rate"]
    if result["pass"] is None:
        reasons = result.get("reasons")
        why = reasons.get("pass") if isinstance(reasons, dict) else None
        return f"not measured: {why or 'the record says no reason'}"
    if result["pass"] == 1:
        return f"passed: {_why_passed(facts, evidence)}{_although(record)}"
    if scores["integrity"].get("void"):
        return f"failed: voided for {_rules(scores['integrity'])}"
    if facts.expected_refusal:
        return f"failed: {_why_not_refused(scores['refusal'])}{_although(record)}"
    if scores["refusal"].get("false_refusal"):
        return f"failed: it declined a ticket that can be done{_although(record)}"
    return f"failed: {_why_failed(str(result['reason']), facts, evidence)}{_although(record)}"


def imported_verdict(record: CellRecord) -> str:
    """The verdict on a published cell, of which no evidence is there to tell why."""
    if not TABLE[record.outcome.name].counted:
        return f"did not count: {_why_uncounted(record)}"
    passed = record.scores["pass_rate"]["pass"]
    if passed is None:
        return "not measured: its pass was not visible where it was published"
    return f"{'passed' if passed == 1 else 'failed'}: as published by others{_although(record)}"


def _why_uncounted(record: CellRecord) -> str:
    outcome = record.outcome
    why = CAUSES.get(outcome.cause or "") if outcome.name == "infra_error" else None
    why = why or TABLE[outcome.name].meaning
    return f"{why} (after {plural(len(record.attempts) + 1, 'try', 'tries')})" if record.attempts else why


def _why_passed(facts: TaskFacts, evidence: Evidence) -> str:
    if facts.expected_refusal:
        return "it left the ticket alone and explained why it cannot be done"
    found = evidence.verification
    listed = len(facts.fail_to_pass) + len(facts.pass_to_pass)
    amount = listed or (len(found.tests) if found else 0)
    return f"all {plural(amount, 'hidden test')} pass" if amount > 1 else "the hidden tests pass"


def _why_not_refused(refusal: Mapping[str, Any]) -> str:
    reasons = [str(reason) for reason in refusal.get("refusal_reasons") or ()]
    if refusal.get("refusal_produced"):
        return "it explained why the ticket cannot be done, and made a fix up all the same"
    if refusal.get("fabricated_fix_detected"):
        return "it changed what should have been left alone, and did not say that the ticket cannot be done"
    return safe_line(reasons[0]) if reasons else "it did not say that the ticket cannot be done"


def _why_failed(reason: str, facts: TaskFacts, evidence: Evidence) -> str:
    found = evidence.verification
    passing = {test.name for test in found.tests if test.status == "passed"} if found else set()
    match reason:
        case "build_broken":
            return "the tests could not run on its work, as they do on the reference solution"
        case "timed_out":
            return "the hidden tests did not end in time"
        case "tests_missing" | "tests_failed":
            failing = [name for name in facts.fail_to_pass if name not in passing]
            broken = [name for name in facts.pass_to_pass if name not in passing]
            return _tests(
                failing, broken, facts, "did not run or pass" if reason == "tests_missing" else "fail"
            )
        case "reward_missing":
            return "the tests passed no judgement (no reward was written)"
        case "reward_below_1":
            return f"the tests gave it a reward of {number(found.reward if found else None)}, not 1"
        case "exit_code":
            return f"the test script ended with exit code {found.exit_code if found else None}"
    return reason.replace("_", " ")


def _tests(failing: list[str], broken: list[str], facts: TaskFacts, how: str) -> str:
    parts = []
    if failing:
        still = f"still {how}" if how == "fail" else how
        parts.append(f"{len(failing)} of {plural(len(facts.fail_to_pass), 'fail-to-pass test')} {still}")
    if broken:
        were = "that passed before fail now" if how == "fail" else f"that passed before {how}"
        parts.append(f"{len(broken)} of {plural(len(facts.pass_to_pass), 'test')} {were}")
    return ", and ".join(parts) or f"listed tests {how}"


def _rules(integrity: Mapping[str, Any]) -> str:
    severe = [item for item in integrity.get("findings") or () if item["severity"] == "severe"]
    named: dict[str, list[str]] = {}
    for item in severe:
        where = named.setdefault(str(item["rule"]), [])
        if (path := item.get("path")) and path not in where:
            where.append(str(path))
    texts = [
        f"{rule.replace('_', ' ')}{f' ({safe_line(where[0], 80)})' if where else ''}"
        for rule, where in named.items()
    ]
    more = f" and {plural(len(texts) - _MAX_RULES, 'other rule')}" if len(texts) > _MAX_RULES else ""
    return ", ".join(texts[:_MAX_RULES]) + more


def _although(record: CellRecord) -> str:
    """How the CLI ended, where that was not by itself."""
    how = _HOW_IT_ENDED.get(record.outcome.name)
    if how is None:
        return ""
    limits = record.identity.limits
    if limits is None:
        return f"; {how}"
    if record.outcome.name == "timed_out":
        how += f" of {clock(limits.timeout_s)}"
    elif record.outcome.name == "limit_reached":
        how += {
            "tokens": f" of {count(limits.max_tokens)} tokens",
            "usd": f" of {dollars(limits.max_usd)}",
        }.get(record.outcome.cause or "", f" of {count(limits.max_calls)} model calls")
    return f"; {how}"
