"""Scripted models against the loop of a CLI that offers no tools and reads edits out of the answer."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import pytest

from orchestrator.gateway.contract import Script
from orchestrator.gateway.embedded.dialects import recognise
from orchestrator.gateway.embedded.dialects.text_edits import AGAIN, ASK
from orchestrator.gateway.embedded.dialects.tool_calls import ToolCalls

WHOLE = """You MUST use this *file listing* format:

path/to/filename.js
{open}
// entire file content ...
// ... goes in between
{close}
"""
DIFF = """# *SEARCH/REPLACE block* Rules:
1. The path
2. The opening fence and code language, eg: {open}python
8. The closing fence: {close}
"""
BEFORE = {
    "calc.py": "def add(a, b):\n    return a - b\n\n\ndef sub(a, b):\n    return a + b\n",
    "src/new.py": None,
    "empty.txt": "",
    "same.py": "kept\n",
}
AFTER = {
    "calc.py": "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n",
    "src/new.py": "NAME = 1\n\n",
    "empty.txt": "no longer",
    "same.py": "kept\n",
}
FINAL = "Fixed in calc.py."
SOLUTION = Script(kind="reference", before=BEFORE, files=AFTER, final_message=FINAL)


@dataclass
class FakeCli:
    """Shows the files of its chat, adds those that an answer names, and applies the edits it finds."""

    prompt: str
    fence: tuple[str, str] = ("```", "```")
    adds: bool = True
    breaks: bool = False
    files: dict[str, str] = field(
        default_factory=lambda: {path: text for path, text in BEFORE.items() if text is not None}
    )
    chat: set[str] = field(default_factory=set)
    said: list[str] = field(default_factory=list)

    def request(self) -> dict[str, Any]:
        opening, closing = self.fence
        shown = "".join(f"\n{path}\n{opening}\n{self.files[path]}{closing}\n" for path in sorted(self.chat))
        messages = [{"role": "system", "content": self.prompt.format(open=opening, close=closing)}]
        messages += [{"role": "assistant", "content": text} for text in self.said]
        messages += [{"role": "user", "content": f"I added these files.\n{shown}"}]
        return {"messages": [*messages, {"role": "user", "content": "Fix it"}]}

    def run(self, script: Script) -> list[str]:
        """All answers, until one has no edit and names no further file."""
        for _ in range(8):
            dialect = recognise(self.request(), "/workdir")
            assert dialect is not None
            text = dialect.step(script).text
            assert text is not None
            self.said.append(text)
            named = {path for path in self.files if path in text} - self.chat
            if named and self.adds:
                self.chat |= named
            elif not self.apply(text):
                return self.said
        raise AssertionError("the model does not end")

    def apply(self, answer: str) -> bool:
        opening, closing = (re.escape(part) for part in self.fence)
        blocks = re.findall(rf"(?ms)^(\S+)\n{opening}\n(.*?)^{closing}$", answer)
        for path, body in blocks if not self.breaks else []:
            self.chat.add(path)
            if self.prompt is WHOLE:
                self.files[path] = body
                continue
            found = re.fullmatch(r"(?s)<<<<<<< SEARCH\n(.*?)=======\n(.*)>>>>>>> REPLACE\n", body)
            assert found, body
            text = self.files.get(path, "")
            assert text.count(found[1]) == 1 or text == found[1] == ""
            self.files[path] = text.replace(found[1], found[2], 1)
        return bool(blocks)


def solved(cli: FakeCli) -> bool:
    """These forms cannot leave out the last line's end."""
    return cli.files == {**AFTER, "empty.txt": "no longer\n"}


@pytest.mark.parametrize("prompt", [WHOLE, DIFF])
@pytest.mark.parametrize("fence", [("```", "```"), ("<source>", "</source>")])
def test_the_reference_asks_for_the_files_and_edits_them(prompt: str, fence: tuple[str, str]) -> None:
    cli = FakeCli(prompt, fence)
    asked, edited, final = cli.run(SOLUTION)
    assert solved(cli)
    assert asked == f"{ASK}\n\ncalc.py\nempty.txt"
    assert edited.endswith(FINAL)
    assert "same.py" not in edited
    assert final == FINAL


def test_files_that_are_shown_are_not_asked_for() -> None:
    cli = FakeCli(WHOLE, chat={"calc.py", "empty.txt"})
    assert len(cli.run(SOLUTION)) == 2
    assert solved(cli)


@pytest.mark.parametrize("prompt", [WHOLE, DIFF])
def test_a_cli_that_adds_nothing_gets_the_edits_all_the_same(prompt: str) -> None:
    cli = FakeCli(prompt, adds=False)
    first = cli.request()
    dialect = recognise(first, "/workdir")
    assert dialect
    cli.said.append(dialect.step(SOLUTION).text or "")
    again = recognise(cli.request(), "/workdir")
    assert again
    assert cli.apply(again.step(SOLUTION).text or "")
    assert solved(cli)


@pytest.mark.parametrize("prompt", [WHOLE, DIFF])
def test_edits_that_never_arrive_come_to_an_end(prompt: str) -> None:
    cli = FakeCli(prompt, breaks=True)
    asked, once, twice, final = cli.run(SOLUTION)
    assert asked.startswith(ASK)
    assert once == twice
    assert final == FINAL


def test_a_script_without_changes_is_its_final_message() -> None:
    script = Script(
        kind="reference", before={"calc.py": "x\n"}, files={"calc.py": "x\n"}, final_message="No."
    )
    cli = FakeCli(WHOLE, chat={"calc.py"})
    assert cli.run(script) == ["No."]


def test_a_file_that_goes_is_emptied() -> None:
    script = Script(kind="reference", before={"calc.py": BEFORE["calc.py"]}, files={"calc.py": None})
    for prompt in (WHOLE, DIFF):
        cli = FakeCli(prompt)
        cli.run(script)
        assert cli.files["calc.py"] == ""


def test_a_loop_says_the_same_whatever_came_before() -> None:
    cli = FakeCli(WHOLE)
    for _ in range(3):
        dialect = recognise(cli.request(), "/workdir")
        assert dialect
        assert dialect.again().text == AGAIN
        cli.said.append(AGAIN)


def test_the_request_tells_its_dialect() -> None:
    tool = {"type": "function", "function": {"name": "bash", "parameters": {}}}
    system = [{"role": "system", "content": WHOLE.format(open="```", close="```")}]
    assert isinstance(recognise({"messages": system, "tools": [tool]}, "/workdir"), ToolCalls)
    commit = [
        {"role": "system", "content": "Write a commit message"},
        {"role": "user", "content": system[0]["content"]},
    ]
    assert recognise({"messages": commit}, "/workdir") is None
    # A CLI whose model takes no system prompt sends it as the user's first message.
    assert recognise({"messages": [{**system[0], "role": "user"}]}, "/workdir") is not None
