"""A benchmark's task as cab's own: not graded, with a prompt for each condition."""

from __future__ import annotations

from pathlib import Path

import pytest
from external_samples import GOLD, HISTORY, PRIOR, task, tree

from orchestrator.errors import InputError
from orchestrator.external.cells import prompts_of, task_name, write_task
from orchestrator.external.tasks import ExternalTask
from orchestrator.plan.task import Task, load_task
from orchestrator.run.script import build_script

CONDITIONS = ("transcript_replay", "compact_summary", "stateplane")


def written(found: ExternalTask, out: Path) -> Task:
    (out / "staging").mkdir(parents=True, exist_ok=True)
    prompts = prompts_of(found, CONDITIONS, "auto", None)
    path = out / "tasks" / task_name(found)
    write_task(found, prompts, path, staging=out / "staging", repos=None)
    return load_task(out / "tasks", task_name(found))


def test_it_is_a_task_that_cab_does_not_grade(tmp_path: Path) -> None:
    found = written(task(tree(tmp_path / "repo")), tmp_path)
    assert not found.graded
    assert found.name == "swebench/lab__calc-1"
    assert found.ground_truth_files == ["calc.py"]
    assert found.unproved == "not judged by cab's verifier"
    assert found.facts().fail_to_pass == []


def test_only_the_prompt_differs_between_conditions(tmp_path: Path) -> None:
    found = written(task(tree(tmp_path / "repo"), history=HISTORY), tmp_path)
    prompts = [found.prompt(name) for name in CONDITIONS]
    assert len(set(prompts)) == 3
    assert all("Add no dependency." in prompt for prompt in prompts)
    assert all(prompt.startswith(found.instruction.rstrip()) for prompt in prompts)
    with pytest.raises(InputError, match="no prompt of the condition 'stateplan'"):
        found.prompt("stateplan")


def test_without_earlier_work_all_prompts_are_the_same_bytes(tmp_path: Path) -> None:
    found = written(task(tree(tmp_path / "repo")), tmp_path)
    assert {found.prompt(name) for name in (*CONDITIONS, None)} == {found.instruction}


def test_the_scripted_reference_is_the_gold_patch(tmp_path: Path) -> None:
    found = written(task(tree(tmp_path / "repo")), tmp_path)
    script = build_script(found, "reference")
    assert script.changed == ["calc.py"]
    assert script.files["calc.py"] == "def mean(values):\n    return sum(values) / len(values)\n"


def test_the_reference_begins_from_earlier_work_too(tmp_path: Path) -> None:
    found = written(task(tree(tmp_path / "repo"), prior_patch=PRIOR), tmp_path)
    assert (found.workdir / "todo.txt").is_file()
    assert build_script(found, "reference").changed == ["calc.py", "notes.txt"]
    assert found.ground_truth_files == ["calc.py"]


@pytest.mark.parametrize("patch", [None, GOLD.replace("sum(values) //", "min(values) //"), PRIOR])
def test_a_patch_that_is_no_reference_here_leaves_none(tmp_path: Path, patch: str | None) -> None:
    found = written(task(tree(tmp_path / "repo"), patch=patch), tmp_path)
    with pytest.raises(InputError, match="brings no solution"):
        build_script(found, "reference")


def test_a_repositorys_links_are_part_of_its_digest(tmp_path: Path) -> None:
    source = tree(tmp_path / "repo")
    (source / "link").symlink_to("calc.py")
    one = written(task(source), tmp_path / "one").content_hash
    (source / "link").unlink()
    (source / "link").symlink_to("notes.txt")
    assert written(task(source), tmp_path / "two").content_hash != one


def test_what_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    source = tree(tmp_path / "repo")
    one = written(task(source), tmp_path)
    (source / "calc.py").write_text("changed\n")
    assert written(task(source), tmp_path).content_hash == one.content_hash
