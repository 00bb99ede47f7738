"""A command on this machine: its own tree, its prompt, its record; and what keeps a key from it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from external_samples import git, task, tree

from orchestrator.errors import InputError, StoreError
from orchestrator.external.artifacts import Artifacts, Attempt
from orchestrator.external.cells import prompts_of, task_name, write_task
from orchestrator.external.command_agent import CommandAgent
from orchestrator.plan.task import load_task

ONE, TWO = (Attempt("lab__calc-1", "stateplane", run) for run in (1, 2))


def agent(out: Path, *command: str, timeout_s: float = 120.0, codex_home: Path | None = None) -> CommandAgent:
    artifacts, found = Artifacts(out / "run"), task(tree(out / "repo"))
    artifacts.staging.mkdir(parents=True, exist_ok=True)
    prompts = prompts_of(found, ("stateplane",), "auto", None)
    path = artifacts.tasks / task_name(found)
    write_task(found, prompts, path, staging=artifacts.staging, repos=None)
    artifacts.write(artifacts.prompt(found.instance_id, "stateplane"), prompts["stateplane"].text.encode())
    tasks = {found.instance_id: load_task(artifacts.tasks, task_name(found))}
    return CommandAgent(artifacts, command, tasks, timeout_s, codex_home)


def shell(out: Path, script: str, **options: object) -> CommandAgent:
    return agent(out, "sh", "-c", script, "agent", "{prompt_file}", **options)


def test_it_works_in_a_tree_of_its_own_with_the_prompt(tmp_path: Path) -> None:
    found = shell(tmp_path, 'cat > in.txt; cp "$1" arg.txt; echo said; echo loud >&2; pwd > where.txt')
    found.run([ONE, TWO], 2)
    trees = found.artifacts.worktrees / "lab__calc-1" / "stateplane"
    prompt = found.artifacts.prompt("lab__calc-1", "stateplane").read_text()
    for number in (1, 2):
        assert (trees / f"run{number}" / "in.txt").read_text() == prompt
        assert (trees / f"run{number}" / "arg.txt").read_text() == prompt
        assert (trees / f"run{number}" / "where.txt").read_text().strip() == str(trees / f"run{number}")
    assert git(trees / "run1", "rev-list", "--count", "--all") == "1"
    assert found.artifacts.log(ONE, ".stdout.log").read_text() == "said\n"
    assert found.artifacts.log(ONE, ".stderr.log").read_text() == "loud\n"


def test_its_record_says_that_nothing_kept_it_apart(tmp_path: Path) -> None:
    found = shell(tmp_path, "echo x > new.txt")
    found.run([ONE], 1)
    record = found.record(ONE)
    assert record is not None
    assert (record.outcome, record.exit_code, record.isolation) == ("completed", 0, "none")
    assert b"+++ b/new.txt" in found.diff(ONE)
    stored = json.loads(found.artifacts.log(ONE, ".json").read_text())
    assert stored["isolation"] == "none"
    assert str(tmp_path) not in json.dumps(stored)


@pytest.mark.parametrize(("script", "code"), [("exit 3", 3), ("kill -9 $$", None)])
def test_an_end_that_is_no_success_is_failed(tmp_path: Path, script: str, code: int | None) -> None:
    found = shell(tmp_path, script)
    found.run([ONE], 1)
    record = found.record(ONE)
    assert record is not None
    assert (record.outcome, record.exit_code) == ("failed", code)


def test_time_is_up_for_all_that_it_started(tmp_path: Path) -> None:
    lives = f"sleep 600.{int.from_bytes(os.urandom(4))}"
    found = shell(tmp_path, f"echo x > new.txt; (echo begun; {lives}) & {lives}", timeout_s=2.0)
    found.run([ONE], 1)
    record = found.record(ONE)
    assert record is not None
    assert record.outcome == "timeout"
    assert b"new.txt" in found.diff(ONE)
    assert "begun" in found.artifacts.log(ONE, ".stdout.log").read_text()
    assert subprocess.run(["pgrep", "-f", f"^{lives}"], check=False).returncode == 1


def test_what_has_ended_is_not_run_again_and_what_has_not_begins_anew(tmp_path: Path) -> None:
    script = f"echo x >> {tmp_path}/times; test ! -e left.txt && touch left.txt"
    found = shell(tmp_path, script)
    found.run([ONE], 1)
    found.run([ONE, TWO], 1)
    assert (tmp_path / "times").read_text().count("x") == 2
    found.artifacts.log(TWO, ".json").unlink()
    found.run([ONE, TWO], 1)
    record = found.record(TWO)
    assert (tmp_path / "times").read_text().count("x") == 3
    assert record is not None
    assert record.outcome == "completed"


def test_a_key_of_cabs_does_not_reach_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAB_KEY", "sk-secret")
    monkeypatch.setenv("KEPT", "mine")
    found = shell(tmp_path, "env > env.txt", codex_home=tmp_path)
    found.run([ONE], 1)
    told = found.diff(ONE).decode()
    assert "sk-secret" not in told
    assert "+KEPT=mine" in told
    assert f"+CODEX_HOME={tmp_path}" in told


def test_a_stop_ends_what_is_under_way_and_keeps_nothing_of_it(tmp_path: Path) -> None:
    found = shell(tmp_path, f"touch {tmp_path}/begun; exec sleep 60")

    def stop() -> None:
        while not (tmp_path / "begun").exists():
            time.sleep(0.02)
        found.stop()

    threading.Thread(target=stop).start()
    began = time.monotonic()
    found.run([ONE, TWO], 1)
    assert time.monotonic() - began < 15
    assert found.record(ONE) is None
    assert found.record(TWO) is None


def test_a_command_that_is_none_is_told_before_anything_runs(tmp_path: Path) -> None:
    agent(tmp_path, sys.executable).check()
    with pytest.raises(InputError, match="no command 'no-such-agent'"):
        agent(tmp_path, "no-such-agent").check()


def test_a_relative_command_is_one_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "mine.sh"
    script.write_text("#!/bin/sh\necho x > new.txt\n")
    script.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    found = agent(tmp_path, "./mine.sh")
    found.check()
    found.run([ONE], 1)
    assert b"+++ b/new.txt" in found.diff(ONE)


def test_a_command_that_the_machine_cannot_run_is_told(tmp_path: Path) -> None:
    script = tmp_path / "mine"
    script.write_text("echo x > new.txt\n")
    script.chmod(0o755)
    found = agent(tmp_path, str(script))
    found.check()
    with pytest.raises(InputError, match="cannot be run"):
        found.run([ONE], 1)
    assert found.record(ONE) is None


def test_a_command_that_takes_its_logs_away_is_told(tmp_path: Path) -> None:
    found = shell(tmp_path, f"rm -r {tmp_path}/run/agent_logs")
    with pytest.raises(StoreError, match=r"run1\.stdout\.log"):
        found.run([ONE], 1)
