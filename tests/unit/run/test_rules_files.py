"""Under which name a CLI finds a task's rules, and what a stack adds to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.plan.plugin import Manifest, Plugin, PluginFile
from orchestrator.run.stack import Rules, lay_plugins, offered
from orchestrator.run.workdir import Classifier, Template, compare, copy_tree, rebuild, scan

TASK, OWN, ADDED = b"The task's rule.\n", b"A rule of its own.\n", "A stack's rule.\n"
BOTH = TASK + b"\n" + ADDED.encode()


@pytest.mark.parametrize(
    ("there", "rules", "files", "read_from"),
    [
        ({"AGENTS.md": TASK}, Rules(None, ADDED), {}, None),
        ({"AGENTS.md": TASK}, Rules("AGENTS.md"), {}, "AGENTS.md"),
        ({"AGENTS.md": TASK}, Rules("CLAUDE.md"), {"CLAUDE.md": TASK}, "CLAUDE.md"),
        ({"AGENTS.md": TASK}, Rules("AGENTS.md", ADDED), {"AGENTS.md": BOTH}, "AGENTS.md"),
        ({"AGENTS.md": TASK}, Rules("C.md", ADDED), {"AGENTS.md": BOTH, "C.md": BOTH}, "C.md"),
        ({"AGENTS.md": TASK, "C.md": OWN}, Rules("C.md"), {}, "C.md"),
        ({}, Rules("C.md"), {}, None),
        ({}, Rules("C.md", ADDED), {"AGENTS.md": ADDED.encode(), "C.md": ADDED.encode()}, "C.md"),
    ],
)
def test_each_cli_gets_the_rules_under_its_own_name(
    tmp_path: Path, there: dict[str, bytes], rules: Rules, files: dict[str, bytes], read_from: str | None
) -> None:
    for name, content in there.items():
        (tmp_path / name).write_bytes(content)
    assert rules.files(tmp_path) == files
    assert rules.read_from(tmp_path) == read_from
    found = files.get(read_from or "") or there.get(read_from or "") or b""
    assert rules.text(tmp_path) == found.decode()


def test_rules_are_part_of_what_was_there_before_and_of_no_grading(tmp_path: Path) -> None:
    source = tmp_path / "task"
    source.mkdir()
    (source / "AGENTS.md").write_bytes(TASK)
    (source / "code.py").write_text("a = 1\n")
    plain = Template.make(source, tmp_path / "plain")
    given = Template.make(source, tmp_path / "given", Rules(".own/rules.md", ADDED).files(source))
    assert given.before.keys() - plain.before.keys() == {".own/rules.md"}
    workdir = tmp_path / "workdir"
    copy_tree(given.path, workdir)
    (workdir / "code.py").write_text("a = 2\n")
    difference = compare(given, workdir, scan(workdir), Classifier(given.path))
    assert [change.path for change in difference.changes] == ["code.py"]
    rebuild(plain, workdir, difference, (), tmp_path / "graded", max_bytes=1000, max_files=10)
    assert (tmp_path / "graded" / "code.py").read_text() == "a = 2\n"
    assert (tmp_path / "graded" / "AGENTS.md").read_bytes() == TASK
    assert not (tmp_path / "graded" / ".own").exists()


def test_only_the_files_of_servers_are_laid_out(tmp_path: Path) -> None:
    files = {"bin/run": PluginFile(b"x", executable=True), "data": PluginFile(b"y", executable=False)}
    rules = Plugin("rules", Manifest(kind="rules", rules="data"), files, "")
    server = Plugin("server", Manifest(kind="mcp", command=("{plugin}/bin/run",)), files, "")
    lay_plugins(tmp_path, [rules, server])
    laid = {
        path.relative_to(tmp_path).as_posix(): path.stat().st_mode & 0o777
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    assert laid == {"plugins/server/bin/run": 0o555, "plugins/server/data": 0o444}


def server(name: str) -> Plugin:
    return Plugin(name, Manifest(kind="mcp", command=("true",)), {}, "")


@pytest.mark.parametrize(
    ("request_", "found"),
    [
        ({"tools": [{"function": {"name": "facts_lookup"}}]}, True),
        ({"tools": [{"name": "mcp__facts__lookup"}]}, True),
        ({"tools": [{"function": {"name": "facts-lookup"}}]}, True),
        ({"tools": [{"functionDeclarations": [{"name": "mcp_facts_lookup"}]}]}, True),
        ({"messages": [{"content": "these can be looked up:\nmcp__facts__lookup"}]}, True),
        ({"tools": [{"name": "artefacts_lookup"}, {"name": "facts"}]}, False),
        ({"messages": [{"content": "the server facts did not start; facts: none"}]}, False),
        ("no object", False),
    ],
)
def test_a_server_is_offered_where_a_request_names_a_tool_of_it(request_: object, found: bool) -> None:
    assert offered([server("facts")], [{}, request_]) == ({"facts"} if found else set())


def test_a_servers_name_may_be_written_with_underscores() -> None:
    requests = [{"tools": [{"name": "mcp__two-words__a"}]}, {"tools": [{"name": "more_words_b"}]}]
    assert offered([server("two-words"), server("more-words"), server("x")], requests) == {
        "two-words",
        "more-words",
    }
