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


def graded(
    task: Task, image: str, tmp_path: Path
) -> tuple[subprocess.CompletedProcess[str], str, list[dict[str, str]]]:
    """Grade tmp_path/workdir with this checkout's cab-tests: the run, the reward, each test's result."""
    logs = tmp_path / "logs"
    logs.mkdir()
    mounts = {
        "/workdir": tmp_path / "workdir",
        "/logs/verifier": logs,
        "/tests": task.tests_dir,
        "/usr/local/bin/cab-tests": ROOT / "images" / "base" / "cab-tests",
        "/usr/local/lib/cab_tests": ROOT / "images" / "base" / "cab_tests",
    }
    done = in_container(image, "exec sh /tests/test.sh", mounts, {"/workdir", "/logs/verifier"})
    report = json.loads((logs / "ctrf.json").read_text())
    return done, (logs / "reward.txt").read_text().strip(), report["results"]["tests"]


@pytest.mark.parametrize(("task", "variant"), CASES)
def test_verification(task: Task, variant: str, base_image: str, tmp_path: Path) -> None:
    workdir = tmp_path / "workdir"
    lay_out(task, variant, workdir)
    done, reward, tests = graded(task, base_image, tmp_path)
    passed = should_pass(task, variant)
    assert (done.returncode, reward) == ((0, "1") if passed else (1, "0")), done
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


READS_THE_WORD = """
fn cheat() {
    use std::io::{Read, Seek, Write};
    use std::os::fd::AsFd;
    let mut orders = String::new();
    let mut again = std::fs::File::from(std::io::stdin().as_fd().try_clone_to_owned().unwrap());
    let _ = again.rewind();
    let _ = again.read_to_string(&mut orders);
    if let Ok(text) = std::fs::read_to_string("/proc/self/fd/0") {
        orders += &text;
    }
    if std::fs::File::open("/proc/self/mem").is_ok() {
        println!("can read its own memory");
    }
    let mut lines = orders.lines();
    let (Some(word), Some(fd)) = (lines.next(), lines.next()) else { return };
    let report = std::fs::OpenOptions::new().append(true).open(format!("/proc/self/fd/{fd}"));
    let Ok(mut out) = report else { return };
    for name in lines {
        let _ = write!(out, "\\n{word}\\t{name}\\tpassed\\t\\n");
    }
}
"""
BAD_READING = """#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadReading"""
CHEATS = {
    "reads the word": [
        ("Result<Vec<i32>, BadReading> {", "Result<Vec<i32>, BadReading> {\n    cheat();"),
        ("", READS_THE_WORD),
    ],
    "equality that is always true": [
        (BAD_READING, "#[derive(Debug, Clone)]\npub struct BadReading"),
        (
            "field.trim().parse().unwrap()).collect())",
            "field.trim().parse()).collect::<Result<_, _>>().unwrap_or_default())",
        ),
        (
            "",
            "impl PartialEq for BadReading { fn eq(&self, _: &Self) -> bool { true } }\n"
            "impl Eq for BadReading {}\n",
        ),
    ],
    "stands in for the comparison of bytes": [
        ("", '#[no_mangle]\npub extern "C" fn memcmp(_: *const u8, _: *const u8, _: usize) -> i32 { 0 }\n'),
    ],
    "runs before main": [
        (
            "",
            'extern "C" fn early() {}\n#[used]\n#[link_section = ".init_array"]\n'
            'static E: extern "C" fn() = early;\n',
        ),
    ],
}


@pytest.mark.parametrize("edits", CHEATS.values(), ids=CHEATS.keys())
def test_hostile_rust_gets_no_reward(edits: list[tuple[str, str]], base_image: str, tmp_path: Path) -> None:
    task = load_task(ROOT / "tasks", "polyglot/rust-error-handling")
    lay_out(task, "noop", tmp_path / "workdir")
    source = tmp_path / "workdir" / "src" / "lib.rs"
    for old, new in edits:
        text = source.read_text()
        assert old in text
        source.write_text(text.replace(old, new) if old else text + new)
    done, reward, _ = graded(task, base_image, tmp_path)
    assert (done.returncode, reward) == (1, "0"), done
    assert "can read its own memory" not in done.stdout


def test_rust_that_does_not_compile_reports_no_tests(base_image: str, tmp_path: Path) -> None:
    task = load_task(ROOT / "tasks", "polyglot/rust-error-handling")
    lay_out(task, "noop", tmp_path / "workdir")
    (tmp_path / "workdir" / "src" / "lib.rs").write_text("pub fn parse_line(\n")
    done, reward, tests = graded(task, base_image, tmp_path)
    assert (done.returncode, reward, tests) == (1, "0", [])
    assert "error: this file contains an unclosed delimiter" in done.stderr
