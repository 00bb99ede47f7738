"""`cab task`: what it prints, what it writes, and its exit codes."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from orchestrator.cli.task_cmd import task as command
from orchestrator.cli.task_cmd import write_if_changed
from orchestrator.errors import InputError, StoreError
from orchestrator.plan.proof import Proof
from orchestrator.plan.task import Task

TASKS = Path(__file__).resolve().parents[3] / "tasks"
NAME = "polyglot/python-reverse-string"
REFUSAL = "integrity/unsolvable-refusal"


@pytest.fixture
def tasks_dir(tmp_path: Path) -> Path:
    for name in (NAME, REFUSAL):
        ignored = shutil.ignore_patterns("__pycache__", "proof.json")
        shutil.copytree(TASKS / name, tmp_path / name, ignore=ignored)
    return tmp_path


@pytest.fixture
def containers(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Stands in for running containers: the refusal task cannot be proved. Holds the runs asked for."""
    asked: list[int] = []

    def prove(task: Task, *, runs: int, on_progress: Callable[[str], None]) -> Proof:
        asked.append(runs)
        on_progress(f"{task.name}: reference 1 of {runs}")
        if task.expected_refusal:
            raise InputError("doing nothing passes", place=task.name, mend="tighten tests/")
        return Proof(
            content_hash=task.content_hash,
            toolchain={},
            fail_to_pass=["a"],
            pass_to_pass=[],
            ref_diff_lines=2,
            runs=runs,
        )

    module = ModuleType("orchestrator.run.prove")
    module.prove = prove  # type: ignore[attr-defined]  # a module made for the test has no declared attributes
    monkeypatch.setitem(sys.modules, "orchestrator.run.prove", module)
    return asked


def test_list_prints_a_line_for_each_task(tasks_dir: Path) -> None:
    done = CliRunner().invoke(command, ["list", "--tasks-dir", str(tasks_dir)])
    assert done.exit_code == 0
    assert [line.split(maxsplit=2) for line in done.stdout.splitlines()] == [
        [REFUSAL, "python", "not proved"],
        [NAME, "python", "not proved"],
    ]


def test_list_as_json(tasks_dir: Path) -> None:
    done = CliRunner().invoke(command, ["list", "--json", "--tasks-dir", str(tasks_dir)])
    first = json.loads(done.stdout)[0]
    assert (first["name"], first["expected_refusal"], first["proved"]) == (REFUSAL, True, False)
    assert first["content_hash"].startswith("sha256:")


def test_validate_writes_a_proof_once(tasks_dir: Path, containers: list[int]) -> None:
    arguments = ["validate", NAME, "--runs", "3", "--json", "--tasks-dir", str(tasks_dir)]
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 0
    assert done.stderr == f"{NAME}: reference 1 of 3\n"
    assert json.loads(done.stdout)[0]["changed"] is True
    listed = CliRunner().invoke(command, ["list", "--tasks-dir", str(tasks_dir)])
    assert f"{NAME}  python    proved" in listed.stdout

    path = tasks_dir / NAME / "proof.json"
    first = path.stat().st_ino
    again = CliRunner().invoke(command, arguments)
    assert json.loads(again.stdout)[0]["changed"] is False
    assert path.stat().st_ino == first
    assert containers == [3, 3]


def test_validate_goes_on_and_ends_with_2_when_one_is_not_proved(
    tasks_dir: Path, containers: list[int]
) -> None:
    done = CliRunner().invoke(command, ["validate", "--tasks-dir", str(tasks_dir)])
    assert done.exit_code == 2
    assert done.stdout == f"{REFUSAL}  NOT PROVED\n{NAME}  proved\n"
    assert f"{REFUSAL}: doing nothing passes (tighten tests/)" in done.stderr
    assert containers == [10, 10]
    assert not (tasks_dir / REFUSAL / "proof.json").exists()


def test_one_run_proves_nothing(tasks_dir: Path, containers: list[int]) -> None:
    done = CliRunner().invoke(command, ["validate", "--runs", "1", "--tasks-dir", str(tasks_dir)])
    assert done.exit_code == 2
    assert containers == []


def test_a_proof_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"gone/\.proof\.json\.tmp: No such file"):
        write_if_changed(tmp_path / "gone" / "proof.json", "{}")
