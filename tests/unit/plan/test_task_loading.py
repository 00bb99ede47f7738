"""Loading a task: what is refused names file, line, field and mend; what is read is stable."""

import re
import shutil
from functools import partial
from pathlib import Path

import pytest

from orchestrator.errors import InputError
from orchestrator.plan.task import Task, list_tasks, load_task, match_tasks

NAME = "polyglot/python-reverse-string"
REFUSAL = "integrity/unsolvable-refusal"


@pytest.fixture
def tasks_dir(tmp_path: Path, tasks: Path) -> Path:
    """A private copy of two of cab's tasks."""
    for name in (NAME, REFUSAL):
        shutil.copytree(tasks / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def edit(tasks_dir: Path, old: str, new: str, name: str = NAME) -> int:
    """Replace the one `old` in task.toml; returns the line it begins in."""
    path = tasks_dir / name / "task.toml"
    text = path.read_text()
    assert text.count(old) == 1, old
    path.write_text(text.replace(old, new))
    return text[: text.index(old.strip())].count("\n") + 1


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        (
            "max_turns = 30",
            "max_turn = 30",
            r"metadata\.cab\.max_turn is not known \(did you mean 'max_turns'\?\)",
        ),
        (
            "timeout_sec = 300.0",
            "timeout_secs = 3",
            r"verifier\.timeout_secs is not known \(did you mean 'timeout_sec'",
        ),
        ("[verifier]", "[verifer]", r"verifer is not known \(did you mean 'verifier'\?\)"),
        (
            "max_turns = 30",
            "max_turns = 0",
            r"metadata\.cab\.max_turns: .*greater than or equal to 1 \(got 0\)",
        ),
        (
            'language = "python"',
            'language = "pyton"',
            r"metadata\.cab\.language: .*'python', 'rust', .* or 'c' \(got 'pyton'\)",
        ),
        ('version = "1.0"', 'version = "7"', r"version: .*\(got '7'\)"),
        (
            '["src/reverse.py"]',
            '["../etc/passwd"]',
            r"ground_truth_files\.0: must be a path inside the workdir",
        ),
        (
            '["src/reverse.py"]',
            '["/etc/passwd"]',
            r"ground_truth_files\.0: must be a path inside the workdir",
        ),
        (
            "allow_internet = false",
            "allow_internet = true",
            r"environment\.allow_internet: .*False \(got True\)",
        ),
        (
            "\ntimeout_sec = 600.0",
            "\ntimeout_sec = -1.0",
            r"agent\.timeout_sec: .*greater than 0 \(got -1\.0\)",
        ),
    ],
)
def test_a_bad_key_or_value_names_line_field_and_mend(
    tasks_dir: Path, old: str, new: str, wanted: str
) -> None:
    line = edit(tasks_dir, old, new)
    with pytest.raises(InputError) as caught:
        load_task(tasks_dir, NAME)
    assert caught.value.place == f"{tasks_dir / NAME / 'task.toml'}:{line}"
    assert re.search(wanted, str(caught.value))


def test_a_missing_field_names_its_table(tasks_dir: Path) -> None:
    edit(tasks_dir, "max_turns = 30\n", "")
    table = (tasks_dir / NAME / "task.toml").read_text().splitlines().index("[metadata.cab]") + 1
    with pytest.raises(InputError, match=r"metadata\.cab\.max_turns is missing") as caught:
        load_task(tasks_dir, NAME)
    assert caught.value.place.endswith(f"task.toml:{table}")


def test_broken_toml_names_its_line(tasks_dir: Path) -> None:
    line = edit(tasks_dir, "max_turns = 30", "max_turns = = 30")
    with pytest.raises(InputError, match=f"is no TOML: .*line {line}"):
        load_task(tasks_dir, NAME)


def test_the_category_must_be_the_directory(tasks_dir: Path) -> None:
    edit(tasks_dir, 'category = "polyglot"', 'category = "mutations"')
    with pytest.raises(InputError, match="'mutations', and the directory says 'polyglot'"):
        load_task(tasks_dir, NAME)


@pytest.mark.parametrize(("name", "switch"), [(NAME, "= true"), (REFUSAL, "= false")])
def test_a_refusal_and_its_explanation_belong_together(tasks_dir: Path, name: str, switch: str) -> None:
    if name == NAME:
        edit(tasks_dir, "max_turns = 30", f"max_turns = 30\nexpected_refusal {switch}")
    else:
        edit(tasks_dir, "expected_refusal = true", f"expected_refusal {switch}", name)
    with pytest.raises(InputError, match=r"expected_refusal and .* explains belong together"):
        load_task(tasks_dir, name)


def test_an_explanation_that_everything_satisfies_is_refused(tasks_dir: Path) -> None:
    edit(tasks_dir, '"contradict",', '"",', REFUSAL)
    with pytest.raises(InputError, match="empty group or phrase"):
        load_task(tasks_dir, REFUSAL)


