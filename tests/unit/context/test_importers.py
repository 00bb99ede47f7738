"""Session logs of codex and Claude Code as histories: real logs, and lines made by hand for the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.context.events import Event, History
from orchestrator.context.importers import IMPORTERS, Imported, import_log
from orchestrator.context.importers.session import Session
from orchestrator.context.redact import REDACTED
from orchestrator.errors import InputError

LOGS = Path(__file__).resolve().parents[2] / "data" / "session_logs"
TEST = "tests.test_reverse.ReverseTest.test_word"


def read(cli: str, lines: list[Any]) -> Imported:
    """A log made of these lines, read by the importer alone."""
    session = Session()
    importer = IMPORTERS[cli](session)
    for line in lines:
        importer.line(line)
    return session.imported()


def of(found: Imported, *kinds: str) -> list[Event]:
    return [event for event in found.history if event.kind in kinds]


def codex_call(name: str, arguments: dict[str, Any], output: str = "") -> list[dict[str, Any]]:
    call = {"type": "function_call", "name": name, "call_id": "c", "arguments": json.dumps(arguments)}
    answer = {"type": "function_call_output", "call_id": "c", "output": output}
    return [{"type": "response_item", "payload": payload} for payload in (call, answer)]


def codex_ran(command: str, output: str, code: int) -> list[dict[str, Any]]:
    said = f"Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code {code}\nOutput:\n{output}"
    return codex_call("exec_command", {"cmd": command}, said)


def codex_user(text: str) -> dict[str, Any]:
    content = [{"type": "input_text", "text": text}]
    return {"type": "response_item", "payload": {"type": "message", "role": "user", "content": content}}


def claude_call(name: str, given: dict[str, Any], output: str, *, bad: bool = False) -> list[dict[str, Any]]:
    call = {"type": "tool_use", "id": "t", "name": name, "input": given}
    result = {"type": "tool_result", "tool_use_id": "t", "content": output, "is_error": bad}
    return [
        {"type": "assistant", "message": {"role": "assistant", "content": [call]}, "cwd": "/workdir"},
        {"type": "user", "message": {"role": "user", "content": [result]}, "cwd": "/workdir"},
    ]


@pytest.mark.parametrize("cli", sorted(IMPORTERS))
def test_a_real_log_is_read_whole(cli: str) -> None:
    found = import_log(cli, LOGS / f"{cli}.jsonl")
    assert (found.broken, found.unknown, found.redacted, found.cwd) == (0, {}, 0, "/workdir")
    assert found.goal.startswith("Reversed captions lose a letter.")
    assert [event.text for event in of(found, "goal")] == [found.goal]
    hard = [event.text for event in of(found, "constraint") if event.hard]
    assert [text.split(" is ")[0] for text in hard] == ["What counts as a character"]
    assert "Keep changes as small as the ticket allows." in [event.text for event in of(found, "constraint")]
    [failed], [passed] = of(found, "test_failed"), of(found, "test_passed")
    assert (failed.key, passed.key) == (TEST, TEST)
    assert failed.text == f"{TEST} failed: AssertionError: 'pma' != 'pmal'"
    assert [event.files for event in of(found, "file_touched")] == [("src/reverse.py",)]
    assert of(found, "message")[-1].text.startswith("The slice in `reverse_string` stopped")
    # In the order in which it happened.
    kinds = [event.kind for event in found.history]
    assert kinds.index("goal") < kinds.index("test_failed") < kinds.index("file_touched")
    assert kinds.index("file_touched") < kinds.index("test_passed")


def test_the_commit_that_a_codex_session_started_from() -> None:
    assert import_log("codex", LOGS / "codex.jsonl").base == "e3b77725b3174dd85e7b0355ffc2aaba560cfd02"
    assert import_log("claude-code", LOGS / "claude-code.jsonl").base is None


@pytest.mark.parametrize("cli", sorted(IMPORTERS))
def test_the_same_log_gives_the_same_history_and_stands_a_round_trip(cli: str) -> None:
    one, two = (import_log(cli, LOGS / f"{cli}.jsonl").history for _ in range(2))
    assert one == two == History.of(one.as_json(), "")


@pytest.mark.parametrize("cli", sorted(IMPORTERS))
def test_what_is_not_known_is_counted(cli: str, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    more = '{"type": "from-the-future"}\n{"type": "from-the-future"}\nno json\n[1]\n{}\n\n'
    log.write_text((LOGS / f"{cli}.jsonl").read_text() + more)
    found = import_log(cli, log)
    assert found.unknown == {"from-the-future": 2, "without a type": 1}
    assert found.broken == 2
    assert found.history == import_log(cli, LOGS / f"{cli}.jsonl").history


@pytest.mark.parametrize("cli", sorted(IMPORTERS))
def test_another_file_is_refused(cli: str, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"type": "x"}\nnot json\n')
    with pytest.raises(
        InputError, match=rf"no session of {cli}: 2 lines, of which 1 are no JSON object and 1"
    ):
        import_log(cli, log)


def test_an_unknown_cli_is_refused() -> None:
    with pytest.raises(InputError, match=r"'codx' can be read .*codex"):
        import_log("codx", LOGS / "codex.jsonl")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def spoilt(draw: st.DrawFn) -> tuple[str, Any]:
    """A line of a real log, with anything at all at one place in it."""
    cli = draw(st.sampled_from(sorted(IMPORTERS)))
    lines = (LOGS / f"{cli}.jsonl").read_text().splitlines()
    line = json.loads(draw(st.sampled_from(lines)))
    at = line
    while True:
        key = draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        if isinstance(at[key], dict | list) and at[key] and draw(st.booleans()):
            at = at[key]
            continue
        at[key] = draw(JSON)
        return cli, line


@given(spoilt())
def test_no_line_is_a_traceback(given: tuple[str, Any]) -> None:
    cli, line = given
    found = read(cli, [line, *codex_ran("true", "", 0)])
    assert History.of(found.history.as_json(), "") == found.history


def test_secrets_are_taken_out_wherever_they_stand() -> None:
    key = "sk-proj-A1b2C3d4E5f6G7h8I9j0"
    said = [
        codex_user(f"Use the key {key} for the staging server, please"),
        *codex_ran(
            f"curl -H 'Authorization: Bearer {key[3:]}abcdef' x", f"DB_PASSWORD=hunter2hunter2 {key}", 0
        ),
        *codex_call("update_plan", {"plan": [{"step": f"log in with {key}", "status": "pending"}]}),
    ]
    found = read("codex", said)
    text = json.dumps(found.history.as_json()) + found.goal
    assert "A1b2" not in text
    assert "hunter2" not in text
    assert text.count(REDACTED) == 7
    assert found.redacted == 5


def test_code_that_speaks_of_a_token_is_none() -> None:
    found = read("codex", codex_ran("cat a.py", "token = self.next_token\npassword = read_password", 0))
    assert found.redacted == 0


def test_paths_of_the_session_are_relative_to_where_it_worked() -> None:
    lines = [
        {"type": "session_meta", "payload": {"cwd": "/home/someone/project"}},
        *codex_ran("cat /home/someone/project/src/a.py && ls /home/someone/project2", "", 0),
        *codex_ran("echo x > /home/someone/project/src/a.py; echo y > /etc/hosts", "", 0),
    ]
    found = read("codex", lines)
    assert of(found, "tool_output")[0].text == "$ cat src/a.py && ls /home/someone/project2"
    assert [event.files for event in of(found, "file_touched")] == [("src/a.py",)]


def test_a_plan_is_a_decision_which_the_next_one_replaces() -> None:
    plan = {"explanation": "First the parser.", "plan": [{"step": "Mend parse()", "status": "in_progress"}]}
    [event] = of(read("codex", codex_call("update_plan", plan)), "decision")
    assert (event.key, event.text) == ("plan", "First the parser.\n- [in_progress] Mend parse()")
    todos = {"todos": [{"content": "Mend parse()", "status": "completed", "activeForm": "Mending"}]}
    [event] = of(read("claude-code", claude_call("TodoWrite", todos, "ok")), "decision")
    assert (event.key, event.text) == ("plan", "- [completed] Mend parse()")


PATCH = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** Add File: src/b.py\n+z\n*** End Patch"


def test_files_that_a_patch_names_are_touched_unless_it_failed() -> None:
    called = {"type": "custom_tool_call", "name": "apply_patch", "call_id": "p", "input": PATCH}

    def touched(output: str) -> list[str]:
        answer = {"type": "custom_tool_call_output", "call_id": "p", "output": output}
        lines = [{"type": "response_item", "payload": payload} for payload in (called, answer)]
        return [event.key for event in of(read("codex", lines), "file_touched")]

    assert touched('{"output": "Success.", "metadata": {"exit_code": 0}}') == ["src/a.py", "src/b.py"]
    assert touched('{"output": "no such context", "metadata": {"exit_code": 1}}') == []
    heredoc = codex_ran(f"apply_patch <<'EOF'\n{PATCH}\nEOF", "Success.", 0)
    assert [event.key for event in of(read("codex", heredoc), "file_touched")] == ["src/a.py", "src/b.py"]


def test_an_edit_that_was_refused_touches_nothing() -> None:
    given = {"file_path": "/workdir/src/a.py", "old_string": "x", "new_string": "y"}
    assert of(read("claude-code", claude_call("Edit", given, "not found", bad=True)), "file_touched") == []
    [event] = of(read("claude-code", claude_call("Edit", given, "updated")), "file_touched")
    assert event.key == "src/a.py"


def test_subagents_commands_of_the_cli_and_reminders_are_not_the_users_words() -> None:
    def user(text: str, **more: Any) -> dict[str, Any]:
        return {"type": "user", "message": {"role": "user", "content": text}, **more}

    found = read(
        "claude-code",
        [
            user("Explore the repository for all the callers", isSidechain=True),
            user("<command-name>/model</command-name> some more words here"),
            user("Caveat: these messages are made by the CLI", isMeta=True),
            user(
                "<system-reminder>never mind all of these words</system-reminder>\nMend the parser of dates."
            ),
            user("This session goes on from an earlier one.", isCompactSummary=True),
            user("go on"),
        ],
    )
    assert [(event.kind, event.text) for event in found.history] == [
        ("goal", "Mend the parser of dates."),
        ("episode", "This session goes on from an earlier one."),
        ("message", "go on"),
    ]


def test_the_users_later_goal_stands_beside_the_first() -> None:
    found = read("codex", [codex_user("Mend the parser of dates"), codex_user("Now mend the printer, too")])
    assert [(event.key, event.text) for event in of(found, "goal")] == [
        ("goal-1", "Mend the parser of dates"),
        ("goal-2", "Now mend the printer, too"),
    ]
    assert found.goal == "Now mend the printer, too"


def test_constraints_of_a_message_and_which_are_hard() -> None:
    text = (
        "The total is wrong, it should be 3 instead of 2.\n\n"
        "- Do not change the signature of `total`.\n- Please keep the cache.\n"
        "```\nnever_called()  # must not run\n```\nThe queue is fine, so it must be the reader."
    )
    found = read("codex", [codex_user(text)])
    assert [(event.text, event.hard) for event in of(found, "constraint")] == [
        ("Do not change the signature of `total`.", True),
        ("Please keep the cache.", False),
    ]


def test_a_command_that_fails_is_open_until_it_works() -> None:
    make = "make -s lint"
    found = read(
        "codex", [*codex_ran(make, "a.c:1: error", 2), *codex_ran(make, "", 0), *codex_ran(make, "", 0)]
    )
    assert [(event.kind, event.key) for event in of(found, "failure", "failure_resolved")] == [
        ("failure", make),
        ("failure_resolved", make),
    ]
    assert of(found, "failure")[0].text == "`make -s lint` failed with exit code 2: a.c:1: error"


def test_a_look_that_finds_nothing_is_no_failure() -> None:
    assert of(read("codex", codex_ran("cd src && grep -rn total .", "", 1)), "failure") == []
    assert len(of(read("codex", codex_ran("grep -rn total /none", "No such file", 2)), "failure")) == 1


PYTEST = "{marks} [100%]\n{named}{count} in 0.10s\n"


def pytest_said(*failed: str, early: bool = False) -> str:
    named = "".join(f"FAILED {test} - assert 1 == 2\n" for test in failed)
    stop = "!!!!!!!!!! stopping after 1 failures !!!!!!!!!!\n" if early else ""
    return PYTEST.format(marks="..F", named=named + stop, count=f"{len(failed)} failed, 3 passed")


def test_a_test_that_is_not_named_passes_when_the_same_command_ended_without_it() -> None:
    a, b, run = "tests/test_a.py::test_a", "tests/test_a.py::test_b", "pytest -q"
    found = read("codex", [*codex_ran(run, pytest_said(a, b), 1), *codex_ran(run, pytest_said(b), 1)])
    assert [event.key for event in of(found, "test_passed")] == [a]
    # Another command may not run it, and one that stopped early may not have come to it.
    other = [
        *codex_ran(run, pytest_said(a, b), 1),
        *codex_ran("pytest -q tests/test_c.py", pytest_said(b), 1),
    ]
    assert of(read("codex", other), "test_passed") == []
    early = [*codex_ran(run, pytest_said(a, b), 1), *codex_ran(run, pytest_said(b, early=True), 1)]
    assert of(read("codex", early), "test_passed") == []


def test_long_output_keeps_both_its_ends() -> None:
    [event] = of(read("codex", codex_ran("make", "first\n" + "x" * 9000 + "\nlast", 0)), "tool_output")
    assert len(event.text) < 2200
    assert "first" in event.text
    assert "7011 characters left out" in event.text
    assert event.text.endswith("last")
