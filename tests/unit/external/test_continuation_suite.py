"""The carried suite of interrupted tasks: what each patch comes to, and that what was said before decides."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from orchestrator.context.packaging import package, prompt_of
from orchestrator.external.cells import prompts_of, write_task
from orchestrator.external.suites import SWEBENCH, load_suite
from orchestrator.external.tasks import ExternalTask
from orchestrator.gateway.embedded.model import followed
from orchestrator.plan.task import load_task
from orchestrator.run.script import build_script
from orchestrator.run.workdir import git
from orchestrator.stats.paired import MIN_TASKS

TASKS = {task.instance_id: task for task in load_suite("continuation")}
PATCHES = ("gold", "wrong", "prior")

# One interpreter for all trees: each is tested in a child of it, so that pytest is imported once.
GRADER = """
import contextlib, io, json, os, sys
import pytest

class Seen:
    def __init__(self):
        self.passed = []
    def pytest_runtest_logreport(self, report):
        if report.when == "call" and report.passed:
            self.passed.append(report.nodeid)

for tree, tests in json.loads(sys.argv[1]):
    read, write = os.pipe()
    if os.fork() == 0:
        os.chdir(tree)
        sys.path.insert(0, tree)
        seen = Seen()
        with contextlib.redirect_stdout(io.StringIO()):
            pytest.main(["-q", "-p", "no:cacheprovider", *tests], plugins=[seen])
        with os.fdopen(write, "w") as out:
            json.dump(seen.passed, out)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as said:
        print(said.read())
    os.wait()
"""


@pytest.fixture(scope="module")
def passed(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], set[str]]:
    """By task and patch: the tests that pass, of the task's own."""
    root = tmp_path_factory.mktemp("graded")
    jobs = []
    for task in TASKS.values():
        for name in PATCHES:
            tree = root / task.instance_id / name
            lay_out(task, tree, (SWEBENCH / "continuation" / task.instance_id / f"{name}.patch").read_text())
            files = sorted({test.partition("::")[0] for test in (*task.FAIL_TO_PASS, *task.PASS_TO_PASS)})
            jobs.append((str(tree), files))
    done = subprocess.run(
        [sys.executable, "-B", "-c", GRADER, json.dumps(jobs)],
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    names = [(instance, name) for instance in TASKS for name in PATCHES]
    return dict(zip(names, (set(json.loads(line)) for line in done.stdout.splitlines()), strict=True))


def lay_out(task: ExternalTask, tree: Path, *patches: str) -> None:
    """The repository with these patches and the task's tests."""
    assert task.source is not None
    for path in task.source.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            place = tree / path.relative_to(task.source)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(path.read_bytes())
    git("init", "--quiet", cwd=tree)
    for patch in (*patches, task.test_patch):
        git("apply", "-", cwd=tree, stdin=patch.encode())


def test_there_are_enough_tasks_for_a_claim() -> None:
    assert len(TASKS) >= MIN_TASKS
    assert {task.repo for task in TASKS.values()} == {
        "cab-swe/cronlet",
        "cab-swe/ledgerline",
        "cab-swe/semrange",
    }


@pytest.mark.parametrize("instance", TASKS)
def test_the_reference_passes_and_half_done_and_heedless_work_does_not(
    instance: str, passed: dict[tuple[str, str], set[str]]
) -> None:
    task = TASKS[instance]
    asked = {*task.FAIL_TO_PASS, *task.PASS_TO_PASS}
    assert asked <= passed[instance, "gold"]
    assert not asked <= passed[instance, "wrong"]
    assert not asked <= passed[instance, "prior"]


@pytest.mark.parametrize("instance", TASKS)
def test_what_decides_was_said_before_and_is_not_in_the_problem(instance: str) -> None:
    task = TASKS[instance]
    told = plain(prompt_of(task.problem_statement, package("transcript_replay", task.history, "")))
    assert task.needs
    for phrase in task.needs:
        assert plain(phrase) in told
        assert plain(phrase) not in plain(task.problem_statement)


def plain(text: str) -> str:
    return " ".join(text.casefold().split())


@cache
def decided(condition: str) -> frozenset[str]:
    """The tasks whose prompt carries all that they need under this condition."""
    found = set()
    for task in TASKS.values():
        packaged = package(condition, task.history, task.problem_statement)
        prompt = plain(prompt_of(task.problem_statement, packaged))
        if all(plain(phrase) in prompt for phrase in task.needs):
            found.add(task.instance_id)
    return frozenset(found)


def test_conditions_differ_in_what_they_tell_of_it() -> None:
    assert decided("transcript_replay") == decided("stateplane") == frozenset(TASKS)
    assert decided("stateplane-none") == frozenset()
    assert decided("compact_summary") == {"cab-swe__cronlet-23", "cab-swe__semrange-51"}


def test_several_groups_decide_about_a_task_or_more() -> None:
    groups = ("constraints", "decisions", "open_failures", "resolved_failure_notes")
    lost = {group: frozenset(TASKS) - decided(f"stateplane-no_{group}") for group in groups}
    assert {group: len(tasks) for group, tasks in lost.items()} == {
        "constraints": 4,
        "decisions": 3,
        "open_failures": 1,
        "resolved_failure_notes": 1,
    }
    assert frozenset().union(*lost.values()) == frozenset(TASKS)


def test_a_task_of_cab_follows_its_prompt(tmp_path: Path) -> None:
    """From the work that was left, the model makes the reference's files of it or the heedless ones."""
    task = TASKS["cab-swe__cronlet-23"]
    conditions = ("stateplane", "stateplane-no_constraints")
    prompts = prompts_of(task, conditions, "auto", None)
    path = tmp_path / "tasks" / "swebench" / task.instance_id
    (tmp_path / "staging").mkdir()
    write_task(task, prompts, path, staging=tmp_path / "staging", repos=None)
    written = load_task(tmp_path / "tasks", f"swebench/{task.instance_id}")
    script = build_script(written, "follows-context")
    ways = {
        condition: followed(script, {"messages": [{"role": "user", "content": written.prompt(condition)}]})
        for condition in conditions
    }
    assert {name: way.kind for name, way in ways.items()} == {
        "stateplane": "reference",
        "stateplane-no_constraints": "wrong",
    }
    [(file, text)] = ways["stateplane"].files.items()
    assert file == "cronlet/schedule.py"
    assert "_first_after" in str(text)
    assert "until: datetime | None" in str(ways["stateplane"].before[file])
    assert "until: datetime | None" in str(ways["stateplane-no_constraints"].files[file])
