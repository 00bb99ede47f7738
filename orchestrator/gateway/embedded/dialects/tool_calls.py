"""Tool calls: the dialect of CLIs that offer their model tools. Everything is read from the conversation.

The plan: read the files to change, run `reproduce`, change the files, run `reproduce` again, say the final
message. A step whose tool fails is done once more through the shell.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from posixpath import dirname, join
from typing import Any

from orchestrator.gateway.contract import Script
from orchestrator.gateway.embedded.dialects.vocabulary import Ending, Toolbox, ending, toolbox
from orchestrator.gateway.embedded.edits import hunks
from orchestrator.gateway.embedded.turn import ToolUse, Turn
from orchestrator.gateway.wires.shared import text_of

NO_SHELL = "This scripted model knows none of the offered tools that could run a command."

_FAILED = re.compile(
    r"\s*(<\w+>\s*)?\W*(error|failed|failure|invalid|unknown|cannot|could not|exception)", re.I
)
_EXIT = re.compile(r"\[exit (\d+)\]")


@dataclass(frozen=True)
class ToolCalls:
    """One request of this dialect: what the CLI offers, the results of the calls so far, and the command that
    ends the run where a text does not.
    """

    tools: Toolbox
    results: tuple[str, ...]
    workdir: str
    ending: Ending | None = None

    @classmethod
    def of(cls, request: Mapping[str, Any], workdir: str) -> ToolCalls | None:
        """The request in this dialect; None where it offers no tools."""
        offered = request.get("tools")
        if not offered:
            return None
        messages = request["messages"]
        return cls(toolbox(offered), tuple(results_of(messages)), workdir, ending(_prompts(messages)))

    def step(self, script: Script) -> Turn:
        if not self.tools.has("shell"):
            return Turn(text=NO_SHELL)
        action = next_action(Planner(script, self.tools, self.workdir), self.results)
        return self.say(script.final_message) if action is None else self._turn(action)

    def again(self) -> Turn:
        if not self.tools.has("shell"):
            return Turn(text=NO_SHELL)
        return self._turn(shell(self.tools, "ls -A", "List the directory"))

    def say(self, text: str) -> Turn:
        if self.tools.has("end"):
            name, arguments = self.tools.call("end")
        elif self.ending is not None and self.tools.has("shell"):
            name, arguments = self.tools.call("shell", command=self.ending.command, description="Finish")
        else:
            return Turn(text=text)
        return Turn(text=text, call=ToolUse(name, arguments, len(self.results)))

    def _turn(self, action: Action) -> Turn:
        return Turn(call=ToolUse(action.tool, action.arguments, len(self.results)))


@dataclass(frozen=True)
class Action:
    """One tool call. `by_shell`: its result ends with the exit code that `shell` makes it say."""

    tool: str
    arguments: dict[str, Any]
    by_shell: bool = False

    def failed(self, result: str) -> bool:
        """Whether the result tells of a failure; a result that tells nothing does not."""
        if self.by_shell:
            codes = _EXIT.findall(result)
            return bool(codes) and codes[-1] != "0"
        return _FAILED.match(result) is not None


@dataclass(frozen=True)
class Planner:
    """Lays out the actions of one script for the tools that a CLI offers. Paths are below `workdir`."""

    script: Script
    tools: Toolbox
    workdir: str

    def look(self) -> Iterator[Action]:
        """Look at what is to be changed; where nothing is, at the directory and the files of the script."""
        existing = [path for path in self.script.changed if self.script.before.get(path) is not None]
        if not existing:
            yield self.shell("ls -A", "List the directory")
            existing = sorted(path for path, text in self.script.before.items() if text is not None)
        if not existing:
            yield self.shell("cat AGENTS.md README.md 2>/dev/null || true", "Read the notes")
        for path in existing:
            yield self.read(path)

    def read(self, path: str) -> Action:
        if not self.tools.has("read"):
            return self.shell(f"cat {shlex.quote(path)}", "Read a file")
        return Action(*self.tools.call("read", path=join(self.workdir, path)))

    def reproduce(self) -> Action:
        return self.shell(self.script.reproduce, "Reproduce the problem")

    def change(self, path: str) -> Iterator[Action]:
        """The actions that bring one file to its content after the solution."""
        before, after = self.script.before.get(path), self.script.files[path]
        target = join(self.workdir, path)
        if after is None:
            yield self.overwrite(path)
        elif before and self.tools.has("edit"):
            for old, new in hunks(before, after):
                told = {
                    "path": target,
                    "old": old,
                    "new": new,
                    "description": "Change what the task asks for",
                }
                yield Action(*self.tools.call("edit", **told))
        elif self.tools.has("write"):
            yield Action(*self.tools.call("write", path=target, content=after))
        else:
            yield self.overwrite(path)

    def overwrite(self, path: str) -> Action:
        """The same through the shell, whatever the file holds by now."""
        after = self.script.files[path]
        if after is None:
            return self.shell(f"rm -f -- {shlex.quote(path)}", "Remove a file")
        folder = dirname(path)
        make = f"mkdir -p -- {shlex.quote(folder)} && " if folder else ""
        command = f"{make}printf %s {shlex.quote(after)} > {shlex.quote(path)}"
        return self.shell(command, "Write a file")

    def shell(self, command: str, description: str) -> Action:
        return shell(self.tools, command, description)


def shell(tools: Toolbox, command: str, description: str) -> Action:
    """A command that says its exit code, since not every CLI's tool result does, and ends no shell that a CLI
    keeps for the next one.
    """
    marked = f'( ( {command}\n); code=$?; echo "[exit $code]"; exit $code )'
    name, arguments = tools.call("shell", command=marked, description=description)
    return Action(name, arguments, by_shell=True)


def next_action(planner: Planner, results: Sequence[str]) -> Action | None:
    """The action after those whose results are given, in order; None when only the final message is left."""
    plan = _plan(planner)
    action = next(plan)
    for result in results:
        try:
            action = plan.send(result)
        except StopIteration:
            return None
    return action


def _plan(planner: Planner) -> Generator[Action, str, None]:
    """All actions of a run; each is answered with its result."""
    for action in planner.look():
        yield action
    yield planner.reproduce()
    for path in planner.script.changed:
        for action in planner.change(path):
            result = yield action
            if action.failed(result):
                yield planner.overwrite(path)
                break
    again = planner.reproduce()
    result = yield again
    # Only the reference is known to work: when it does not, an edit went wrong without saying so.
    if planner.script.kind == "reference" and planner.script.changed and again.failed(result):
        for path in planner.script.changed:
            yield planner.overwrite(path)
        yield planner.reproduce()


def _prompts(messages: list[Any]) -> Iterator[str]:
    """What the CLI said ahead of the model's first answer."""
    for message in messages:
        if not isinstance(message, dict) or message.get("role") == "assistant":
            return
        yield text_of(message.get("content"))


def results_of(messages: list[Any]) -> list[str]:
    """The results of all tool calls in the conversation, in order; a result that is missing is an empty
    text.
    """
    answers: dict[str, str] = {}
    asked: list[str] = []
    for message in messages:
        if not isinstance(message, dict):
            continue
        if message.get("role") == "tool":
            answers[str(message.get("tool_call_id"))] = text_of(message.get("content"))
        for call in message.get("tool_calls") or []:
            asked.append(str(call.get("id")))
    return [answers.get(call_id, "") for call_id in asked]
