"""From Gemini's generateContent to chat completions: requests."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from orchestrator.gateway.translate.contract import Asked, Dropped, Fault, Translated, TranslationError
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
from orchestrator.gateway.translate.gemini_answer import GeminiWriter, error_of
from orchestrator.gateway.translate.gemini_schema import json_schema
from orchestrator.gateway.wire import Path
from orchestrator.gateway.wires.gemini import spelled
from orchestrator.gateway.wires.shared import member, objects, text_of

_KNOWN = frozenset(
    (
        *("contents", "systemInstruction", "system_instruction", "tools", "toolConfig", "tool_config"),
        *("generationConfig", "generation_config", "model", "cachedContent", "cached_content"),
    )
)
_CONFIG = {
    "temperature": "temperature",
    "topP": "top_p",
    "maxOutputTokens": "max_tokens",
    "stopSequences": "stop",
    "seed": "seed",
    "presencePenalty": "presence_penalty",
    "frequencyPenalty": "frequency_penalty",
}
_FORMS = ("responseMimeType", "responseSchema", "responseJsonSchema")


class FromGemini:
    """`Translation` of generateContent. The path says whether the answer is streamed, and the query how."""

    def serves(self, path: Path) -> bool:
        return path.upstream.endswith((":generateContent", ":streamGenerateContent"))

    def request(self, asked: Asked) -> Translated:
        request = asked.request
        if spelled(request, "cachedContent"):
            raise TranslationError("cachedContent needs an endpoint that keeps contents")
        dropped = Dropped()
        dropped.rest(request, _KNOWN)
        made: dict[str, Any] = {"messages": _messages(request, dropped)}
        streamed = asked.path.upstream.endswith(":streamGenerateContent")
        if streamed:
            made["stream"] = True
        made |= _generation(spelled(request, "generationConfig"), dropped)
        offered = _tools(request.get("tools"), dropped)
        choice, allowed = _choice(spelled(spelled(request, "toolConfig"), "functionCallingConfig"))
        if allowed:
            offered = [tool for tool in offered if tool["function"]["name"] in allowed]
        if offered:
            made |= {"tools": offered, **choice}
        listed = streamed and parse_qs(asked.query).get("alt") != ["sse"]
        return Translated(made, tuple(dropped.names), GeminiWriter(listed=listed))

    def error_body(self, fault: Fault) -> bytes:
        return json.dumps(error_of(fault)).encode()


def _generation(config: Any, dropped: Dropped) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, on_chat in _CONFIG.items():
        if (value := spelled(config, name)) not in (None, []):
            made[on_chat] = value
    schema = spelled(config, "responseJsonSchema")
    if schema is None and (stated := spelled(config, "responseSchema")) is not None:
        schema = json_schema(stated)
    if schema is not None:
        made["response_format"] = json_format(schema)
    elif spelled(config, "responseMimeType") == "application/json":
        made["response_format"] = {"type": "json_object"}
    thinking = spelled(config, "thinkingConfig")
    if level := text_of(spelled(thinking, "thinkingLevel")):
        made["reasoning_effort"] = level.lower()
    for name in thinking if isinstance(thinking, dict) else ():
        if name not in ("thinkingLevel", "thinking_level"):
            dropped.add(f"generationConfig.thinkingConfig.{name}")
    if isinstance(config, dict):
        known = {*_CONFIG, *_FORMS, "thinkingConfig"}
        both = frozenset(known | {_underscored(name) for name in known})
        dropped.rest(config, both, "generationConfig.")
    return made


@dataclass
class _Open:
    """Calls that have no result yet. Most have no id of their own: a result belongs to the first of its
    name.
    """

    calls: list[tuple[str, str]] = field(default_factory=list)
    count: int = 0

    def call(self, stated: str, name: str) -> str:
        call_id = stated or f"call_{self.count}"
        self.count += 1
        self.calls.append((call_id, name))
        return call_id

    def result(self, stated: str, name: str) -> str:
        same_id = [call for call in self.calls if call[0] == stated]
        same_name = [call for call in self.calls if call[1] == name]
        for call in [*same_id, *same_name][:1]:
            self.calls.remove(call)
            return call[0]
        return stated or name


def _messages(request: dict[str, Any], dropped: Dropped) -> list[dict[str, Any]]:
    talk, unanswered = Conversation(), _Open()
    system = spelled(request, "systemInstruction")
    if isinstance(system, str):
        talk.system(system)
    else:
        parts = [part for part in objects(member(system, "parts")) if "text" in part]
        talk.system("\n\n".join(text_of(part["text"]) for part in parts))
    for content in objects(request.get("contents")):
        parts = objects(content.get("parts"))
        if content.get("role") == "model":
            _said(talk, parts, unanswered, dropped)
        else:
            _user(talk, parts, unanswered, dropped)
    return talk.finished()


def _said(talk: Conversation, parts: list[dict[str, Any]], unanswered: _Open, dropped: Dropped) -> None:
    texts: list[str] = []
    for part in parts:
        call = spelled(part, "functionCall")
        if spelled(part, "thoughtSignature") is not None:
            dropped.add("contents[thoughtSignature]")
        if part.get("thought") is True:
            dropped.add("contents[thought]")
        elif isinstance(call, dict):
            name = text_of(call.get("name"))
            call_id = unanswered.call(text_of(call.get("id")), name)
            talk.called(call_id, name, arguments_text(call.get("args")))
        elif "text" in part:
            texts.append(text_of(part["text"]))
        else:
            dropped.add(f"contents[{next(iter(part), '')}]")
    if text := "".join(texts):
        talk.said(text)


def _user(talk: Conversation, parts: list[dict[str, Any]], unanswered: _Open, dropped: Dropped) -> None:
    """Results first: on chat they stand directly behind the calls."""
    rest: list[Part] = []
    for part in parts:
        result = spelled(part, "functionResponse")
        if isinstance(result, dict):
            call_id = unanswered.result(text_of(result.get("id")), text_of(result.get("name")))
            inner = [_part(held, dropped) for held in objects(result.get("parts"))]
            text = text_part(_result(result.get("response")))
            talk.result(call_id, [text, *(held for held in inner if held is not None)])
        elif made := _part(part, dropped):
            rest.append(made)
    talk.user(rest)


def _result(response: Any) -> str:
    """A tool's result: its one text where `output` or `error` holds all of it, else its JSON."""
    for name, mark in (("output", ""), ("error", "Error: ")):
        if isinstance(response, dict) and list(response) == [name] and isinstance(response[name], str):
            return f"{mark}{response[name]}"
    return json.dumps(response, ensure_ascii=False)


