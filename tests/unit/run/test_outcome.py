"""The outcome table: each cause has one outcome, and a later success makes an earlier fault harmless."""

from __future__ import annotations

import pytest

from orchestrator.errors import CellFault
from orchestrator.run.outcome import (
    CLI_NOT_STARTED,
    TABLE,
    Outcome,
    of_agent,
    of_fault,
    of_usage,
    of_verification,
)
from scorers.evidence import AgentEnd, ModelCall, Usage, Verification


def call(index: int, error: str | None = None, *, main: bool = True) -> ModelCall:
    return ModelCall(index=index, start=index, end=index + 0.5, request_hash="x", error=error, main=main)


def agent(*calls: ModelCall, exit_code: int | None = 0, tells: bool = True, **end: object) -> str:
    ending = AgentEnd.model_validate({"exit_code": exit_code, **end})
    return str(of_agent(ending, calls, exit_code_tells=tells))


def test_an_agent_that_ends_by_itself_completed() -> None:
    assert agent(call(0)) == "completed"
    assert agent() == "completed"


@pytest.mark.parametrize(
    "error", ["rate_limited", "endpoint_down", "upstream_5xx", "stream_cut", "key_refused"]
)
def test_the_endpoints_fault_is_infra_unless_it_was_overcome(error: str) -> None:
    assert agent(call(0), call(1, error), exit_code=1) == f"infra_error({error})"
    assert agent(call(0), call(1, error), timed_out=True) == f"infra_error({error})"
    assert agent(call(0, error), call(1)) == "completed"


def test_tokens_that_are_required_and_were_not_stated_are_infra() -> None:
    stated = call(0).model_copy(update={"usage": Usage(input=1, output=1)})
    completed = Outcome("completed")
    assert of_usage(completed, [stated, call(1, "upstream_5xx")]) == completed
    unknown = of_usage(completed, [stated, call(1)])
    assert (str(unknown), unknown.rule.counted) == ("infra_error(tokens_unmeasured)", False)
    assert unknown.detail == "1 of 2 calls stated no usage"
    assert not unknown.worth_a_retry


def test_a_side_request_decides_nothing_and_a_call_the_cli_gave_up_neither() -> None:
    assert agent(call(0), call(1, "endpoint_down", main=False)) == "completed"
    assert agent(call(0), call(1, "client_gone"), timed_out=True) == "timed_out"


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        ("context_overflow", "context_overflow"),
        ("bad_request", "bad_request"),
        ("unauthorised", "bad_request"),
        ("limit", "limit_reached(calls)"),
        ("limit_tokens", "limit_reached(tokens)"),
        ("limit_usd", "limit_reached(usd)"),
    ],
)
def test_the_clis_own_fault_is_counted(error: str, outcome: str) -> None:
    assert agent(call(0), call(1, error), exit_code=1) == outcome
    assert TABLE[outcome.partition("(")[0]].counted


def test_how_the_process_ended() -> None:
    assert agent(exit_code=3) == "agent_crashed"
    assert agent(exit_code=3, tells=False) == "completed"
    assert agent(exit_code=None, signal=11, tells=False) == "agent_crashed"
    assert agent(exit_code=None, signal=9, oom_kills=1) == "agent_oom"
    assert agent(exit_code=0, oom_kills=1) == "completed"
    assert agent(exit_code=None, signal=9, timed_out=True) == "timed_out"


def test_a_fault_of_the_machine_is_never_counted() -> None:
    outcome = of_fault(CellFault("engine", "gone"))
    assert str(outcome) == "infra_error(engine)"
    assert not outcome.rule.counted
    assert outcome.rule.retried


def test_that_cab_ended_a_cli_after_a_limit_is_told_and_changes_no_outcome() -> None:
    end = AgentEnd(exit_code=None, signal=9, stopped_after_limit=True)
    outcome = of_agent(end, [call(0), call(1, "limit_usd")], exit_code_tells=True)
    assert (str(outcome), outcome.rule.counted) == ("limit_reached(usd)", True)
    assert "cab ended it" in (outcome.detail or "")


def test_a_cli_that_cannot_be_started_is_tried_again_only_on_a_resume() -> None:
    outcome = of_fault(CellFault(CLI_NOT_STARTED, "no such file"))
    assert str(outcome) == "infra_error(cli_not_started)"
    assert outcome.rule.retried
    assert not outcome.worth_a_retry
    assert of_fault(CellFault("engine", "gone")).worth_a_retry
    assert not Outcome("completed").worth_a_retry


@pytest.mark.parametrize(
    ("reward", "reference", "outcome"),
    [
        (0.0, None, "completed"),
        (None, True, "completed"),
        (None, False, "verify_error"),
        (0.0, False, "verify_error"),
    ],
)
def test_only_what_also_fails_for_the_reference_is_a_verify_error(
    reward: float | None, reference: bool | None, outcome: str
) -> None:
    verification = Verification(exit_code=1, timed_out=False, reward=reward, reference_passes=reference)
    assert str(of_verification(Outcome("completed"), verification)) == outcome


def test_what_is_retried_is_not_counted_and_what_never_ran_is_neither() -> None:
    for rule in TABLE.values():
        assert not (rule.counted and rule.retried)
        assert rule.ran or not (rule.counted or rule.retried)


@pytest.mark.parametrize(
    ("said", "stored"),
    [
        ("git init failed: fatal: cannot mkdir /var/tmp/cab-0/x1/.git: No space left", "mkdir …/.git: No"),
        (
            'invalid mount "bind": /var/tmp/cab-0/x1/workdir:/workdir does not exist',
            ": …/workdir:/workdir does",
        ),
        ("[Errno 111] unix:///home/ada/.docker/run/docker.sock refused", "unix://…/docker.sock refused"),
        ("FileNotFoundError(2, '/home/ada/my-bench/model.sock')", "'…/model.sock'"),
        ("http+docker://localhost/v1.50/containers/json", "http+docker://localhost/v1.50/containers/json"),
        ("2 of 3 and/or more", "2 of 3 and/or more"),
    ],
)
@pytest.mark.parametrize("cause", ["engine", "disk", "gateway"])
def test_a_fault_of_the_machine_is_stored_without_its_directories(cause: str, said: str, stored: str) -> None:
    detail = of_fault(CellFault(cause, said)).detail
    assert detail is not None
    assert stored in detail
    assert "ada" not in detail
    assert "/var/tmp" not in detail


def test_paths_in_the_container_are_kept_where_they_are_the_fault() -> None:
    fault = CellFault(CLI_NOT_STARTED, "/usr/bin/tool: no such file")
    assert of_fault(fault).detail == "/usr/bin/tool: no such file"
