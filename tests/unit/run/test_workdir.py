"""The workdir is compared without trusting anything an agent left in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.run.workdir import (
    Classifier,
    Difference,
    Template,
    compare,
    copy_tree,
    git,
    rebuild,
    scan,
)


@pytest.fixture
def template(tmp_path: Path) -> Template:
    source = tmp_path / "source"
    (source / "src").mkdir(parents=True)
    (source / "src" / "main.py").write_text("".join(f"line {n}\n" for n in range(20)))
    (source / "tests").mkdir()
    (source / "tests" / "test_main.py").write_text("assert True\n")
    (source / ".gitignore").write_text("out/\n")
    return Template.make(source, tmp_path / "template")


@pytest.fixture
def workdir(template: Template, tmp_path: Path) -> Path:
    place = tmp_path / "scratch" / "workdir"
    copy_tree(template.path, place)
    return place


def difference(template: Template, workdir: Path, *state_globs: str) -> Difference:
    return compare(template, workdir, scan(workdir), Classifier(template.path, state_globs))


def kinds(found: Difference) -> dict[str, tuple[str, str]]:
    return {change.path: (change.change, change.origin) for change in found.changes}


def test_nothing_changed(template: Template, workdir: Path) -> None:
    found = difference(template, workdir)
    assert (found.changes, found.patch, found.own) == ([], b"", {})


def test_added_modified_removed_and_renamed_are_told_apart_with_their_lines(
    template: Template, workdir: Path
) -> None:
    (workdir / "src" / "main.py").rename(workdir / "src" / "moved.py")
    (workdir / "tests" / "test_main.py").write_text("assert 1\nassert 2\n")
    (workdir / ".gitignore").unlink()
    (workdir / "new.txt").write_text("a\nb\n")
    found = difference(template, workdir)
    assert kinds(found) == {
        ".gitignore": ("removed", "agent"),
        "new.txt": ("added", "agent"),
        "src/moved.py": ("renamed", "agent"),
        "tests/test_main.py": ("modified", "agent"),
    }
    lines = {change.path: (change.lines_added, change.lines_removed) for change in found.changes}
    assert lines["tests/test_main.py"] == (2, 1)
    assert lines["src/moved.py"] == (0, 0)
    assert b"rename from src/main.py" in found.patch


@pytest.mark.parametrize("mode", [0o600, 0o666, 0o755])
def test_a_change_of_mode_alone_has_no_lines(template: Template, workdir: Path, mode: int) -> None:
    (workdir / "src" / "main.py").chmod(mode)
    [change] = difference(template, workdir).changes
    assert (change.path, change.change) == ("src/main.py", "modified")
    assert (change.lines_added, change.lines_removed) == (0, 0)


def test_build_outputs_and_the_clis_own_files_are_not_the_agents_work(
    template: Template, workdir: Path
) -> None:
    for name in ("out/result.bin", "target/debug/x", "src/__pycache__/main.cpython-313.pyc", ".aider/cache"):
        (workdir / name).parent.mkdir(parents=True, exist_ok=True)
        (workdir / name).write_bytes(b"\0\1")
    found = difference(template, workdir, ".aider/")
    assert {path: origin for path, (_, origin) in kinds(found).items()} == {
        "out/result.bin": "generated",
        "target/debug/x": "generated",
        "src/__pycache__/main.cpython-313.pyc": "generated",
        ".aider/cache": "cli_state",
    }
    assert found.own == {}
    assert found.patch == b""


def test_sources_in_a_nested_directory_named_target_are_the_agents_work(
    template: Template, workdir: Path
) -> None:
    (workdir / "src" / "target").mkdir()
    (workdir / "src" / "target" / "helper.py").write_text("x = 1\n")
    found = difference(template, workdir)
    assert kinds(found) == {"src/target/helper.py": ("added", "agent")}
    assert "src/target/helper.py" in found.own


def test_a_changed_mode_is_none_of_the_lines_a_cli_adds(template: Template, workdir: Path) -> None:
    (workdir / ".gitignore").write_text("out/\n.aider*\n")
    (workdir / ".gitignore").chmod(0o777)
    classify = Classifier(template.path, (), STATE_LINES)
    [change] = compare(template, workdir, scan(workdir), classify).changes
    assert change.origin == "agent"


STATE_LINES = {".gitignore": (".aider*",), "new.cfg": (".aider*", ".env")}


@pytest.mark.parametrize(
    ("path", "text", "origin"),
    [
        (".gitignore", "out/\n.aider*\n", "cli_state"),
        (".gitignore", ".aider*\nout/\n.aider*", "cli_state"),
        ("new.cfg", ".env\n.aider*\n", "cli_state"),
        (".gitignore", "out/\n.aider*\n*.py\n", "agent"),
        (".gitignore", ".aider*\n", "agent"),
        (".gitignore", "out/\n.env\n", "agent"),
        (".gitignore", None, "agent"),
        ("other.cfg", ".aider*\n", "agent"),
    ],
)
def test_lines_that_the_cli_itself_adds_are_not_the_agents_work(
    template: Template, workdir: Path, path: str, text: str | None, origin: str
) -> None:
    (workdir / path).unlink(missing_ok=True)
    if text is not None:
        (workdir / path).write_text(text)
    classify = Classifier(template.path, (), STATE_LINES)
    found = compare(template, workdir, scan(workdir), classify)
    assert {path: origin for path, (_, origin) in kinds(found).items()} == {path: origin}
    assert (path in found.own) == (origin == "agent") == bool(found.patch)


def test_a_link_in_place_of_a_file_is_the_agents_work(template: Template, workdir: Path) -> None:
    (workdir / "elsewhere").write_text("out/\n.aider*\n")
    (workdir / ".gitignore").unlink()
    (workdir / ".gitignore").symlink_to("elsewhere")
    classify = Classifier(template.path, (), STATE_LINES)
    assert kinds(compare(template, workdir, scan(workdir), classify))[".gitignore"][1] == "agent"


def test_an_agents_own_gitignore_hides_nothing(template: Template, workdir: Path) -> None:
    (workdir / ".gitignore").write_text("*\n")
    (workdir / "hidden.py").write_text("x\n")
    assert kinds(difference(template, workdir))["hidden.py"] == ("added", "agent")


def test_attributes_in_the_tree_hide_nothing_from_the_diff(template: Template, workdir: Path) -> None:
    (workdir / ".gitattributes").write_text("*.py -diff binary filter=x\n")
    (workdir / "src" / "main.py").write_text("changed\n")
    assert b"+changed" in difference(template, workdir).patch


def test_a_diff_is_made_where_a_killed_run_leaves_nothing(
    template: Template, workdir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "the machine's temporary files"))
    (workdir / "src" / "main.py").write_text("changed\n")
    assert b"+changed" in difference(template, workdir).patch
    assert not list(tmp_path.glob("diff-*"))


def test_git_in_the_agents_repository_is_never_run(template: Template, workdir: Path, tmp_path: Path) -> None:
    trap = tmp_path / "trapped"
    git("config", "core.fsmonitor", f"touch {trap}; false", cwd=workdir)
    git("config", "diff.external", f"touch {trap}", cwd=workdir)
    (workdir / "src" / "main.py").write_text("changed\n")
    found = difference(template, workdir)
    assert found.patch
    assert not trap.exists()
    git("status", cwd=workdir)
    assert trap.exists(), "the trap itself does not work"


def test_names_of_any_bytes_are_compared_and_shown(template: Template, workdir: Path) -> None:
    hostile = [b'quote".txt', b"line\nend.txt", b"back\\slash", b"latin-\xe9", b" space ", b"-dash"]
    for name in hostile:
        Path(os.fsdecode(os.fsencode(workdir) + b"/" + name)).write_text("x\n")
    found = difference(template, workdir)
    assert len(found.changes) == len(hostile)
    assert all(change.lines_added == 1 for change in found.changes)
    for change in found.changes:
        change.model_dump_json()


def test_symlinks_are_listed_and_never_followed(template: Template, workdir: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("do not read\n")
    (workdir / "link").symlink_to(secret)
    (workdir / "file-link").symlink_to(secret / "key")
    found = difference(template, workdir)
    assert kinds(found) == {"link": ("added", "agent"), "file-link": ("added", "agent")}
    assert b"do not read" not in found.patch


def test_special_files_are_listed_and_never_opened(template: Template, workdir: Path) -> None:
    os.mkfifo(workdir / "pipe")
    found = difference(template, workdir)
    assert found.changes[0].after is not None
    assert found.changes[0].after.kind == "other"


def test_a_repository_made_inside_is_listed_as_one_thing(template: Template, workdir: Path) -> None:
    (workdir / "sub" / ".git").mkdir(parents=True)
    (workdir / "sub" / ".git" / "config").write_text("x")
    (workdir / "sub" / "code.py").write_text("y\n")
    assert kinds(difference(template, workdir)) == {
        "sub/.git": ("added", "agent"),
        "sub/code.py": ("added", "agent"),
    }


def rebuilt(template: Template, workdir: Path, target: Path, *protected: str) -> dict[str, str]:
    found = difference(template, workdir)
    assert rebuild(template, workdir, found, protected, target, max_bytes=1 << 20, max_files=100) == 0
    return {path: (target / path).read_text() for path, state in scan(target).items() if state.kind == "file"}


def test_what_is_graded_has_the_agents_changes_and_no_build_outputs(
    template: Template, workdir: Path, tmp_path: Path
) -> None:
    (workdir / "src" / "main.py").write_text("fixed\n")
    (workdir / "target").mkdir()
    (workdir / "target" / "poison").write_text("stale\n")
    files = rebuilt(template, workdir, tmp_path / "graded")
    assert files["src/main.py"] == "fixed\n"
    assert "target/poison" not in files


def test_protected_files_are_graded_as_they_were(template: Template, workdir: Path, tmp_path: Path) -> None:
    (workdir / "tests" / "test_main.py").write_text("pass\n")
    (workdir / "tests" / "extra.py").write_text("x\n")
    files = rebuilt(template, workdir, tmp_path / "graded", "tests/**")
    assert files["tests/test_main.py"] == "assert True\n"
    assert "tests/extra.py" not in files


@pytest.mark.parametrize("as_directory", [True, False], ids=["directory", "file"])
def test_a_symlink_in_the_way_leads_nowhere(
    template: Template, workdir: Path, tmp_path: Path, as_directory: bool
) -> None:
    """A directory replaced by a symlink: what was below it must not be written or removed where it points."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "main.py").write_text("precious\n")
    (workdir / "src" / "main.py").unlink()
    (workdir / "src").rmdir()
    (workdir / "src").symlink_to(outside if as_directory else outside / "main.py")
    rebuilt(template, workdir, tmp_path / "graded")
    assert (outside / "main.py").read_text() == "precious\n"
    assert (tmp_path / "graded" / "src").is_symlink()


