"""What may be claimed of a run: computed from what is there of each attempt, never from how it was asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orchestrator.external.results import Claim, TaskResult

NOT_RUN = "not_run"
"""The `agent_outcome` of a patch that no agent made."""


def claim_of(results: Sequence[TaskResult], expected: int, weaknesses: Sequence[str] = ()) -> Claim:
    """The highest level that holds for every result. `expected` is how many attempts the run has;
    `weaknesses` are reasons why numbers mean less than they seem to, at any level.
    """
    made = [result for result in results if result.agent_outcome != NOT_RUN]
    missing = expected - len(results)
    if not made or len(made) < len(results):
        fake = len(results) - len(made)
        why = f"{fake} of {len(results)} patches were made by no agent" if results else "no agent has ended"
        return Claim(level="dry_run_pipeline_only", reasons=(why,))
    reasons = list(weaknesses)
    if missing:
        reasons.append(f"{missing} of {expected} attempts have not ended")
    judged = [result for result in results if result.verdict is not None]
    if not judged:
        return Claim(level="patch_generation_only", reasons=("the harness was not asked", *reasons))
    said_nothing = [
        result for result in results if result.verdict is None or result.verdict.outcome == "incomplete"
    ]
    if len(said_nothing) == len(results):
        nothing = f"the harness has said nothing of any patch{_why(said_nothing)}"
        return Claim(level="patch_generation_only", reasons=(nothing, *reasons))
    if said_nothing:
        of = f"{len(said_nothing)} of {len(results)} patches"
        reasons.append(f"the harness has said nothing of {of}{_why(said_nothing)}")
    return Claim(level="harness_evaluated", partial=bool(missing or said_nothing), reasons=tuple(reasons))


def _why(unjudged: Sequence[TaskResult]) -> str:
    """What is known of why, for the first, and whether there are other reasons."""
    reasons = list(dict.fromkeys(it.verdict.reason for it in unjudged if it.verdict and it.verdict.reason))
    if not reasons:
        return ""
    return f": {reasons[0]}" + (f" ({len(reasons) - 1} more: see verdicts.json)" if len(reasons) > 1 else "")


def claim_data(claim: Claim) -> dict[str, Any]:
    """A claim as it is stored: doubts are of who reads it."""
    return claim.model_dump(mode="json", exclude={"doubts"})
