"""What one try of a handshake tells of a CLI and a model: a pure function of its end and its evidence."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.run.outcome import CLI_NOT_STARTED, OF_THE_MACHINE, Outcome
from orchestrator.store.preflight import Verdict
from scorers.diff import parse
from scorers.evidence import Evidence, ModelCall

EDITED_FILE = "hello.txt"
WORD = "cab-ready"

CLI_START, NO_CALL, NO_ANSWER, NO_EDIT = "cli_start", "no_call", "no_answer", "no_edit"
KEY_REFUSED, MODEL_UNKNOWN = "key_refused", "model_unknown"

_NOT_FOUND = 404
_WORDS_MAX = 300


@dataclass(frozen=True)
class Finding:
    """`again`: another try may find otherwise. `last_words` are what the model said last, None where it
    does not matter.
    """

    verdict: Verdict
    cause: str | None = None
    detail: str | None = None
    again: bool = False
    last_words: str | None = None

    @property
    def of_the_endpoint(self) -> bool:
        """Whether no CLI would fare better with this model at this endpoint."""
        return self.verdict == "undecided" and self.cause not in OF_THE_MACHINE


def judge(outcome: Outcome, evidence: Evidence) -> Finding:
    """The finding of one try. That the edit was made decides, however the CLI ended."""
    if edited(evidence.diff):
        return Finding("compatible")
    if outcome.name == "infra_error":
        return _of_fault(outcome, evidence.calls)
    if outcome.name in ("bad_request", "context_overflow"):
        return Finding(
            "incompatible", outcome.name, _line(outcome.detail or "the endpoint refused the request")
        )
    if any(call.error is None for call in evidence.calls):
        words = _line(evidence.final_message.text)
        said = f"the last words were: {words}" if words else "the model said nothing"
        detail = f"{EDITED_FILE} was not edited, by {_how(evidence)}; {said}"
        return Finding("incompatible", NO_EDIT, detail, again=True, last_words=words)
    if evidence.calls:
        return Finding(
            "incompatible", NO_ANSWER, f"no call was answered before the CLI {_end(outcome)}", again=True
        )
    said = _line(evidence.stderr_tail or evidence.stdout_tail)
    told = f"; its last output was: {said}" if said else ""
    detail = f"the CLI {_end(outcome)} without a call of its model{told}"
    crashed = outcome.name in ("agent_crashed", "agent_oom")
    return Finding("incompatible", CLI_START if crashed else NO_CALL, detail, again=True)


def edited(diff: str) -> bool:
    """Whether the edit that was asked for is in a diff of the workdir."""
    return any(WORD in line.text for file in parse(diff) if file.path == EDITED_FILE for line in file.added())


def _of_fault(outcome: Outcome, calls: list[ModelCall]) -> Finding:
    cause, detail = outcome.cause or "unknown", _line(outcome.detail or "")
    if cause == CLI_NOT_STARTED:
        return Finding("incompatible", CLI_START, detail)
    if any(call.error == cause and call.status == _NOT_FOUND for call in calls):
        cause = MODEL_UNKNOWN
    return Finding("undecided", cause, detail)


def _how(evidence: Evidence) -> str:
    """Which way of editing was tried."""
    names = sorted({call.name for call in evidence.tool_calls})
    return f"the tools called ({', '.join(names)})" if names else "no tool and no edit in the text"


def _end(outcome: Outcome) -> str:
    detail = f" ({outcome.detail})" if outcome.detail else ""
    return f"ended as {outcome.name}{detail}"


def _line(text: str) -> str:
    """The end of a text on one line."""
    line = " ".join(text.split())
    return line if len(line) <= _WORDS_MAX else f"…{line[-_WORDS_MAX:]}"