def _part(part: dict[str, Any], dropped: Dropped) -> Part | None:
    inline, file = spelled(part, "inlineData"), spelled(part, "fileData")
    made: Part | None = None
    if isinstance(part.get("text"), str):
        made = text_part(part["text"])
    elif isinstance(inline, dict):
        media_type = text_of(spelled(inline, "mimeType"))
        made = media_part(media_type, text_of(inline.get("data")), spelled(inline, "displayName"))
    elif isinstance(file, dict) and text_of(spelled(file, "mimeType")).startswith("image/"):
        made = image_part(text_of(spelled(file, "fileUri")))
    if made is None:
        dropped.add(f"contents[{next(iter(part), '')}]")
    return made


def _tools(offered: Any, dropped: Dropped) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for tool in objects(offered):
        for name, value in tool.items():
            if name not in ("functionDeclarations", "function_declarations"):
                dropped.add(f"tools[{name}]")
                continue
            for declared in objects(value):
                schema = spelled(declared, "parametersJsonSchema")
                if schema is None and declared.get("parameters") is not None:
                    schema = json_schema(declared["parameters"])
                made.append(function(text_of(declared.get("name")), declared.get("description"), schema))
    return made


def _choice(config: Any) -> tuple[dict[str, Any], frozenset[str]]:
    """The choice of tools, and the names that alone may be chosen; none where all may."""
    names = spelled(config, "allowedFunctionNames")
    allowed = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    match text_of(member(config, "mode")).upper():
        case "ANY":
            choice: Any = chosen(allowed[0]) if len(allowed) == 1 else "required"
        case "NONE":
            choice = "none"
        case "AUTO" | "VALIDATED":
            choice = "auto"
        case _:
            return {}, frozenset()
    return {"tool_choice": choice}, frozenset(allowed)


def _underscored(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
