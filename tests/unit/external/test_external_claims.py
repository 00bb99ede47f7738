"""What may be claimed is what happened: a level no attempt falls short of."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.analysis.conditions import Outcome
from orchestrator.external.claims import claim_of
from orchestrator.external.results import TaskResult, Verdict


def result(outcome: Outcome | None = None, *, agent: str = "completed", **changes: Any) -> TaskResult:
    verdict = None if outcome is None else Verdict(outcome=outcome)
    fields = {"instance_id": "a", "condition": "stateplane", "run": 1, "agent_outcome": agent}
    fields |= {
        "prompt_tokens": 9,
        "context_tokens": 0,
        "patch_bytes": 1,
        "patch_lines": 1,
        "verdict": verdict,
    }
    return TaskResult.model_validate(fields | changes)


@pytest.mark.parametrize(
    ("results", "expected", "level", "partial"),
    [
        ([], 2, "dry_run_pipeline_only", False),
        ([result(agent="not_run")] * 2, 2, "dry_run_pipeline_only", False),
        ([result("resolved"), result(agent="not_run")], 2, "dry_run_pipeline_only", False),
        ([result()] * 2, 2, "patch_generation_only", False),
        ([result("incomplete")] * 2, 2, "patch_generation_only", False),
        ([result("resolved"), result()], 2, "harness_evaluated", True),
        ([result("resolved"), result("incomplete")], 2, "harness_evaluated", True),
        ([result("resolved")], 2, "harness_evaluated", True),
        ([result("error"), result("empty_patch")], 2, "harness_evaluated", False),
    ],
)
def test_the_level_is_what_holds_for_all(
    results: list[TaskResult], expected: int, level: str, partial: bool
) -> None:
    claim = claim_of(results, expected)
    assert (claim.level, claim.partial) == (level, partial)


def test_it_says_why_no_more_is_claimed() -> None:
    weak = ["a scripted model, served by cab itself"]
    assert claim_of([result()], 2, weak).reasons == (
        "the harness was not asked",
        *weak,
        "1 of 2 attempts have not ended",
    )
    assert claim_of([result("resolved")], 1, weak).reasons == tuple(weak)
    assert claim_of([result("resolved")], 1).reasons == ()


def test_it_says_why_the_harness_said_nothing() -> None:
    def left(reason: str) -> TaskResult:
        return result(verdict=Verdict(outcome="incomplete", reason=reason))

    ended = "the harness ended with 1 and wrote no verdict: no network"
    assert claim_of([left(ended), left(ended)], 2).reasons[0] == (
        f"the harness has said nothing of any patch: {ended}"
    )
    assert claim_of([left(ended), left("another"), result("resolved")], 3).reasons == (
        f"the harness has said nothing of 2 of 3 patches: {ended} (1 more: see verdicts.json)",
    )
    assert claim_of([left(""), result("resolved")], 2).reasons == (
        "the harness has said nothing of 1 of 2 patches",
    )
