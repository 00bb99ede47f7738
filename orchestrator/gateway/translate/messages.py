"""From Anthropic's messages to chat completions: requests."""

from __future__ import annotations

import json
from typing import Any

from orchestrator.gateway.translate.contract import Asked, Dropped, Fault, Translated
from orchestrator.gateway.translate.conversation import (
    Conversation,
    Part,
    arguments_text,
    chosen,
    function,
    image_part,
    json_format,
    media_part,
    text_part,
)
from orchestrator.gateway.translate.messages_answer import MessagesWriter, error_of
from orchestrator.gateway.wire import Path
from orchestrator.gateway.wires.shared import member, objects, text_of

_SAME = ("model", "stream", "temperature", "top_p", "max_tokens")
_KNOWN = frozenset(
    (
        *_SAME,
        *("system", "messages", "tools", "tool_choice", "stop_sequences", "output_config", "output_format"),
    )
)
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
"""Of reasoning, as chat completions name them."""

ERROR_MARK = "Error: "
"""Before a tool's result that the CLI marks as an error, for which chat has no mark."""


class FromMessages:
    """`Translation` of messages."""

    def serves(self, path: Path) -> bool:
        return path.upstream == "/messages"

    def request(self, asked: Asked) -> Translated:
        request = asked.request
        dropped = Dropped()
        dropped.rest(request, _KNOWN)
        made = {name: request[name] for name in _SAME if request.get(name) is not None}
        made["messages"] = _messages(request, dropped)
        if request.get("stop_sequences"):
            made["stop"] = request["stop_sequences"]
        made |= _output(request, dropped)
        if tools := _tools(request.get("tools"), dropped):
            made["tools"] = tools
            made |= _choice(request.get("tool_choice"))
        return Translated(made, tuple(dropped.names), MessagesWriter(request))

    def error_body(self, fault: Fault) -> bytes:
        return json.dumps(error_of(fault)).encode()


def _output(request: dict[str, Any], dropped: Dropped) -> dict[str, Any]:
    """Effort of reasoning and form of the answer."""
    made: dict[str, Any] = {}
    config = request.get("output_config")
    effort = member(config, "effort")
    if effort in _EFFORTS:
        made["reasoning_effort"] = effort
    elif effort is not None:
        dropped.add("output_config.effort")
    form = member(config, "format") or request.get("output_format")
    if member(form, "type") == "json_schema":
        made["response_format"] = json_format(member(form, "schema"))
    elif form is not None:
        dropped.add("output_config.format")
    if isinstance(config, dict):
        dropped.rest(config, frozenset(("effort", "format")), "output_config.")
    return made


def _messages(request: dict[str, Any], dropped: Dropped) -> list[dict[str, Any]]:
    talk = Conversation()
    talk.system(_joined(_parts(request.get("system"), dropped)))
    for message in objects(request.get("messages")):
        content = message.get("content")
        match message.get("role"):
            case "assistant":
                _assistant(talk, content, dropped)
            case "system":
                talk.system(_joined(_parts(content, dropped)))
            case _:
                _user(talk, content, dropped)
    return talk.finished()


def _assistant(talk: Conversation, content: Any, dropped: Dropped) -> None:
    if isinstance(content, str):
        talk.said(content)
    for block in objects(content):
        match block.get("type"):
            case "text":
                talk.said(text_of(block.get("text")))
            case "tool_use":
                given = arguments_text(block.get("input"))
                talk.called(text_of(block.get("id")), text_of(block.get("name")), given)
            case kind:
                dropped.add(f"messages[{kind}]")


def _user(talk: Conversation, content: Any, dropped: Dropped) -> None:
    """Results first: on chat they stand directly behind the calls."""
    blocks = objects(content)
    for block in blocks:
        if block.get("type") == "tool_result":
            parts = _parts(block.get("content"), dropped)
            if block.get("is_error") is True:
                parts = [text_part(ERROR_MARK + _joined(parts)), *(p for p in parts if p["type"] != "text")]
            talk.result(text_of(block.get("tool_use_id")), parts)
    rest = [block for block in blocks if block.get("type") != "tool_result"]
    talk.user(_parts(content if isinstance(content, str) else rest, dropped))


def _joined(parts: list[Part]) -> str:
    return "\n\n".join(part["text"] for part in parts if part["type"] == "text")


def _parts(content: Any, dropped: Dropped) -> list[Part]:
    if isinstance(content, str):
        return [text_part(content)] if content else []
    made = [_part(block, dropped) for block in objects(content)]
    return [part for part in made if part is not None]


def _part(block: dict[str, Any], dropped: Dropped) -> Part | None:
    kind, source = block.get("type"), block.get("source")
    if "cache_control" in block:
        dropped.add("cache_control")
    made: Part | None = None
    if kind == "text":
        made = text_part(text_of(block.get("text")))
    elif kind == "image" and member(source, "type") == "url":
        made = image_part(text_of(member(source, "url")))
    elif kind in ("image", "document") and member(source, "type") == "base64":
        title = text_of(block.get("title")) or None
        made = media_part(text_of(member(source, "media_type")), text_of(member(source, "data")), title)
    elif kind == "document" and member(source, "type") == "text":
        made = text_part(text_of(member(source, "data")))
    if made is None:
        dropped.add(f"messages[{kind}]")
    return made


def _tools(offered: Any, dropped: Dropped) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for tool in objects(offered):
        if tool.get("type") not in (None, "custom"):
            dropped.add(f"tools[{tool['type']}]")
            continue
        if "cache_control" in tool:
            dropped.add("cache_control")
        name = text_of(tool.get("name"))
        made.append(function(name, tool.get("description"), tool.get("input_schema"), tool.get("strict")))
    return made


def _choice(choice: Any) -> dict[str, Any]:
    made: dict[str, Any] = {}
    match member(choice, "type"):
        case "any":
            made["tool_choice"] = "required"
        case "tool":
            made["tool_choice"] = chosen(text_of(member(choice, "name")))
        case "auto" | "none" as same:
            made["tool_choice"] = same
    if member(choice, "disable_parallel_tool_use") is True:
        made["parallel_tool_calls"] = False
    return made
