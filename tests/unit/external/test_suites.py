"""The suites that cab carries, and wrong ones."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.errors import InputError
from orchestrator.external.suites import REPOS, SWEBENCH, base_commit, load_instance, load_suite, suite_names
from orchestrator.external.swe_lancer import load_swe_lancer
from orchestrator.external.tasks import ExternalTask
from orchestrator.paths import EXTERNAL
from orchestrator.run.workdir import git
from orchestrator.task_files import content_hash

SMOKE = SWEBENCH / "smoke"
KNOWN = "32669d66024da4382e78cba244d00c6545023638"
"""The commit of one file `a.txt` with the line `a`, made by hand."""


@pytest.mark.parametrize("suite", suite_names())
def test_the_harness_can_grade_what_is_carried(suite: str) -> None:
    tasks = load_suite(suite)
    assert len(tasks) >= 6
    for task in tasks:
        assert task.harness_problem("5") is None
        assert task.source is not None
        assert task.image == f"{task.repo}:{task.base_commit[:12]}"


def test_smoke_has_three_repositories_and_every_kind_of_attempt() -> None:
    assert len({task.repo for task in load_suite("smoke")}) == 3
    kinds = {path.stem for path in SMOKE.glob("*/*.patch")}
    assert kinds >= {"gold", "test", "wrong", "regress", "hang"}


@pytest.mark.parametrize(
    "patch", sorted(SWEBENCH.glob("*/*/*.patch")), ids=lambda it: f"{it.parent.name}-{it.stem}"
)
def test_patches_apply_to_their_base(patch: Path, tmp_path: Path) -> None:
    task = load_instance(patch.parent)
    assert task.source is not None
    shutil.copytree(task.source, tmp_path / "repo")
    before = content_hash(tmp_path / "repo")
    git("apply", str(patch), cwd=tmp_path / "repo")
    assert content_hash(tmp_path / "repo") != before


def test_a_base_commit_is_the_trees_and_the_same_whoever_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "a.txt").write_text("a\n")
    first = base_commit(tree)
    assert first == KNOWN
    monkeypatch.setenv("GIT_AUTHOR_NAME", "someone")
    (tree / "__pycache__").mkdir()
    (tree / "__pycache__" / "a.pyc").write_text("x")
    assert base_commit(tree) == first
    (tree / "a.txt").write_text("b\n")
    assert base_commit(tree) != first


def test_the_tests_of_a_task_are_restored_before_and_after(tmp_path: Path) -> None:
    folder = copied(tmp_path)
    told = (folder / "instance.toml").read_text()
    (folder / "instance.toml").write_text(
        told.replace('"tests/test_range.py"]', '"tests/test_range.py", "tests/new.py"]')
    )
    task = load_instance(folder)
    lines = str(task.eval_script).splitlines()
    restore = [f"git checkout {task.base_commit} -- tests/test_range.py", "rm -rf -- tests/new.py"]
    assert lines[3:5] == restore
    assert lines[-2:] == restore


def copied(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SMOKE / "cab-swe__semrange-10", tmp_path / "cab-swe__semrange-10"))


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("instance.toml", 'repo = "semrange"', 'repo = "semrang"', "did you mean 'semrange'"),
        ("instance.toml", "tests =", "test =", "instance.toml"),
        ("instance.toml", "semrange-10", "semrange-11", "instance_id is not"),
        ("problem.md", None, None, r"problem\.md: cannot be read"),
        ("history.json", "", "{", r"history\.json: is no JSON"),
        ("history.json", "", "{}", "is no list of events"),
        ("history.json", "", '[{"id": "1", "kind": "x", "text": "t"}]', "is no kind of event"),
        ("prior.patch", "", "no diff", "prior_patch: is no diff"),
    ],
)
def test_a_wrong_file_is_named(
    tmp_path: Path, name: str, old: str | None, new: str | None, said: str
) -> None:
    folder = copied(tmp_path)
    path = folder / name
    if old is None or new is None:
        path.unlink()
    else:
        path.write_text(path.read_text().replace(old, new, 1) if old else new)
    with pytest.raises(InputError, match=said):
        load_instance(folder)


def test_an_unknown_suite() -> None:
    with pytest.raises(InputError, match="did you mean 'smoke'"):
        load_suite("smok")


def ran(task: ExternalTask, patches: list[Path], tmp_path: Path) -> dict[str, bool]:
    """The task's tests, run here without a container: by id, whether they passed."""
    assert task.source is not None
    repo = tmp_path / "repo"
    shutil.copytree(task.source, repo)
    for patch in patches:
        git("apply", str(patch), cwd=repo)
    ids = [*task.FAIL_TO_PASS, *task.PASS_TO_PASS]
    files = sorted({name.partition("::")[0] for name in ids})
    command = [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", *files]
    done = subprocess.run(
        [*command, "-c", "pyproject.toml"],
        cwd=repo,
        env={**os.environ, "PYTHONPATH": ".", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    passed = {line.removeprefix("PASSED ") for line in done.stdout.splitlines() if line.startswith("PASSED ")}
    return {name: name in passed for name in ids}


@pytest.mark.parametrize("repo", sorted(path.name for path in REPOS.iterdir()))
def test_tests_of_a_repository_pass_at_its_base(repo: str, tmp_path: Path) -> None:
    task = next(task for task in load_suite("smoke") if task.repo.endswith(f"/{repo}"))
    found = ran(task, [SMOKE / task.instance_id / "test.patch"], tmp_path)
    assert [name for name in task.FAIL_TO_PASS if found[name]] == []
    assert [name for name in task.PASS_TO_PASS if not found[name]] == []


class TestSweLancer:
    EXAMPLE = EXTERNAL / "swe_lancer" / "example.jsonl"

    def test_the_example_loads_and_is_not_graded(self) -> None:
        code, manager = load_swe_lancer(self.EXAMPLE)
        assert "## Proposal 2" not in code.problem_statement
        assert "## Proposal 2" in manager.problem_statement
        assert "decision.txt" in manager.problem_statement
        for task in (code, manager):
            assert "not implemented" in (task.harness_problem("5") or "")

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"variant": "manager"}, "example-ic-1: variant"),
            ({"price_usd": 0}, "price_usd"),
            ({"proposals": ["a"]}, "two proposals or more"),
            ({"variant": "swe_manager"}, "two proposals or more"),
            ({"prize": 1}, "prize"),
            ({"prior_patch": "x"}, "prior_patch"),
            ({"instance_id": "a/b"}, "instance_id"),
            ({"history": [{}]}, "history"),
        ],
    )
    def test_a_wrong_field_is_named(self, tmp_path: Path, change: dict[str, object], said: str) -> None:
        row = json.loads(self.EXAMPLE.read_text().splitlines()[0])
        path = tmp_path / "tasks.jsonl"
        path.write_text(json.dumps({**row, **change}))
        with pytest.raises(InputError, match=said):
            load_swe_lancer(path)
