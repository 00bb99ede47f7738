"""The tools of CLIs, by what they do. A CLI with other tools is served by further entries of `TOOLS`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["shell", "read", "edit", "write", "end"]

Given = str | Sequence["Given"] | Mapping[str, "Given"]


@dataclass(frozen=True)
class Tool:
    """One tool of a CLI. `arguments` maps the tool's parameter names to what they are given: `path`, `old`,
    `new`, `content`, `command` or `description`, a text in which these stand in braces, or lists and objects
    of such. A tool of kind `end` ends the run, for CLIs in which a text alone does not.
    """

    kind: Kind
    name: str
    arguments: Mapping[str, Given]

    def fits(self, schema: Mapping[str, Any]) -> bool:
        """Whether the offered tool takes these arguments and asks for no others."""
        offered = schema.get("properties", {})
        required = schema.get("required", [])
        needed = {name for name, given in self.arguments.items() if given != "description"}
        return needed <= set(offered) and set(required) <= set(self.arguments)

    def fill(self, schema: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, Any]:
        offered = schema.get("properties", {})
        return {name: _filled(given, values) for name, given in self.arguments.items() if name in offered}


def _filled(given: Given, values: Mapping[str, str]) -> Any:
    if isinstance(given, str):
        return given.format_map(values) if "{" in given else values[given]
    if isinstance(given, Mapping):
        return {name: _filled(part, values) for name, part in given.items()}
    return [_filled(part, values) for part in given]


_BLOCK = "<<<<<<< ORIGINAL\n{old}\n=======\n{new}\n>>>>>>> UPDATED"
_COMMAND = {"command": "command", "description": "description"}
_EDIT = {"file_path": "path", "old_string": "old", "new_string": "new"}

TOOLS: tuple[Tool, ...] = (
    # opencode, kilo
    Tool("shell", "bash", _COMMAND),
    Tool("read", "read", {"filePath": "path"}),
    Tool("edit", "edit", {"filePath": "path", "oldString": "old", "newString": "new"}),
    Tool("write", "write", {"filePath": "path", "content": "content"}),
    # codex
    Tool("shell", "exec_command", {"cmd": "command"}),
    # claude-code
    Tool("shell", "Bash", _COMMAND),
    Tool("read", "Read", {"file_path": "path"}),
    Tool("edit", "Edit", _EDIT),
    Tool("write", "Write", {"file_path": "path", "content": "content"}),
    # gemini-cli; qwen-code but for its edit
    Tool("shell", "run_shell_command", _COMMAND),
    Tool("read", "read_file", {"file_path": "path"}),
    Tool("edit", "replace", {**_EDIT, "instruction": "description"}),
    Tool("write", "write_file", {"file_path": "path", "content": "content"}),
    # qwen-code, mistral-vibe
    Tool("edit", "edit", _EDIT),
    # mistral-vibe, whose shell is opencode's by name
    Tool("read", "read_file", {"path": "path"}),
    Tool("write", "write_file", {"path": "path", "content": "content"}),
    # pi
    Tool("read", "read", {"path": "path"}),
    Tool("edit", "edit", {"path": "path", "edits": ({"oldText": "old", "newText": "new"},)}),
    Tool("write", "write", {"path": "path", "content": "content"}),
    # copilot
    Tool("read", "view", {"path": "path"}),
    Tool("edit", "edit", {"path": "path", "old_str": "old", "new_str": "new"}),
    Tool("write", "create", {"path": "path", "file_text": "content"}),
    # cline
    Tool("shell", "run_commands", {"commands": ("command",)}),
    Tool("read", "read_files", {"files": ({"path": "path"},)}),
    Tool("edit", "editor", {"path": "path", "old_text": "old", "new_text": "new"}),
    Tool("write", "editor", {"path": "path", "new_text": "content"}),
    # nanocoder, which reads and writes as mistral-vibe does
    Tool("shell", "execute_bash", {"command": "command"}),
    Tool("edit", "string_replace", {"path": "path", "old_str": "old", "new_str": "new"}),
    # grok-cli
    Tool("read", "view_file", {"path": "path"}),
    Tool("edit", "str_replace_editor", {"path": "path", "old_str": "old", "new_str": "new"}),
    Tool("write", "create_file", {"path": "path", "content": "content"}),
    # continue, whose shell and edit are claude-code's by name
    Tool("read", "Read", {"filepath": "path"}),
    Tool("write", "Write", {"filepath": "path", "content": "content"}),
    # droid, which reads as claude-code does
    Tool("shell", "Execute", {"command": "command", "summary": "description"}),
    Tool("edit", "Edit", {"file_path": "path", "old_str": "old", "new_str": "new"}),
    Tool("write", "Create", {"file_path": "path", "content": "content"}),
    # gptme, which reads through its shell
    Tool("shell", "shell", {"command": "command"}),
    Tool("edit", "patch", {"path": "path", "patch": _BLOCK}),
    Tool("write", "save", {"path": "path", "content": "content"}),
    Tool("end", "complete", {}),
)


@dataclass(frozen=True)
class Ending:
    """How a run ends where neither a text nor a tool of its own does: by a command that the prompt names."""

    asked: str
    command: str


ENDINGS: tuple[Ending, ...] = (
    # mini-swe-agent
    Ending(
        "finish your work by issuing the following command: `echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT`",
        "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",
    ),
)


@dataclass(frozen=True)
class Toolbox:
    """The offered tools that are known, one a kind, each with its schema."""

    tools: Mapping[Kind, tuple[Tool, Mapping[str, Any]]]

    def has(self, kind: Kind) -> bool:
        return kind in self.tools

    def call(self, kind: Kind, **values: str) -> tuple[str, dict[str, Any]]:
        """Name and arguments of a call of that kind."""
        tool, schema = self.tools[kind]
        return tool.name, tool.fill(schema, values)


def ending(prompts: Iterable[str]) -> Ending | None:
    """The ending that the prompts ask for; None where the model ends by saying no more than a text."""
    texts = tuple(prompts)
    return next((known for known in ENDINGS if any(known.asked in text for text in texts)), None)


def toolbox(offered: Iterable[Any]) -> Toolbox:
    """What of the request's `tools` is known, by name and schema; the first fitting entry of a kind is
    taken.
    """
    schemas: dict[str, Mapping[str, Any]] = {}
    for tool in offered:
        function = tool.get("function") if isinstance(tool, dict) else None
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            schemas[function["name"]] = function.get("parameters") or {}
    found: dict[Kind, tuple[Tool, Mapping[str, Any]]] = {}
    for tool in TOOLS:
        schema = schemas.get(tool.name)
        if tool.kind not in found and schema is not None and tool.fits(schema):
            found[tool.kind] = (tool, schema)
    return Toolbox(found)
