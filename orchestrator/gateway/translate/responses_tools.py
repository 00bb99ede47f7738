"""The tools of responses on chat completions, which have functions alone.

A function stays one; a function of a namespace gets its name into its own. A custom tool, whose input is a
free text, becomes a function of one text; a tool that the CLI itself runs but the wire knows by type (a
shell, a patch) becomes a function of what its call holds. What only the endpoint can run is left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from orchestrator.gateway.translate.contract import Dropped
from orchestrator.gateway.translate.conversation import chosen, function
from orchestrator.gateway.wires.shared import member, objects, text_of

NAME_MAX = 64
"""Characters that a function's name may have on chat completions."""

_MARK = 8

_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}


@dataclass(frozen=True)
class Hosted:
    """A tool that the wire knows by its type and the CLI runs: `member` of its call's item holds what is
    asked.
    """

    name: str
    item: str
    member: str
    description: str
    parameters: Mapping[str, Any]


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


_HOSTED = (
    Hosted(
        "local_shell",
        "local_shell_call",
        "action",
        "Runs a program on the user's machine.",
        _object(
            ["command"],
            command=_TEXTS,
            working_directory=_TEXT,
            timeout_ms={"type": "integer"},
            env={"type": "object", "additionalProperties": _TEXT},
        ),
    ),
    Hosted(
        "shell",
        "shell_call",
        "action",
        "Runs shell commands on the user's machine.",
        _object(
            ["commands"],
            commands=_TEXTS,
            timeout_ms={"type": "integer"},
            max_output_length={"type": "integer"},
        ),
    ),
    Hosted(
        "apply_patch",
        "apply_patch_call",
        "operation",
        "Creates, updates or deletes one file. `diff` is a diff in the V4A format.",
        _object(
            ["type", "path"],
            type={"type": "string", "enum": ["create_file", "update_file", "delete_file"]},
            path=_TEXT,
            diff=_TEXT,
        ),
    ),
)


@dataclass(frozen=True)
class Tool:
    """What a function of chat is on this wire."""

    kind: Literal["function", "custom", "hosted"]
    name: str
    namespace: str | None = None
    hosted: Hosted | None = None


@dataclass
class Tools:
    """The tools of one request: `functions` as chat gets them, `known` what each of them is here."""

    functions: list[dict[str, Any]] = field(default_factory=list)
    known: dict[str, Tool] = field(default_factory=dict)

    @classmethod
    def of(cls, offered: Any, dropped: Dropped) -> Tools:
        tools = cls()
        for tool in objects(offered):
            tools._offer(tool, None, dropped)
        return tools

    def _offer(self, tool: dict[str, Any], namespace: str | None, dropped: Dropped) -> None:
        kind, name = tool.get("type"), text_of(tool.get("name"))
        hosted = next((hosted for hosted in _HOSTED if hosted.name == kind), None)
        if kind == "function":
            made = function(
                flat_name(namespace, name),
                tool.get("description"),
                tool.get("parameters"),
                tool.get("strict"),
            )
            self._add(made, Tool("function", name, namespace))
        elif kind == "custom":
            made = function(flat_name(namespace, name), _described(tool), _object(["input"], input=_TEXT))
            self._add(made, Tool("custom", name, namespace))
        elif kind == "namespace" and namespace is None:
            for inner in objects(tool.get("tools")):
                self._offer(inner, name, dropped)
        elif hosted is not None:
            made = function(hosted.name, hosted.description, dict(hosted.parameters))
            self._add(made, Tool("hosted", hosted.name, hosted=hosted))
        else:
            dropped.add(f"tools[{kind}]")

    def _add(self, made: dict[str, Any], tool: Tool) -> None:
        self.functions.append(made)
        self.known[made["function"]["name"]] = tool

    def what(self, name: str) -> Tool:
        """What a function is that the model called; one that was not offered is taken for a function."""
        return self.known.get(name) or Tool("function", name)

    def flat(self, namespace: Any, name: str) -> str:
        return flat_name(namespace if isinstance(namespace, str) else None, name)

    def of_item(self, kind: str) -> Hosted | None:
        """The tool that an item of a conversation is a call of."""
        return next((hosted for hosted in _HOSTED if hosted.item == kind), None)

    def choice(self, choice: Any, dropped: Dropped) -> dict[str, Any]:
        """The request's `tool_choice` on chat; {} where it says nothing that chat can say."""
        if isinstance(choice, str):
            return {"tool_choice": choice}
        kind = text_of(member(choice, "type"))
        if kind in ("function", "custom"):
            name = self.flat(member(choice, "namespace"), text_of(member(choice, "name")))
            return {"tool_choice": chosen(name)}
        if kind in self.known:
            return {"tool_choice": chosen(kind)}
        if kind == "allowed_tools":
            dropped.add("tool_choice.tools")
            return {"tool_choice": text_of(member(choice, "mode")) or "auto"}
        if choice is not None:
            dropped.add(f"tool_choice[{kind}]")
        return {}


def flat_name(namespace: str | None, name: str) -> str:
    """The name of a function, with that of its namespace; what is too long ends in a mark of the whole."""
    whole = f"{namespace}__{name}" if namespace else name
    if len(whole) <= NAME_MAX:
        return whole
    mark = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:_MARK]
    return f"{whole[: NAME_MAX - _MARK - 1]}_{mark}"


def free_text(arguments: str) -> str:
    """The input of a custom tool from a function's arguments; arguments of another form are the input."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments
    given = member(value, "input")
    return given if isinstance(given, str) else arguments


def _described(tool: dict[str, Any]) -> str:
    """A custom tool's description, with the grammar that its input has to follow."""
    text, form = text_of(tool.get("description")), tool.get("format")
    if member(form, "type") != "grammar":
        return text
    syntax, definition = text_of(member(form, "syntax")), text_of(member(form, "definition"))
    grammar = f"`input` follows this {syntax} grammar:\n{definition}"
    return "\n\n".join(filter(None, (text, grammar)))
