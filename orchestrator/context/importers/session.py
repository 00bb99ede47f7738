"""From the steps of any CLI's session to a history: what is told alike of all of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from posixpath import normpath, relpath
from typing import Any

from orchestrator.context.events import Event, History, Kind, Source
from orchestrator.context.importers.commands import only_looks, written
from orchestrator.context.importers.runners import results_in
from orchestrator.context.redact import REDACTED, redact

MAX_OUTPUT = 2_000
"""Characters kept of a command's output: half from its beginning, half from its end."""
MAX_MESSAGE = 4_000
MAX_FAILURE = 400
LEAST_GOAL_WORDS = 4
"""A shorter message of the user (`yes`, `go on`) is no goal."""


@dataclass(frozen=True)
class Imported:
    """A session log as a history.

    `cwd` is where the session worked and `base` the commit that it started from; None where the log does not
    say. `goal` is the last goal of the user's, "" without one. `unknown` counts lines by the type that this
    cab does not know, `broken` those that are no JSON object; `redacted` is how many secrets were taken out.
    """

    history: History
    cwd: str | None
    base: str | None
    goal: str
    lines: int
    broken: int
    unknown: dict[str, int]
    redacted: int


@dataclass
class Session:
    """Collects the steps of one session, in order, as events. Paths below `cwd` become relative to it."""

    cwd: str | None = None
    base: str | None = None
    lines: int = 0
    broken: int = 0
    unknown: Counter[str] = field(default_factory=Counter)
    _events: list[Event] = field(default_factory=list)
    _goal: str = ""
    _goals: int = 0
    _redacted: int = 0
    _failing: dict[str, str] = field(default_factory=dict)
    """Tests that failed last, with the command that showed it."""
    _broken_commands: set[str] = field(default_factory=set)
    _rules: set[str] = field(default_factory=set)

    def imported(self) -> Imported:
        history = History(tuple(self._events))
        unknown = dict(sorted(self.unknown.items()))
        return Imported(
            *(history, self.cwd, self.base, self._goal, self.lines, self.broken, unknown, self._redacted)
        )

    def user_said(self, text: str, at: str) -> None:
        """A message of the user: a goal unless it is very short, and the constraints that it states."""
        text = self._clean(text).strip()
        if not text:
            return
        if len(text.split()) < LEAST_GOAL_WORDS:
            self._add("message", text, at, source="user")
            return
        self._goals += 1
        self._goal = text
        self._add("goal", _clipped(text, MAX_MESSAGE), at, key=f"goal-{self._goals}", source="user")
        for sentence in constraints_in(text):
            self._constraint(sentence, at, hard=is_hard(sentence))

    def instructions(self, text: str, at: str) -> None:
        """The project's notes for agents: their list items are constraints, none of them hard."""
        for item in _items(self._clean(text)):
            self._constraint(item, at, hard=False)

    def agent_said(self, text: str, at: str) -> None:
        if text := self._clean(text).strip():
            self._add("message", _clipped(text, MAX_MESSAGE), at)

    def compacted(self, text: str, at: str) -> None:
        """What the CLI itself made of an earlier part of the session."""
        if text := self._clean(text).strip():
            self._add("episode", _clipped(text, MAX_MESSAGE), at)

    def planned(self, text: str, at: str) -> None:
        """A plan or list of things to do: a later one takes its place."""
        if text := self._clean(text).strip():
            self._add("decision", _clipped(text, MAX_MESSAGE), at, key="plan")

    def touched(self, path: str, at: str) -> None:
        """A file that the agent wrote; one outside the session's directory is none of the repository's."""
        if (inside := self._inside(path)) is not None:
            self._add("file_touched", f"changed {inside}", at, key=inside, files=(inside,))

    def ran(self, command: str, output: str, exit_code: int | None, at: str) -> None:
        """A command and all that it printed; `exit_code` None where the log does not say."""
        command, output = self._clean(command).strip(), self._clean(output)
        if not command:
            return
        key = _key(command)
        said = f"$ {_clipped(command, MAX_FAILURE)}\n{_clipped(output.strip(), MAX_OUTPUT)}".rstrip()
        code = f"\n[exit {exit_code}]" if exit_code and f"[exit {exit_code}]" not in said else ""
        self._add("tool_output", said + code, at, key=key, source="tool")
        for path in written(command) if not exit_code else ():
            self.touched(path, at)
        tests = results_in(output)
        if tests:
            self._tested(key, tests.failed, tests.passed, at, ended=tests.ended)
        if exit_code and not tests and not (only_looks(command) and exit_code == 1):
            self._broken_commands.add(key)
            text = f"`{_clipped(command, 120)}` failed with exit code {exit_code}: {_end_of(output)}"
            self._add("failure", text.rstrip(": "), at, key=key, source="tool")
        elif exit_code == 0 and key in self._broken_commands:
            self._broken_commands.remove(key)
            said = f"`{_clipped(command, 120)}` works now"
            self._add("failure_resolved", said, at, key=key, source="tool")

    def _tested(self, key: str, failed: dict[str, str], passed: set[str], at: str, *, ended: bool) -> None:
        """Failures as they are said; a pass only of a test that failed before, whether it is named or the
        same command ran to its end without it among the failed.
        """
        for test, why in failed.items():
            self._failing[test] = key
            text = f"{test} failed{f': {why}' if why else ''}"
            self._add("test_failed", text, at, key=test, source="tool")
        silent = {test for test, by in self._failing.items() if ended and by == key}
        for test in sorted((passed | silent) & self._failing.keys() - failed.keys()):
            del self._failing[test]
            self._add("test_passed", f"{test} passes", at, key=test, source="tool")

    def _constraint(self, text: str, at: str, *, hard: bool) -> None:
        key = _key(text)
        if key not in self._rules:
            self._rules.add(key)
            self._add("constraint", text, at, key=key, source="user", hard=hard)

    def _add(
        self,
        kind: Kind,
        text: str,
        at: str,
        *,
        key: str = "",
        source: Source = "agent",
        files: tuple[str, ...] = (),
        hard: bool = False,
    ) -> None:
        number = f"e{len(self._events) + 1:05}"
        self._events.append(
            Event(id=number, kind=kind, text=text, key=key, source=source, files=files, hard=hard, at=at)
        )

    def _clean(self, text: str) -> str:
        """Without secrets, and with the session's directory as the directory it is."""
        told = redact(text)
        self._redacted += told.count(REDACTED) - text.count(REDACTED)
        text = told
        if self.cwd and self.cwd.strip("/"):
            text = re.sub(rf"{re.escape(self.cwd.rstrip('/'))}(?:/|(?![\w.-]))", _to_here, text)
        return text

    def _inside(self, path: str) -> str | None:
        path = self._clean(path).removeprefix("./")
        if path.startswith("/") and self.cwd:
            path = relpath(path, self.cwd)
        plain = normpath(path)
        return None if plain.startswith(("/", "..", "~")) or plain in (".", "") else plain


