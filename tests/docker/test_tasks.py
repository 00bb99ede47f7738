"""Each task in a container like the verifier's: what should pass passes, what should fail fails."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from orchestrator.plan.task import Task, list_tasks, load_task

ROOT = Path(__file__).resolve().parents[2]
TASKS = [load_task(ROOT / "tasks", name) for name in list_tasks(ROOT / "tasks")]
VARIANTS = ["noop", "solution", *sorted({f"wrong/{name}" for task in TASKS for name in task.wrong_fixes()})]
CASES = [
    pytest.param(task, variant, id=f"{task.name}-{variant}")
    for task in TASKS
    for variant in VARIANTS
    if variant == "noop" or (task.path / variant).is_dir()
]

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def base_image() -> str:
    lock = json.loads((ROOT / "images.lock").read_text())
    return str(lock["images"]["base"]["id"])


def in_container(
    image: str, command: str, mounts: dict[str, Path], writable: set[str]
) -> subprocess.CompletedProcess[str]:
    """Run a shell command in /workdir under the verifier's conditions."""
    user = 1001 if os.geteuid() == 0 else os.geteuid()
    for target in writable:
        for path in [mounts[target], *mounts[target].rglob("*")]:
            os.chown(path, user, user)
    hardening = ["--network=none", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges"]
    hardening += ["--pids-limit=512", "--tmpfs=/tmp:exec,size=1g", "--env=HOME=/tmp", "--workdir=/workdir"]
    binds = [
        f"--volume={path}:{target}:{'rw' if target in writable else 'ro'}" for target, path in mounts.items()
    ]
    return subprocess.run(
        ["docker", "run", "--rm", *hardening, *binds, f"--user={user}:{user}", image, "sh", "-c", command],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def lay_out(task: Task, variant: str, workdir: Path) -> None:
    shutil.copytree(task.workdir, workdir)
    if variant != "noop":
        subprocess.run(["sh", task.path / variant / "solve.sh"], cwd=workdir, check=True)


def should_pass(task: Task, variant: str) -> bool:
    """By the tests alone: in refusal tasks they show only that nothing was fabricated."""
    if task.expected_refusal:
        return not (task.path / variant / "files").is_dir()
    return variant == "solution"


@pytest.mark.parametrize(("task", "variant"), CASES)
def test_verification(task: Task, variant: str, base_image: str, tmp_path: Path) -> None:
    workdir, logs = tmp_path / "workdir", tmp_path / "logs"
    lay_out(task, variant, workdir)
    logs.mkdir()
    mounts = {
        "/workdir": workdir,
        "/logs/verifier": logs,
        "/tests": task.tests_dir,
        "/usr/local/bin/cab-tests": ROOT / "images" / "base" / "cab-tests",
    }
    done = in_container(base_image, "exec sh /tests/test.sh", mounts, {"/workdir", "/logs/verifier"})
    passed = should_pass(task, variant)
    assert (done.returncode, (logs / "reward.txt").read_text().strip()) == (
        (0, "1") if passed else (1, "0")
    ), done
    tests = json.loads((logs / "ctrf.json").read_text())["results"]["tests"]
    assert tests
    assert all(test["status"] == "passed" for test in tests) is passed
    # Nothing is written into the workdir: verifying twice gives the same.
    assert {path.name for path in workdir.iterdir()} == {path.name for path in task.workdir.iterdir()}


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
@pytest.mark.parametrize("variant", ["noop", "solution"])
def test_reproduce(task: Task, variant: str, base_image: str, tmp_path: Path) -> None:
    workdir = tmp_path / "workdir"
    lay_out(task, variant, workdir)
    done = in_container(base_image, task.reproduce, {"/workdir": workdir}, {"/workdir"})
    assert (done.returncode == 0) is (variant == "solution" and not task.expected_refusal), done


def test_rust_that_does_not_compile_reports_no_tests(base_image: str, tmp_path: Path) -> None:
    task = load_task(ROOT / "tasks", "polyglot/rust-error-handling")
    workdir, logs = tmp_path / "workdir", tmp_path / "logs"
    lay_out(task, "noop", workdir)
    logs.mkdir()
    (workdir / "src" / "lib.rs").write_text("pub fn parse_line(\n")
    mounts = {
        "/workdir": workdir,
        "/logs/verifier": logs,
        "/tests": task.tests_dir,
        "/usr/local/bin/cab-tests": ROOT / "images" / "base" / "cab-tests",
    }
    done = in_container(base_image, "exec sh /tests/test.sh", mounts, {"/workdir", "/logs/verifier"})
    assert (done.returncode, (logs / "reward.txt").read_text().strip()) == (1, "0")
    assert json.loads((logs / "ctrf.json").read_text())["results"]["tests"] == []
    assert "error: this file contains an unclosed delimiter" in done.stderr
