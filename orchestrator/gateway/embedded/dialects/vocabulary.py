"""The tools of CLIs, by what they do. A CLI with other tools is served by further entries of `TOOLS`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["shell", "read", "edit", "write"]


@dataclass(frozen=True)
class Tool:
    """One tool of a CLI. `arguments` maps the tool's parameter names to what they are given: `path`, `old`,
    `new`, `content`, `command` or `description`."""

    kind: Kind
    name: str
    arguments: Mapping[str, str]

    def fits(self, schema: Mapping[str, Any]) -> bool:
        """Whether the offered tool takes these arguments and asks for no others."""
        offered = schema.get("properties", {})
        required = schema.get("required", [])
        needed = {name for name, given in self.arguments.items() if given != "description"}
        return needed <= set(offered) and set(required) <= set(self.arguments)

    def fill(self, schema: Mapping[str, Any], values: Mapping[str, str]) -> dict[str, str]:
        offered = schema.get("properties", {})
        return {name: values[given] for name, given in self.arguments.items() if name in offered}


_COMMAND = {"command": "command", "description": "description"}

TOOLS: tuple[Tool, ...] = (
    # opencode
    Tool("shell", "bash", _COMMAND),
    Tool("read", "read", {"filePath": "path"}),
    Tool("edit", "edit", {"filePath": "path", "oldString": "old", "newString": "new"}),
    Tool("write", "write", {"filePath": "path", "content": "content"}),
    # codex
    Tool("shell", "exec_command", {"cmd": "command"}),
    # claude-code
    Tool("shell", "Bash", _COMMAND),
    Tool("read", "Read", {"file_path": "path"}),
    Tool("edit", "Edit", {"file_path": "path", "old_string": "old", "new_string": "new"}),
    Tool("write", "Write", {"file_path": "path", "content": "content"}),
    # gemini-cli
    Tool("shell", "run_shell_command", _COMMAND),
    Tool("read", "read_file", {"file_path": "path"}),
    Tool(
        "edit",
        "replace",
        {"file_path": "path", "old_string": "old", "new_string": "new", "instruction": "description"},
    ),
    Tool("write", "write_file", {"file_path": "path", "content": "content"}),
)


@dataclass(frozen=True)
class Toolbox:
    """The offered tools that are known, one a kind, each with its schema."""

    tools: Mapping[Kind, tuple[Tool, Mapping[str, Any]]]

    def has(self, kind: Kind) -> bool:
        return kind in self.tools

    def call(self, kind: Kind, **values: str) -> tuple[str, dict[str, str]]:
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