def test_a_file_where_a_directory_was_and_the_other_way_round(
    template: Template, workdir: Path, tmp_path: Path
) -> None:
    (workdir / "src" / "main.py").unlink()
    (workdir / "src").rmdir()
    (workdir / "src").write_text("now a file\n")
    (workdir / ".gitignore").unlink()
    (workdir / ".gitignore").mkdir()
    (workdir / ".gitignore" / "inner").write_text("now a directory\n")
    files = rebuilt(template, workdir, tmp_path / "graded")
    assert files["src"] == "now a file\n"
    assert files[".gitignore/inner"] == "now a directory\n"


def test_a_template_is_the_same_commit_everywhere(template: Template, tmp_path: Path) -> None:
    again = Template.make(tmp_path / "source", tmp_path / "again")
    assert git("rev-parse", "HEAD", cwd=template.path) == git("rev-parse", "HEAD", cwd=again.path)


def test_a_symlink_over_a_directory_does_not_remove_protected_files(
    template: Template, workdir: Path, tmp_path: Path
) -> None:
    (workdir / "tests" / "test_main.py").unlink()
    (workdir / "tests").rmdir()
    (workdir / "tests").symlink_to("src")
    files = rebuilt(template, workdir, tmp_path / "graded", "tests/**")
    assert files["tests/test_main.py"] == "assert True\n"


