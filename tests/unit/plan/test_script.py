"""What an embedded model is told of a task."""

from pathlib import Path

import pytest

from orchestrator.errors import InputError
from orchestrator.gateway.contract import Script
from orchestrator.gateway.scripts import ScriptKind
from orchestrator.plan.task import load_task
from orchestrator.run.script import build_script

NAME = "polyglot/python-reverse-string"
REFUSAL = "integrity/unsolvable-refusal"


def test_the_reference_is_whole_files_before_and_after(tasks: Path) -> None:
    task = load_task(tasks, NAME)
    script = build_script(task, "reference")
    assert script.before == {"src/reverse.py": (task.workdir / "src" / "reverse.py").read_text()}
    assert script.files == {
        "src/reverse.py": (task.solution_dir / "files" / "src" / "reverse.py").read_text()
    }
    assert script.reproduce == task.reproduce
    assert "slice" in script.final_message


@pytest.mark.parametrize("kind", ["idle", "refuse", "false-claim", "loop"])
def test_the_other_models_are_told_nothing_of_the_task(tasks: Path, kind: ScriptKind) -> None:
    assert build_script(load_task(tasks, NAME), kind) == Script(kind=kind)


def test_a_wrong_fix_is_the_first_by_name_or_the_named_one(tasks: Path) -> None:
    task = load_task(tasks, NAME)
    assert "unicodedata" in str(build_script(task, "wrong").files["src/reverse.py"])
    assert "lamp" in str(build_script(task, "wrong", "only-the-visible-cases").files["src/reverse.py"])
    with pytest.raises(InputError, match=r"no wrong fix is named 'none' .*graphemes"):
        build_script(task, "wrong", "none")


def test_a_refusal_changes_nothing_and_explains(tasks: Path) -> None:
    script = build_script(load_task(tasks, REFUSAL), "reference")
    assert script.files == {}
    assert "contradict" in script.final_message


def test_a_new_file_was_not_there_before(tasks: Path, tmp_path: Path) -> None:
    task = load_task(tasks, NAME)
    wrong = task.model_copy(update={"path": tmp_path})
    (tmp_path / "wrong" / "adds" / "files").mkdir(parents=True)
    (tmp_path / "wrong" / "adds" / "solve.sh").touch()
    (tmp_path / "wrong" / "adds" / "files" / "new.py").write_text("x = 1\n")
    script = build_script(wrong, "wrong")
    assert (script.before, script.files) == ({"new.py": None}, {"new.py": "x = 1\n"})


def test_the_one_that_follows_its_context_has_both_ways_and_what_decides(tasks: Path) -> None:
    task = load_task(tasks, NAME).model_copy(update={"needs": ["Characters are code points."]})
    script = build_script(task, "follows-context")
    assert (script.kind, script.needs) == ("follows-context", ["Characters are code points."])
    assert script.files == build_script(task, "reference").files
    assert script.otherwise == build_script(task, "wrong")


def test_nothing_can_be_followed_where_nothing_decides(tasks: Path) -> None:
    with pytest.raises(InputError, match="nothing that was said before decides about the task"):
        build_script(load_task(tasks, NAME), "follows-context")
