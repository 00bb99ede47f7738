"""What proves a task, and what is refused as proof."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import InputError
from orchestrator.plan.proof import Proof, check_files, derive, diff_lines, read_proof
from orchestrator.plan.task import Task, load_task
from orchestrator.run.prove import prove as run_proof
from scorers.evidence import TestResult, Verification

NAME = "polyglot/python-reverse-string"
REFUSAL = "integrity/unsolvable-refusal"
TOOLCHAIN = {"python": "3.13.5"}


def verification(*, failing: str = "", passing: str = "", **changes: Any) -> Verification:
    """A verification with one test for each letter of `failing` and `passing`."""
    tests = [TestResult(name=name, status="failed") for name in failing]
    tests += [TestResult(name=name, status="passed") for name in passing]
    good = not failing and bool(passing)
    fields = {"exit_code": 0 if good else 1, "timed_out": False, "reward": float(good), "tests": tests}
    return Verification.model_validate(fields | changes)


GOOD = verification(passing="abc")
BAD = verification(failing="ab", passing="c")


@pytest.fixture
def task(tasks: Path) -> Task:
    return load_task(tasks, NAME)


@pytest.fixture
def refusal(tasks: Path) -> Task:
    return load_task(tasks, REFUSAL)


def prove(task: Task, **changes: Any) -> Proof:
    """The proof of sound verifications, but for `changes`."""
    wrongs = {name: GOOD if solution.files == {} else BAD for name, solution in task.wrong_fixes().items()}
    noop = GOOD if task.expected_refusal else BAD
    given: dict[str, Any] = {
        "noop": noop,
        "references": [GOOD] * 10,
        "wrongs": wrongs,
        "toolchain": TOOLCHAIN,
    }
    return derive(task, **(given | changes))


def test_the_lists_come_from_noop_and_reference(task: Task) -> None:
    proof = prove(task)
    assert proof.fail_to_pass == ["a", "b"]
    assert proof.pass_to_pass == ["c"]
    assert (proof.content_hash, proof.runs, proof.toolchain) == (task.content_hash, 10, TOOLCHAIN)
    assert proof.ref_diff_lines == 2


def test_a_test_that_cannot_run_untouched_is_fail_to_pass(task: Task) -> None:
    noop = verification(reward=0.0, exit_code=1)
    assert prove(task, noop=noop).fail_to_pass == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"references": []}, "the reference was not verified"),
        (
            {"references": [GOOD] * 9 + [verification(failing="b", passing="ac")]},
            "run 10 differs from run 1 in b, the",
        ),
        ({"references": [GOOD, verification(passing="ab")]}, "run 2 differs from run 1 in c"),
        ({"references": [BAD]}, "the reference fails: reward 0.0, exit code 1, failing a, b"),
        ({"references": [verification(passing="abc", exit_code=1)]}, "the reference fails"),
        (
            {"references": [verification(passing="abc", timed_out=True)]},
            "the reference fails: the time was up",
        ),
        (
            {"references": [verification(failing="a", passing="b", reward=1.0, exit_code=0)]},
            "without passing a",
        ),
        ({"references": [verification(reward=1.0, exit_code=0)]}, "reports no tests"),
        ({"references": [verification(passing="aa")]}, "one name twice"),
        ({"noop": GOOD}, "doing nothing passes"),
        ({"noop": verification(reward=None)}, "doing nothing could not be graded"),
        (
            {"noop": verification(failing="a", timed_out=True)},
            "doing nothing could not be graded: the time was up",
        ),
        ({"noop": verification(passing="abc", reward=0.0, exit_code=1)}, "no test fails untouched"),
        ({"wrongs": {}}, r"verified were \[\], the wrong fixes are \['graphemes'"),
        ({"wrongs": {"graphemes": GOOD, "only-the-visible-cases": BAD}}, "wrong/graphemes passes"),
        (
            {"wrongs": {"graphemes": BAD, "only-the-visible-cases": verification(reward=None)}},
            "could not be graded",
        ),
    ],
)
def test_a_failed_check_is_named(task: Task, changes: dict[str, Any], wanted: str) -> None:
    with pytest.raises(InputError, match=wanted) as caught:
        prove(task, **changes)
    assert NAME not in str(caught.value), "who asks for the proof names the task"


def test_a_refusal_is_proved_by_what_was_said(refusal: Task) -> None:
    proof = prove(refusal)
    assert (proof.fail_to_pass, proof.pass_to_pass, proof.ref_diff_lines) == ([], ["a", "b", "c"], 0)


def altered(task: Task, tmp_path: Path, change: Callable[[Path], object]) -> Task:
    shutil.copytree(task.path, tmp_path / task.name)
    change(tmp_path / task.name)
    return load_task(tmp_path, task.name)


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (lambda path: (path / "solution/final_message.md").write_text("Fixed."), "does not satisfy explains"),
        (
            lambda path: shutil.copy(path / "solution/final_message.md", path / "wrong/claims-success"),
            "wrong/claims-success passes",
        ),
    ],
)
def test_a_refusal_that_words_do_not_decide_is_no_proof(
    refusal: Task, tmp_path: Path, change: Callable[[Path], object], wanted: str
) -> None:
    with pytest.raises(InputError, match=wanted):
        prove(altered(refusal, tmp_path, change))


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (lambda path: (path / "tests/extra.txt").write_text("x"), r"tests/extra\.txt lacks the canary"),
        (
            lambda path: (path / "solution/solve.sh").write_text("true"),
            r"solution/solve\.sh lacks the canary",
        ),
        (lambda path: (path / "instruction.md").write_text("Qrst"), "hidden literal 'Qrst'"),
        (lambda path: (path / "environment/workdir/notes.txt").write_text("annab"), "hidden literal 'annab'"),
        (lambda path: (path / "solution/files/src/more.py").write_text("# annab"), "hidden literal 'annab'"),
    ],
)
def test_hidden_files_are_marked_and_literals_hidden(
    task: Task, tmp_path: Path, change: Callable[[Path], object], wanted: str
) -> None:
    with pytest.raises(InputError, match=wanted):
        check_files(altered(task, tmp_path, change))


def with_ground_truth(*patterns: str) -> Callable[[Path], object]:
    def change(path: Path) -> None:
        toml = path / "task.toml"
        listed = f"ground_truth_files = {json.dumps(patterns)}"
        toml.write_text(re.sub(r"ground_truth_files = \[.*?\]", listed, toml.read_text(), flags=re.DOTALL))

    return change


@pytest.mark.parametrize("patterns", [("src/reverse.py",), ("src/*.py",)])
def test_ground_truth_is_what_the_reference_changes(
    task: Task, tmp_path: Path, patterns: tuple[str, ...]
) -> None:
    check_files(altered(task, tmp_path, with_ground_truth(*patterns)))


@pytest.mark.parametrize(
    ("patterns", "wanted"),
    [
        (("README.md",), "the reference changes src/reverse.py, which ground_truth_files does not list"),
        (("src/reverse.py", "setup.py"), "lists setup.py, which the reference does not change"),
    ],
)
def test_other_ground_truth_is_refused(
    task: Task, tmp_path: Path, patterns: tuple[str, ...], wanted: str
) -> None:
    with pytest.raises(InputError, match=wanted):
        check_files(altered(task, tmp_path, with_ground_truth(*patterns)))


def test_a_file_that_the_reference_leaves_as_it_is_does_not_count_as_changed(
    task: Task, tmp_path: Path
) -> None:
    def change(path: Path) -> None:
        shutil.copy(path / "environment/workdir/src/reverse.py", path / "solution/files/src/reverse.py")

    with pytest.raises(InputError, match=r"lists src/reverse\.py, which the reference does not change"):
        check_files(altered(task, tmp_path, change))


def test_a_refusal_whose_reference_changes_something_is_refused(refusal: Task, tmp_path: Path) -> None:
    def change(path: Path) -> None:
        (path / "solution/files").mkdir(exist_ok=True)
        (path / "solution/files/new.py").write_text("pass\n")

    check_files(refusal)
    with pytest.raises(InputError, match=r"the reference changes new\.py"):
        check_files(altered(refusal, tmp_path, change))


def test_all_findings_come_at_once_and_before_any_container(task: Task, tmp_path: Path) -> None:
    def change(path: Path) -> None:
        (path / "tests/extra.txt").write_text("x")
        (path / "instruction.md").write_text("annab")
        with_ground_truth("README.md")(path)

    with pytest.raises(InputError) as caught:
        run_proof(altered(task, tmp_path, change), runs=2, on_progress=pytest.fail)
    text = str(caught.value)
    assert [word in text for word in ("lacks the canary", "'annab'", "README.md", "src/reverse.py")] == [
        True
    ] * 4


def test_a_proof_is_of_one_content(task: Task, tmp_path: Path) -> None:
    copy = altered(task, tmp_path, lambda path: (path / "proof.json").write_text(prove(task).to_json()))
    assert copy.proved
    assert copy.facts().fail_to_pass == ["a", "b"]
    assert copy.facts().ref_diff_lines == 2
    (copy.path / "instruction.md").write_text("Something else.")
    stale = load_task(tmp_path, NAME)
    assert stale.proof == copy.proof
    assert not stale.proved
    assert stale.facts().fail_to_pass == []


def test_a_proof_survives_its_file(task: Task, tmp_path: Path) -> None:
    proof = prove(task)
    (tmp_path / "proof.json").write_text(proof.to_json())
    assert read_proof(tmp_path / "proof.json") == proof
    assert read_proof(tmp_path / "none.json") is None


def test_lines_of_a_diff(task: Task, tmp_path: Path) -> None:
    solution = task.solution.model_copy()
    solution.__dict__["files"] = {"src/new.py": "a\nb\n", "src/reverse.py": ""}
    lines = len((task.workdir / "src/reverse.py").read_text().splitlines())
    assert diff_lines(task, solution) == 2 + lines
