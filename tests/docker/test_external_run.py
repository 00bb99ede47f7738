"""Patch generation in real containers: the CLIs' work becomes predictions, and a kill loses nothing of it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.external.suites import load_suite
from orchestrator.external.tasks import ExternalTask
from tests.docker.command import Cab, wait_for

CONDITIONS = ("compact_summary", "stateplane")


@pytest.fixture
def cab() -> Iterator[Cab]:
    with Cab.own() as cab:
        yield cab


@pytest.fixture(scope="module")
def task() -> ExternalTask:
    return load_suite("smoke")[0]


def words(cab: Cab, task: ExternalTask, cli: str) -> list[str]:
    ids = cab.root / "ids.json"
    ids.write_text(json.dumps([task.instance_id]))
    asked = ["--suite", "smoke", "--instance-ids", str(ids), "--conditions", ",".join(CONDITIONS)]
    return ["external", "run", *asked, "--agent", cli, "--out", str(cab.root / "out"), "--json"]


def files_after(task: ExternalTask, patch: str, into: Path) -> dict[str, bytes]:
    """The repository as plain `git apply` leaves it."""
    assert task.source is not None
    shutil.copytree(task.source, into)
    env = {"PATH": os.defpath, "GIT_CEILING_DIRECTORIES": str(into.parent)}
    subprocess.run(["git", "apply", "-"], cwd=into, input=patch.encode(), env=env, check=True)
    return {it.relative_to(into).as_posix(): it.read_bytes() for it in into.rglob("*") if it.is_file()}


def predictions(out: Path, condition: str) -> list[dict[str, Any]]:
    lines = (out / "predictions" / f"{condition}.run1.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def check(cab: Cab, task: ExternalTask, card: Any, tmp_path: Path) -> None:
    assert card["claim"]["level"] == "patch_generation_only"
    assert "a scripted model, served by cab itself" in card["claim"]["reasons"]
    out = cab.root / "out"
    gold = files_after(task, task.patch or "", tmp_path / "gold")
    for condition in CONDITIONS:
        [made] = predictions(out, condition)
        assert (made["instance_id"], made["model_name_or_path"]) == (task.instance_id, condition)
        assert files_after(task, made["model_patch"], tmp_path / condition) == gold
    cells = [json.loads(it.read_bytes()) for it in out.glob("results/*/cells/*/*/*/run1/cell.json")]
    assert sorted(cell["identity"]["condition"] for cell in cells) == sorted(CONDITIONS)
    for cell in cells:
        assert cell["isolation"] == {"containers": "separate", "egress": "none", "verifier": "fresh"}
        assert cell["scores"]["tokens"]["total_tokens"] > 0
        assert cell["scores"]["pass_rate"]["pass"] is None


@pytest.mark.timeout(300)
def test_codex_is_killed_and_the_same_command_goes_on(cab: Cab, task: ExternalTask, tmp_path: Path) -> None:
    def index() -> list[str]:
        found = list((cab.root / "out").glob("results/*/index.jsonl"))
        return found[0].read_text().splitlines() if found else []

    running = cab.start(*words(cab, task, "codex"))
    wait_for(lambda: index() or running.process.poll() is not None, "the first cell")
    running.signal(signal.SIGKILL)
    running.end(-signal.SIGKILL)
    [first] = index()
    check(cab, task, cab.start(*words(cab, task, "codex")).end(0).data, tmp_path)
    assert index()[0] == first
    assert len(index()) == len(CONDITIONS)
    again = cab.start(*words(cab, task, "codex")).end(0)
    assert "to run" not in again.err


@pytest.mark.timeout(300)
def test_opencode_makes_the_patches_too(cab: Cab, task: ExternalTask, tmp_path: Path) -> None:
    done = cab.start(*words(cab, task, "opencode"), "--max-workers", "2").end(0)
    check(cab, task, done.data, tmp_path)
