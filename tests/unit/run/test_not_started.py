"""A CLI whose command is not there is told from an engine that failed, and not tried in vain."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.adapter import Adapter, Launch
from orchestrator.errors import CellFault, NotStarted
from orchestrator.plan.expand import PlannedCell
from orchestrator.run.cell import CellResult, CellRun
from orchestrator.run.outcome import CLI_NOT_STARTED, Outcome
from orchestrator.run.sweep import Sweep, _Job
from orchestrator.sandbox import docker as sandbox_docker
from orchestrator.sandbox.control import Ended, Failed, Ready, Started
from orchestrator.store.names import CellKey

KEY = CellKey("hello", "none", "a/b", 1)
CELL = PlannedCell(KEY.cell_id("s-1"), KEY, None, 0)


class Line:
    """A control line on which PID 1 says one thing."""

    def __init__(self, message: Any) -> None:
        self._message = message

    def receive(self, *_: Any) -> Any:
        return self._message

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(
    ("kind", "number", "lasting"),
    [
        (Started, 2, True),
        (Started, 13, True),
        (Started, 11, False),
        (Ready, 2, False),
        (Ended, 2, False),
    ],
)
def test_only_a_command_that_cannot_be_executed_is_not_started(kind: Any, number: int, lasting: bool) -> None:
    run = sandbox_docker._Run(None, SimpleNamespace(argv=("hello",), name="c", time_limit_s=1.0))
    run._line = Line(Failed(errno=number, text="why"))
    run._output = SimpleNamespace(error=None, ended_at=None, stop=lambda _: True)
    with pytest.raises(
        CellFault, match=rf"could not start hello: why \\(errno {number}\\)".replace("\\\\", "\\")
    ) as fault:
        run._expect(kind, 0.0)
    run.close()
    assert isinstance(fault.value, NotStarted) is lasting
    assert fault.value.cause == "engine"


def test_the_cell_says_so(tmp_path: Path) -> None:
    def run(*_: Any, **__: Any) -> None:
        raise NotStarted("engine", "PID 1 could not start hello: No such file", place="c")

    adapter = Adapter(
        "hello", "1", lambda _: Launch(argv=("hello",)), wire=None, tty=False, final_message="stdout"
    )
    bench: Any = SimpleNamespace(
        tasks={"a/b": None},
        adapters={"hello": adapter},
        gateway=None,
        prices={},
        stacks={},
        grader=SimpleNamespace(sandbox=SimpleNamespace(run=run)),
    )
    cell = CellRun(bench, CELL, tmp_path, lambda _: None)
    spec: Any = None
    with pytest.raises(CellFault, match="No such file") as fault:
        cell._metered(tmp_path, spec)
    assert fault.value.cause == CLI_NOT_STARTED


@pytest.mark.parametrize(("cause", "again"), [(CLI_NOT_STARTED, False), ("engine", True)])
def test_a_sweep_tries_again_only_what_may_get_better(cause: str, again: bool) -> None:
    observer: Any = SimpleNamespace(retrying=lambda *_: None)
    bench: Any = None
    sweep = Sweep(bench, bench, [CELL], retries=2, observer=observer)
    scores: Any = SimpleNamespace(
        tokens=SimpleNamespace(prompt_tokens=None, completion_tokens=None, cost_usd=None)
    )
    nothing: Any = None
    result = CellResult(
        outcome=Outcome("infra_error", cause),
        facts=nothing,
        evidence=nothing,
        scores=scores,
        started_at=datetime(2026, 11, 27, tzinfo=UTC),
        duration_s=1.0,
        load=0.0,
        bounded=True,
    )
    assert sweep._again(_Job(CELL), result) is again