def test_what_is_too_large_to_be_graded_is_left_out_and_counted(
    template: Template, workdir: Path, tmp_path: Path
) -> None:
    """New files come last: a flood of them does not keep the fix from being graded."""
    (workdir / "src" / "main.py").write_text("fixed\n")
    with (workdir / "a-hole").open("wb") as file:
        file.truncate(1 << 40)
    for name in ("b", "c", "d"):
        (workdir / name).write_text("x\n")
    found = difference(template, workdir)
    target = tmp_path / "graded"
    assert rebuild(template, workdir, found, (), target, max_bytes=1 << 20, max_files=3) == 2
    assert (target / "src" / "main.py").read_text() == "fixed\n"
    assert {path.name for path in target.iterdir()} & {"a-hole", "b", "c", "d"} == {"b", "c"}


@pytest.mark.parametrize(
    ("name", "depth"), [("d", 1400), ("d" * 254, 15), ("d" * 254, 40)], ids=["deep", "long", "too-long"]
)
def test_what_is_nested_too_deep_is_left_out_and_the_rest_is_graded(
    template: Template, workdir: Path, tmp_path: Path, name: str, depth: int
) -> None:
    """Else an agent could end its cell in an error that is not counted, or in none at all."""
    (workdir / "src" / "main.py").write_text("fixed\n")
    script = f"for _ in range({depth}): os.mkdir({name!r}); os.chdir({name!r})"
    code = f"import os\n{script}\nopen('last', 'w')"
    subprocess.run([sys.executable, "-c", code], cwd=workdir, check=True)
    # The grader's paths are longer than the agent's.
    target = tmp_path / ("graded" * 40)
    try:
        found = difference(template, workdir)
        assert rebuild(template, workdir, found, (), target, max_bytes=1 << 20, max_files=10) == 1
        assert (target / "src" / "main.py").read_text() == "fixed\n"
    finally:
        subprocess.run(["rm", "-rf", workdir / name], check=True)


