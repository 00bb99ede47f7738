"""The outcome table: what happened to a cell, never mixed with its score.

One table says of every outcome whether it is counted in rates and whether it is tried again; a stored result
is re-read by the same table. A retry depends on the cause alone, never on a score.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from orchestrator.errors import CellFault
from orchestrator.gateway.faults import CATEGORIES, INFRA
from orchestrator.store import record
from scorers.evidence import LIMIT_ERRORS, AgentEnd, ModelCall, Verification
from scorers.tokens import consumes


@dataclass(frozen=True)
class Rule:
    """`counted`: verified and part of every rate. `retried`: run again. `ran`: the CLI was started at all."""

    counted: bool
    retried: bool
    ran: bool
    meaning: str


TABLE: dict[str, Rule] = {
    "completed": Rule(True, False, True, "the CLI ended by itself"),
    "timed_out": Rule(
        True, False, True, "the time limit ended the CLI (waiting for rate limits stops the clock)"
    ),
    "limit_reached": Rule(True, False, True, "a limit of the task on calls, tokens or money was used up"),
    "agent_crashed": Rule(True, False, True, "the CLI ended with an error or by a signal of its own"),
    "agent_oom": Rule(True, False, True, "the CLI used up the container's memory"),
    "context_overflow": Rule(True, False, True, "the CLI sent more than the model's context holds"),
    "bad_request": Rule(True, False, True, "the CLI sent a request that the endpoint rightly refused"),
    "infra_error": Rule(False, True, True, "something failed that is not the agent's doing"),
    "verify_error": Rule(False, True, True, "the verifier failed where the reference solution fails as well"),
    "skipped": Rule(False, False, False, "not run, for a reason known before"),
    "incompatible": Rule(False, False, False, "this CLI and this model cannot speak to each other"),
    "sweep_budget": Rule(False, False, False, "the sweep's budget was used up before"),
    "cancelled": Rule(False, False, False, "stopped by the user"),
}

REPLAY_DIFFERS = "replay_differs"
"""A replayed cell sent a request that was not recorded: what it would have done next is not known."""

CLI_NOT_STARTED = "cli_not_started"
"""The CLI's command is not in its image, or cannot be executed there."""

TOKENS_UNMEASURED = "tokens_unmeasured"
"""The sweep requires tokens counted on the wire, and the endpoint did not state them."""

INFRA_CAUSES = (
    *INFRA,
    *("engine", "disk", "interrupted"),
    *(CLI_NOT_STARTED, TOKENS_UNMEASURED, REPLAY_DIFFERS),
)

OF_THE_MACHINE = ("engine", "disk", "gateway", "interrupted")
"""Causes that lie in the machine that cab runs on, and not in the endpoint."""

_DIRECTORIES = re.compile(r"""(?:(?<=://)|(?<![\w./:]))/(?:[^\s/:'"(),]+/)+""")
"""Of an absolute path, all but its last name."""

LASTING_CAUSES = frozenset({CLI_NOT_STARTED, TOKENS_UNMEASURED, REPLAY_DIFFERS})
"""Causes that trying again at once cannot mend; on a resume, when somebody may have, it is tried."""


@dataclass(frozen=True)
class Outcome:
    """What happened. `cause` qualifies infra_error and limit_reached; `detail` is for people."""

    name: str
    cause: str | None = None
    detail: str | None = None

    @property
    def rule(self) -> Rule:
        return TABLE[self.name]

    @property
    def worth_a_retry(self) -> bool:
        """Whether the same sweep tries the cell again."""
        return self.rule.retried and self.cause not in LASTING_CAUSES

    def __str__(self) -> str:
        """As the trace has it; people read `with_cause`."""
        return f"{self.name}({self.cause})" if self.cause else self.name


def with_cause(name: str, cause: str | None) -> str:
    """An outcome as people read it: `infra_error (rate_limited)`."""
    return f"{name} ({cause})" if cause else name


def stored_outcome(outcome: Outcome) -> record.Outcome:
    """An outcome as it is stored, with the table's word of today on whether it counts."""
    return record.Outcome.model_validate({**asdict(outcome), "counted": outcome.rule.counted})


def of_fault(fault: CellFault) -> Outcome:
    """The outcome of a cell that cab itself could not bring to its end.

    Records are shared, and faults of the machine speak of its files: of a path the last name is kept alone.
    """
    said = str(fault)
    detail = _DIRECTORIES.sub("…/", said) if fault.cause in OF_THE_MACHINE else said
    return Outcome("infra_error", fault.cause, detail)


def of_agent(end: AgentEnd, calls: Sequence[ModelCall], *, exit_code_tells: bool) -> Outcome:
    """The outcome of an agent that came to its end, before verification.

    An error of the endpoint decides only where it was not overcome: a later call that succeeded makes it
    harmless.
    """
    last = _last_call(calls)
    error = last.error if last else None
    if last and error in INFRA:
        return Outcome("infra_error", error, last.error_detail)
    refused = [call for call in calls if call.error in LIMIT_ERRORS]
    if refused:
        first = refused[0]
        detail = first.error_detail
        if end.stopped_after_limit:
            detail = f"{detail}; the CLI went on, and cab ended it"
        return Outcome("limit_reached", LIMIT_ERRORS[first.error or ""], detail)
    if end.timed_out:
        return Outcome("timed_out")
    failed = bool(end.signal) or (exit_code_tells and end.exit_code != 0)
    if end.oom_kills and failed:
        return Outcome("agent_oom", detail=f"{end.oom_kills} processes killed for memory")
    if last and error in CATEGORIES:
        return Outcome(CATEGORIES[error].outcome, detail=last.error_detail)
    if failed:
        how = f"signal {end.signal}" if end.signal else f"exit code {end.exit_code}"
        return Outcome("agent_crashed", detail=how)
    return Outcome("completed")


def of_usage(agent: Outcome, calls: Sequence[ModelCall]) -> Outcome:
    """The agent's outcome, unless a call's tokens are not known where the sweep requires them."""
    consumed = [call for call in calls if consumes(call)]
    missing = sum(call.usage is None for call in consumed)
    if not missing:
        return agent
    return Outcome("infra_error", TOKENS_UNMEASURED, f"{missing} of {len(consumed)} calls stated no usage")


def of_verification(agent: Outcome, verification: Verification) -> Outcome:
    """The final outcome: the agent's, unless the verifier failed where the reference fails as well."""
    if verification.reference_passes is False:
        return Outcome("verify_error", detail="the reference solution fails in this verifier as well")
    return agent


def _last_call(calls: Sequence[ModelCall]) -> ModelCall | None:
    """The last call of the main thread that came to an end of its own; side requests decide nothing."""
    ended = [call for call in calls if call.error != "client_gone"]
    main = [call for call in ended if call.main] or ended
    return max(main, key=lambda call: call.end) if main else None
