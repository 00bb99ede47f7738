"""What one try of a handshake tells: the file decides, then what happened on the wire."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.run.outcome import CLI_NOT_STARTED, Outcome
from orchestrator.run.preflight.handshake import hello_task
from orchestrator.run.preflight.verdict import EDITED_FILE, WORD, Finding, edited, judge
from scorers.evidence import Evidence, FinalMessage, ModelCall, ToolCall, Usage

COMPLETED = Outcome("completed")


def diff(path: str = EDITED_FILE, line: str = WORD) -> str:
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-not yet\n+{line}\n"


def call(error: str | None = None, status: int = 200) -> ModelCall:
    usage = None if error else Usage(input=7, output=2)
    return ModelCall(index=0, start=0, end=1, request_hash="x", error=error, status=status, usage=usage)


def found(outcome: Outcome = COMPLETED, **fields: Any) -> tuple[str, str | None, bool]:
    finding = judge(outcome, Evidence(**fields))
    return finding.verdict, finding.cause, finding.again


def test_the_task_asks_for_the_edit_that_is_looked_for() -> None:
    task = hello_task()
    assert EDITED_FILE in task.instruction
    assert WORD in task.instruction
    assert (task.workdir / EDITED_FILE).read_text() == "not yet\n"
    assert task.solution.files == {EDITED_FILE: f"{WORD}\n"}


@pytest.mark.parametrize(
    ("patch", "made"),
    [
        (diff(), True),
        (diff(line=f"{WORD}."), True),
        (diff(path="other.txt"), False),
        (diff(line="not this"), False),
        (diff().replace("-not yet", f"-{WORD}").replace(f"+{WORD}", "+gone"), False),
        ("", False),
    ],
)
def test_only_the_added_line_of_the_file_is_the_edit(patch: str, made: bool) -> None:
    assert edited(patch) is made


@pytest.mark.parametrize(
    "outcome",
    [COMPLETED, Outcome("timed_out"), Outcome("agent_crashed"), Outcome("infra_error", "stream_cut")],
)
def test_an_edit_that_was_made_decides_whatever_came_after(outcome: Outcome) -> None:
    assert found(outcome, diff=diff(), calls=[call()]) == ("compatible", None, False)


def test_a_model_that_only_talks_is_tried_again_and_its_last_words_are_told() -> None:
    evidence = Evidence(calls=[call()], final_message=FinalMessage(text="I\nwould.", source="wire"))
    finding = judge(COMPLETED, evidence)
    assert (finding.verdict, finding.cause, finding.again) == ("incompatible", "no_edit", True)
    assert finding.last_words == "I would."
    assert "no tool and no edit in the text; the last words were: I would." in (finding.detail or "")


def test_tools_that_were_called_without_an_edit_are_named() -> None:
    used = ToolCall(call_id="c", name="read", start=0, end=1, arguments="{}")
    detail = judge(COMPLETED, Evidence(calls=[call()], tool_calls=[used])).detail or ""
    assert "by the tools called (read); the model said nothing" in detail


INFRA = "infra_error"


@pytest.mark.parametrize(
    ("outcome", "calls", "expected"),
    [
        (COMPLETED, [], ("incompatible", "no_call", True)),
        (Outcome("timed_out"), [], ("incompatible", "no_call", True)),
        (Outcome("agent_crashed", detail="exit code 3"), [], ("incompatible", "cli_start", True)),
        (Outcome("agent_oom"), [], ("incompatible", "cli_start", True)),
        (Outcome(INFRA, CLI_NOT_STARTED), [], ("incompatible", "cli_start", False)),
        (Outcome("timed_out"), [call("client_gone")], ("incompatible", "no_answer", True)),
        (Outcome("bad_request"), [call("bad_request", 400)], ("incompatible", "bad_request", False)),
        (
            Outcome("context_overflow"),
            [call("context_overflow")],
            ("incompatible", "context_overflow", False),
        ),
        (Outcome(INFRA, "key_refused"), [call("key_refused", 401)], ("undecided", "key_refused", False)),
        (
            Outcome(INFRA, "endpoint_down"),
            [call("endpoint_down", 404)],
            ("undecided", "model_unknown", False),
        ),
        (
            Outcome(INFRA, "endpoint_down"),
            [call("endpoint_down", 502)],
            ("undecided", "endpoint_down", False),
        ),
        (Outcome(INFRA, "engine"), [], ("undecided", "engine", False)),
    ],
)
def test_each_way_to_fail_has_its_cause(
    outcome: Outcome, calls: list[ModelCall], expected: tuple[str, str, bool]
) -> None:
    assert found(outcome, calls=calls) == expected


def test_what_a_cli_that_crashed_said_last_is_told() -> None:
    finding = judge(Outcome("agent_crashed", detail="exit code 3"), Evidence(stderr_tail="no module x\n"))
    assert finding.detail == (
        "the CLI ended as agent_crashed (exit code 3) without a call of its model; "
        "its last output was: no module x"
    )


@pytest.mark.parametrize(
    ("cause", "shared"), [("key_refused", True), ("endpoint_down", True), ("engine", False)]
)
def test_a_fault_of_the_endpoint_spares_the_other_clis(cause: str, shared: bool) -> None:
    assert Finding("undecided", cause).of_the_endpoint is shared
    assert not Finding("incompatible", cause).of_the_endpoint
