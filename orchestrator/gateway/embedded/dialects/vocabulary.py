"""The tools of CLIs, by what they do. A CLI with other tools is served by further entries of `TOOLS`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["shell", "read", "edit", "write"]

Given = str | Sequence["Given"] | Mapping[str, "Given"]


@dataclass(frozen=True)
class Tool:
    """One tool of a CLI. `arguments` maps the tool's parameter names to what they are given: `path`, `old`,
    `new`, `content`, `command` or `description`, or lists and objects of such."""

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
        return values[given]
    if isinstance(given, Mapping):
        return {name: _filled(part, values) for name, part in given.items()}
    return [_filled(part, values) for part in given]


_COMMAND = {"command": "command", "description": "description"}

TOOLS: tuple[Tool, ...] = (
    # opencode
    Tool("shell", "bash", _COMMAND),
    Tool("read", "read", {"filePath": "path"}),
    Tool("edit", "edit", {"filePath": "path", "oldString": "old", "newString": "new"}),
    Tool("write", "write", {"filePath": "path", "content": "content"}),
    # pi
    Tool("read", "read", {"path": "path"}),
    Tool("edit", "edit", {"path": "path", "edits": ({"oldText": "old", "newText": "new"},)}),
    Tool("write", "write", {"path": "path", "content": "content"}),
    # qwen-code
    Tool("shell", "run_shell_command", _COMMAND),
    Tool("read", "read_file", {"file_path": "path"}),
    Tool("edit", "edit", {"file_path": "path", "old_string": "old", "new_string": "new"}),
    Tool("write", "write_file", {"file_path": "path", "content": "content"}),
    # copilot
    Tool("read", "view", {"path": "path"}),
    Tool("edit", "edit", {"path": "path", "old_str": "old", "new_str": "new"}),
    Tool("write", "create", {"path": "path", "file_text": "content"}),
    # cline
    Tool("shell", "run_commands", {"commands": ("command",)}),
    Tool("read", "read_files", {"files": ({"path": "path"},)}),
    Tool("edit", "editor", {"path": "path", "old_text": "old", "new_text": "new"}),
    Tool("write", "editor", {"path": "path", "new_text": "content"}),
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
