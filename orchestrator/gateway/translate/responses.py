"""From OpenAI's responses to chat completions: requests."""

from __future__ import annotations

import json
from typing import Any

from orchestrator.gateway.translate.contract import Asked, Dropped, Fault, Translated, TranslationError
from orchestrator.gateway.translate.conversation import (
    Conversation,
    Part,
    arguments_text,
    image_part,
    json_format,
    text_part,
)
from orchestrator.gateway.translate.responses_answer import ResponsesWriter
from orchestrator.gateway.translate.responses_tools import Tools
from orchestrator.gateway.wire import Path
from orchestrator.gateway.wires.shared import member, objects, text_of

_SAME = ("model", "stream", "temperature", "top_p", "service_tier", "user")
_KNOWN = frozenset(
    (
        *_SAME,
        *("input", "instructions", "max_output_tokens", "reasoning", "text", "tools", "tool_choice"),
        *("parallel_tool_calls", "previous_response_id", "conversation", "prompt", "background"),
    )
)
_STATEFUL = ("previous_response_id", "conversation", "prompt", "background")
"""What needs an endpoint that remembers."""

_TEXTS = ("input_text", "output_text", "text", "summary_text")


class FromResponses:
    """`Translation` of responses."""

    def serves(self, path: Path) -> bool:
        return path.upstream == "/responses"

    def request(self, asked: Asked) -> Translated:
        request = asked.request
        for name in _STATEFUL:
            if request.get(name):
                raise TranslationError(f"{name} needs an endpoint that keeps responses")
        dropped = Dropped()
        dropped.rest(request, _KNOWN)
        tools = Tools.of(request.get("tools"), dropped)
        made = {name: request[name] for name in _SAME if request.get(name) is not None}
        made["messages"] = _messages(request, tools, dropped)
        if request.get("max_output_tokens") is not None:
            made["max_tokens"] = request["max_output_tokens"]
        made |= _generation(request, dropped)
        if tools.functions:
            made["tools"] = tools.functions
            made |= tools.choice(request.get("tool_choice"), dropped)
            if isinstance(request.get("parallel_tool_calls"), bool):
                made["parallel_tool_calls"] = request["parallel_tool_calls"]
        return Translated(made, tuple(dropped.names), ResponsesWriter(request, tools))

    def error_body(self, fault: Fault) -> bytes:
        return json.dumps({"error": error_of(fault)}).encode()


_CODES = {
    "rate_limited": ("rate_limit_exceeded", "rate_limit_exceeded"),
    "context_overflow": ("invalid_request_error", "context_length_exceeded"),
    "bad_request": ("invalid_request_error", "invalid_request_error"),
    "key_refused": ("invalid_request_error", "invalid_api_key"),
}


def error_of(fault: Fault) -> dict[str, Any]:
    """An error as this wire writes it."""
    kind, code = _CODES.get(fault.category, ("server_error", "server_error"))
    return {"message": fault.message, "type": kind, "param": None, "code": code}


def _generation(request: dict[str, Any], dropped: Dropped) -> dict[str, Any]:
    made: dict[str, Any] = {}
    reasoning, text = request.get("reasoning"), request.get("text")
    if isinstance(effort := member(reasoning, "effort"), str):
        made["reasoning_effort"] = effort
    if isinstance(reasoning, dict):
        dropped.rest(reasoning, frozenset(("effort",)), "reasoning.")
    if isinstance(verbosity := member(text, "verbosity"), str):
        made["verbosity"] = verbosity
    form = member(text, "format")
    match member(form, "type"):
        case "json_schema":
            stated = (member(form, name) for name in ("schema", "name", "strict", "description"))
            made["response_format"] = json_format(*stated)
        case "json_object":
            made["response_format"] = {"type": "json_object"}
    return made


def _messages(request: dict[str, Any], tools: Tools, dropped: Dropped) -> list[dict[str, Any]]:
    talk = Conversation()
    talk.system(text_of(request.get("instructions")))
    given = request.get("input")
    if isinstance(given, str):
        talk.user([text_part(given)])
    for item in objects(given):
        _item(talk, item, tools, dropped)
    return talk.finished()


def _item(talk: Conversation, item: dict[str, Any], tools: Tools, dropped: Dropped) -> None:
    kind = str(item.get("type", "message"))
    call_id = text_of(item.get("call_id")) or text_of(item.get("id"))
    if kind == "message":
        _message(talk, item, dropped)
    elif kind == "function_call":
        name = tools.flat(item.get("namespace"), text_of(item.get("name")))
        talk.called(call_id, name, arguments_text(item.get("arguments")))
    elif kind == "custom_tool_call":
        given = json.dumps({"input": text_of(item.get("input"))}, ensure_ascii=False)
        talk.called(call_id, tools.flat(item.get("namespace"), text_of(item.get("name"))), given)
    elif hosted := tools.of_item(kind):
        talk.called(call_id, hosted.name, arguments_text(item.get(hosted.member)))
    elif kind.endswith("_call_output"):
        talk.result(call_id, _output(item.get("output"), dropped))
    elif kind == "item_reference":
        raise TranslationError("item_reference needs an endpoint that keeps responses")
    else:
        dropped.add(f"input[{kind}]")


def _message(talk: Conversation, item: dict[str, Any], dropped: Dropped) -> None:
    parts = _parts(item.get("content"), dropped)
    text = "\n\n".join(part["text"] for part in parts if part["type"] == "text")
    match item.get("role"):
        case "system" | "developer":
            talk.system(text)
        case "assistant":
            talk.said(text)
        case _:
            talk.user(parts)


def _output(output: Any, dropped: Dropped) -> list[Part]:
    """A tool's result: a text, parts, or what a shell printed, which goes up as its JSON."""
    shells = [part for part in objects(output) if "stdout" in part or "stderr" in part]
    if shells or isinstance(output, dict):
        return [text_part(json.dumps(output, ensure_ascii=False))]
    return _parts(output, dropped)


def _parts(content: Any, dropped: Dropped) -> list[Part]:
    if isinstance(content, str):
        return [text_part(content)]
    made = [_part(part, dropped) for part in objects(content)]
    return [part for part in made if part is not None]


def _part(part: dict[str, Any], dropped: Dropped) -> Part | None:
    kind = part.get("type")
    if kind in _TEXTS:
        return text_part(text_of(part.get("text")))
    if kind == "refusal":
        return text_part(text_of(part.get("refusal")))
    if kind == "input_image" and isinstance(url := part.get("image_url"), str):
        return image_part(url, part.get("detail"))
    if kind == "input_file" and isinstance(part.get("file_data"), str):
        named = {name: part[name] for name in ("filename", "file_data") if part.get(name)}
        return {"type": "file", "file": named}
    if kind == "input_audio" and isinstance(part.get("input_audio"), dict):
        return {"type": "input_audio", "input_audio": part["input_audio"]}
    dropped.add(f"content[{kind}]")
    return None