def _to_here(found: re.Match[str]) -> str:
    return "" if found[0].endswith("/") else "."


_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n\s*\n|\n\s*(?=[-*•]\s|\d+[.)]\s)")
_HARD = re.compile(
    r"(?<!so it )\bmust(?! have\b)(?: not|n't)?\b|"
    r"\b(?:never|do not|don't|may not|under no circumstances|forbidden)\b",
    re.I,
)
_SOFT = re.compile(
    r"\b(?:keep|leave|avoid|prefer|without (?:changing|touching|breaking|adding)|ha(?:s|ve) to|"
    r"make sure|ensure)\b",
    re.I,
)
_MARK = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")


def constraints_in(text: str) -> Iterator[str]:
    """The sentences and list items that say how work may be done, told by their words alone.

    Words that as often tell what is wrong (`should`, `only`, `instead of`) are none of them. Code blocks are
    left out. A sentence of more than 400 characters is a pasted text, not a rule.
    """
    for part in _SENTENCE.split(re.sub(r"```.*?(?:```|\Z)", "\n\n", text, flags=re.DOTALL)):
        sentence = " ".join(_MARK.sub("", part).split())
        if 0 < len(sentence) <= MAX_FAILURE and (_HARD.search(sentence) or _SOFT.search(sentence)):
            yield sentence


def is_hard(sentence: str) -> bool:
    """Whether the sentence forbids or demands, rather than wishes."""
    return _HARD.search(sentence) is not None


def _items(text: str) -> Iterator[str]:
    """List items with the lines that they go on for."""
    held = ""
    for line in [*text.splitlines(), ""]:
        if _MARK.match(line) or not line.startswith((" ", "\t")) or not line.strip():
            if held:
                yield held
            held = " ".join(_MARK.sub("", line).split()) if _MARK.match(line) else ""
        elif held:
            held = f"{held} {line.strip()}"


def _key(text: str) -> str:
    """A key by which the same command or rule is known again."""
    plain = " ".join(text.split())
    return plain if len(plain) <= 200 else f"{plain[:199]}…"


def _clipped(text: str, most: int) -> str:
    """The text, or its beginning and end with a word on how much is left out."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


def _end_of(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip() and not line.startswith("[exit ")]
    return _clipped(lines[-1], MAX_FAILURE) if lines else ""


def text_of(content: Any, wanted: tuple[str, ...] = ("text", "input_text", "output_text")) -> str:
    """The texts of a message's content, which is one or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") in wanted]
    return "\n".join(text for text in texts if isinstance(text, str))


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def dicts(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; whatever else stands where a list should is none."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


Reader = Callable[[dict[str, Any], Session], None]
"""Takes one decoded line of a log into the session."""