def test_a_flood_is_left_out_of_the_diff_before_the_templates_files_are(
    template: Template, workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.run.workdir.MAX_DIFF_INPUT_BYTES", 1000)
    (workdir / "tests" / "test_main.py").write_text("pass\n")
    for number in range(6):
        (workdir / f"a{number}").write_bytes(b"x\n" * 200)
    found = difference(template, workdir)
    assert found.truncated
    assert found.patch.count(b"diff --git") == 3
    assert b"b/tests/test_main.py" in found.patch
    assert len(found.changes) == 7
    assert not difference(template, template.path).truncated


def test_a_tree_too_deep_to_be_named_is_listed_as_one_thing(template: Template, workdir: Path) -> None:
    here = os.open(workdir, os.O_RDONLY)
    for _ in range(25):
        os.mkdir("d" * 200, dir_fd=here)
        deeper = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)
    [change] = difference(template, workdir).changes
    assert change.after is not None
    assert change.after.kind == "other"


def test_reading_what_an_agent_left_is_bounded_and_what_is_not_read_differs(
    template: Template, workdir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many names of one file are read once; past the bound a file counts as changed, whatever it holds."""
    place = workdir / "links"
    place.mkdir()
    (place / "one").write_bytes(b"x" * 150)
    os.link(place / "one", place / "two")
    monkeypatch.setattr("orchestrator.run.workdir.MAX_HASHED_TOTAL_BYTES", 200)
    assert [state.sha256 is None for state in scan(place).values()] == [False, False]
    (place / "three").write_bytes(b"y" * 150)
    assert {state.sha256 is None for state in scan(place).values()} == {True, False}
    monkeypatch.setattr("orchestrator.run.workdir.MAX_HASHED_TOTAL_BYTES", 0)
    assert "src/main.py" in kinds(difference(template, workdir))