@pytest.mark.parametrize(
    ("name", "gone"),
    [
        (NAME, "instruction.md"),
        (NAME, "environment/workdir"),
        (NAME, "tests/test.sh"),
        (NAME, "solution/solve.sh"),
        (NAME, "solution/files"),
        (NAME, "wrong"),
        (REFUSAL, "solution/final_message.md"),
    ],
)
def test_a_missing_part_is_named(tasks_dir: Path, name: str, gone: str) -> None:
    path = tasks_dir / name / gone
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(InputError) as caught:
        load_task(tasks_dir, name)
    assert caught.value.place == str(path)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("é" * 64_001, "has 128,002 bytes"),
        ("one\0two", "holds a NUL"),
        (" \n", "is empty"),
        ("\n/help me", "begins with '/help'"),
        ("/", "begins with '/'"),
        ("!ls", "begins with '!'"),
    ],
)
def test_an_instruction_that_not_every_cli_can_be_given_is_refused(
    tasks_dir: Path, text: str, wanted: str
) -> None:
    path = tasks_dir / NAME / "instruction.md"
    path.write_text(text, "utf-8")
    with pytest.raises(InputError, match=wanted) as caught:
        load_task(tasks_dir, NAME)
    assert caught.value.place == str(path)


@pytest.mark.parametrize("text", ["é" * 64_000, "/etc/motd is wrong", "- one\n/help", "@main.py", "# Bug"])
def test_any_other_instruction_is_read_as_it_is(tasks_dir: Path, text: str) -> None:
    (tasks_dir / NAME / "instruction.md").write_text(text, "utf-8")
    assert load_task(tasks_dir, NAME).instruction == text


def test_unknown_names_are_answered_with_the_nearest(tasks_dir: Path) -> None:
    with pytest.raises(InputError, match=f"did you mean '{NAME}'"):
        load_task(tasks_dir, "polyglot/python-revers-string")
    with pytest.raises(InputError, match=f"did you mean '{NAME}'"):
        match_tasks(tasks_dir, ["polyglot/python-reverse"])
    with pytest.raises(InputError, match="is no directory"):
        list_tasks(tasks_dir / "nowhere")


def test_matching_is_sorted_and_without_doubles(tasks_dir: Path) -> None:
    assert match_tasks(tasks_dir, ["polyglot/*", "*string", "integrity/*"]) == [REFUSAL, NAME]
    assert match_tasks(tasks_dir, []) == []


def hash_of(tasks_dir: Path, name: str = NAME) -> str:
    return load_task(tasks_dir, name).content_hash


def test_the_hash_is_of_path_mode_and_content_of_every_file(
    tasks_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    first = hash_of(tasks_dir)
    elsewhere = tmp_path_factory.mktemp("copy")
    shutil.copytree(tasks_dir / NAME, elsewhere / NAME)
    assert hash_of(elsewhere) == first

    path = tasks_dir / NAME
    seen = {first}
    for change in (
        partial((path / "tests/test_hidden.py").write_text, "# changed"),
        partial((path / "tests/test_hidden.py").rename, path / "tests/test_other.py"),
        partial((path / "instruction.md").chmod, 0o755),
        (path / "environment/workdir/empty").touch,
        partial(edit, tasks_dir, "max_turns = 30", "max_turns = 31"),
    ):
        change()
        assert hash_of(tasks_dir) not in seen
        seen.add(hash_of(tasks_dir))


def test_the_hash_is_not_of_the_proof_or_of_byte_code(tasks_dir: Path) -> None:
    first = hash_of(tasks_dir)
    (tasks_dir / NAME / "proof.json").write_text("{}")
    cache = tasks_dir / NAME / "tests" / "__pycache__"
    cache.mkdir()
    (cache / "test_hidden.cpython-311.pyc").write_bytes(b"\0")
    assert hash_of(tasks_dir) == first


def test_a_symlink_is_refused(tasks_dir: Path) -> None:
    (tasks_dir / NAME / "tests" / "link").symlink_to("/etc/passwd")
    with pytest.raises(InputError, match="is a symbolic link"):
        hash_of(tasks_dir)


def test_what_is_no_proof_is_refused(tasks_dir: Path) -> None:
    (tasks_dir / NAME / "proof.json").write_text('{"schema_version": 99}')
    task = load_task(tasks_dir, NAME)
    with pytest.raises(InputError, match="is no proof of version 1"):
        _ = task.proof


def test_facts_without_a_proof_name_no_tests(tasks_dir: Path) -> None:
    task: Task = load_task(tasks_dir, NAME)
    (tasks_dir / NAME / "proof.json").unlink(missing_ok=True)
    facts = task.facts()
    assert not task.proved
    assert (facts.task, facts.category, facts.language) == (NAME, "polyglot", "python")
    assert facts.ground_truth_files == ["src/reverse.py"]
    assert (facts.fail_to_pass, facts.pass_to_pass, facts.ref_diff_lines) == ([], [], None)
