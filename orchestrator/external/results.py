"""What a run of an external benchmark came to, as it is stored in `scorecard.json`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from orchestrator.analysis.conditions import Outcome
from orchestrator.external import MAX_RUNS

ClaimLevel = Literal["dry_run_pipeline_only", "patch_generation_only", "harness_evaluated"]
"""What may be claimed, from the least to the most."""


_Count = Annotated[int, Field(ge=0, le=2**53)]


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Verdict(_Stored):
    """What the harness said of one prediction. `reason` is why it is no verdict on the patch, else "";
    tests are ids, each with whether it passed.
    """

    outcome: Outcome
    reason: str = ""
    applied: bool | None = None
    fail_to_pass: tuple[tuple[str, bool], ...] = ()
    pass_to_pass: tuple[tuple[str, bool], ...] = ()


class TaskResult(_Stored):
    """One task under one condition, once.

    Tokens of the prompt are estimated (`context.tokens`); `input_tokens` are those of all calls as the wire
    states them, None where no model was asked through cab. `carried` are the state groups that the prompt
    carried, with the ids of their items.
    """

    instance_id: str
    condition: str
    run: int = Field(ge=1)
    cell_id: str | None = None
    agent_outcome: str
    """The cell's (`completed`, `timeout`, …); of a command on the host `completed`, `timeout` or `failed`."""
    prompt_tokens: _Count
    context_tokens: _Count
    """What of `prompt_tokens` the condition added."""
    carried: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    patch_fault: str = ""
    """Why no patch could be made of what the agent left, "" where one was: it has none then."""
    patch_bytes: _Count
    patch_sha256: str | None = None
    """Of the patch as it is stored; None in a card that was written before it was told."""
    patch_lines: _Count
    """Added and removed lines."""
    elapsed_s: float | None = None
    input_tokens: _Count | None = None
    output_tokens: _Count | None = None
    verdict: Verdict | None = None
    """None where the harness was not asked."""


class Claim(_Stored):
    """What may be claimed of a run, and why no more. `partial`: the harness has not said something of all.

    `doubts` are known to who reads a scorecard: in what it does not agree with the run that it stands beside.
    """

    level: ClaimLevel
    partial: bool = False
    reasons: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


class Scorecard(_Stored):
    """`scorecard.json`: every result of a run, with what may be claimed of it. `tasks` are all that were to
    be run, whether there is a result or not; none are named in files of an older cab.
    """

    v: Literal[1] = 1
    run_id: str
    benchmark: str
    agent: str
    model: str
    conditions: tuple[str, ...] = Field(min_length=1)
    runs: int = Field(ge=1, le=MAX_RUNS)
    tasks: tuple[str, ...] = ()
    claim: Claim
    results: tuple[TaskResult, ...]
