"""Runs of a small task with a command on this machine as the agent, and a harness that says what it is to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from external_samples import HISTORY, task, tree

from orchestrator.external import harness, images, judging
from orchestrator.external.harness_env import Harness
from orchestrator.external.judging import HarnessRequest
from orchestrator.external.results import Verdict
from orchestrator.external.runner import CommandAsked, RunRequest

CONDITIONS = ("transcript_replay", "stateplane")
MEND = "sed -i s,//,/, calc.py"


def request(tmp_path: Path, script: str = MEND, **changes: Any) -> RunRequest:
    found = task(tree(tmp_path / "repo"), history=HISTORY)
    fields: dict[str, Any] = {
        "out": tmp_path / "out",
        "benchmark": "swebench",
        "source": {"file": True},
        "tasks": (found,),
        "conditions": CONDITIONS,
        "agent": CommandAsked(("sh", "-c", script), 30.0),
    }
    return RunRequest(**(fields | changes))


def said(_: str) -> None:
    """Progress that nobody watches."""


class FakeHarness:
    """Says `outcomes` by condition, and keeps what it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **outcomes: str) -> None:
        self.outcomes, self.asked = outcomes, list[str]()
        monkeypatch.setattr(harness, "evaluate", self.evaluate)
        monkeypatch.setattr(images, "ensure_images", lambda *_: None)
        monkeypatch.setattr(judging, "require_gradable", lambda *_: None)

    def evaluate(self, tasks: Any, predictions: Path, *, condition: str, **_: Any) -> dict[str, Verdict]:
        self.asked.append(condition)
        outcome: Any = self.outcomes[condition]
        assert predictions.is_file()
        tests = (("test_mean", outcome == "resolved"),)
        return {it.instance_id: Verdict(outcome=outcome, fail_to_pass=tests) for it in tasks}

    @property
    def request(self) -> HarnessRequest:
        return HarnessRequest(lambda: Harness(Path("python"), "5.0.2", "5"))
