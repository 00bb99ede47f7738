"""Tool calls and the final message, read from the wire: what every CLI that calls tools has in common."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.gateway.chat import first_choice, text_of
from orchestrator.gateway.evidence import WireBody
from orchestrator.gateway.jsontext import canonical
from orchestrator.gateway.sse import event_data, split_events
from scorers.evidence import FinalMessage, ModelCall, ToolCall

TEXT_MAX = 64 << 10
"""Characters of arguments, of a result and of the final message that are kept."""


@dataclass
class _Asked:
    """A tool call that a response asked for, until its result is seen."""

    call_id: str
    name: str
    arguments: str
    start: float
    end: float | None = None
    result: str | None = None

    @property
    def key(self) -> tuple[str, str]:
        return _key(self.name, self.arguments)


def tool_calls(wire: Iterable[WireBody], calls: Sequence[ModelCall]) -> list[ToolCall]:
    """The tool calls of a cell, by start.

    `start` is the end of the response that asked; `end` the start of the first request that carries the
    result, None when none does. A CLI that gives calls ids of its own is followed by name and arguments.
    """
    times = {call.index: call for call in calls}
    bodies = sorted((body for body in wire if body.index in times), key=lambda body: body.index)
    asked: list[_Asked] = []
    # Responses and requests in the order of time: a request can only answer what was asked before it.
    events = [(times[body.index].start, 1, body) for body in bodies]
    events += [(times[body.index].end, 0, body) for body in bodies]
    for time, is_request, body in sorted(events, key=lambda event: event[:2]):
        if is_request:
            _answer(asked, body.messages, time)
        else:
            asked += [_Asked(*call, start=time) for call in _calls_of(response_message(body.response))]
    return [
        ToolCall(
            call_id=call.call_id,
            name=call.name,
            arguments=call.arguments[:TEXT_MAX],
            start=call.start,
            end=call.end,
            result=None if call.result is None else call.result[:TEXT_MAX],
        )
        for call in asked
    ]


def final_message(wire: Iterable[WireBody], calls: Sequence[ModelCall]) -> FinalMessage:
    """The last text that the model said on the main thread; source `none` when it said nothing there."""
    main = {call.index for call in calls if call.main}
    for body in sorted(wire, key=lambda body: body.index, reverse=True):
        if body.index in main:
            text = text_of(response_message(body.response).get("content")).strip()
            if text:
                return FinalMessage(text=text[:TEXT_MAX], source="wire", truncated=len(text) > TEXT_MAX)
    return FinalMessage(text="", source="none")


def response_message(response: Any) -> dict[str, Any]:
    """The assistant's message of a stored response, put together from its deltas when it was streamed; else
    {}.
    """
    if isinstance(response, dict):
        message = first_choice(response).get("message")
        return message if isinstance(message, dict) else {}
    return _assembled(response) if isinstance(response, str) else {}


def _assembled(stream: str) -> dict[str, Any]:
    content: list[str] = []
    refusal: list[str] = []
    calls: dict[int, dict[str, Any]] = {}
    for event in split_events(stream.encode()):
        delta = _delta(event)
        content.append(text_of(delta.get("content")))
        refusal.append(text_of(delta.get("refusal")))
        for part in delta.get("tool_calls") or []:
            if isinstance(part, dict):
                _add_part(calls, part)
    return {
        "role": "assistant",
        "content": "".join(content) or None,
        "refusal": "".join(refusal) or None,
        "tool_calls": [calls[index] for index in sorted(calls)],
    }


def _delta(event: bytes) -> dict[str, Any]:
    try:
        chunk = json.loads(event_data(event) or b"null")
    except ValueError:
        return {}
    delta = first_choice(chunk).get("delta") if isinstance(chunk, dict) else None
    return delta if isinstance(delta, dict) else {}


def _add_part(calls: dict[int, dict[str, Any]], part: dict[str, Any]) -> None:
    """Add one delta of a tool call; endpoints that leave out the index send whole calls, each with its id."""
    index = part.get("index")
    if not isinstance(index, int):
        index = len(calls) if part.get("id") else max(len(calls) - 1, 0)
    call = calls.setdefault(index, {"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
    if part.get("id") and not call["id"]:
        call["id"] = part["id"]
    function = part.get("function")
    if isinstance(function, dict):
        # Some endpoints repeat the name in every delta.
        call["function"]["name"] = call["function"]["name"] or text_of(function.get("name"))
        call["function"]["arguments"] += text_of(function.get("arguments"))


def _calls_of(message: dict[str, Any]) -> list[tuple[str, str, str]]:
    """(id, name, arguments) of the tool calls of an assistant's message."""
    found: list[tuple[str, str, str]] = []
    for call in message.get("tool_calls") or []:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            arguments = function.get("arguments")
            text = arguments if isinstance(arguments, str) else canonical(arguments)
            found.append((str(call.get("id")), text_of(function.get("name")), text))
    return found


def _answer(asked: list[_Asked], messages: list[dict[str, Any]], time: float) -> None:
    """Give the open calls the results that a request carries."""
    results = {
        str(message.get("tool_call_id")): text_of(message.get("content"))
        for message in messages
        if message.get("role") == "tool"
    }
    by_id = {call.call_id: call for call in asked}
    seen: dict[tuple[str, str], int] = {}
    for message in messages:
        for call_id, name, arguments in _calls_of(message):
            key = _key(name, arguments)
            nth = seen[key] = seen.get(key, 0) + 1
            same = [call for call in asked if call.key == key]
            call = by_id.get(call_id) or (same[nth - 1] if nth <= len(same) else None)
            if call is not None and call.end is None and call_id in results:
                call.end, call.result = time, results[call_id]


def _key(name: str, arguments: str) -> tuple[str, str]:
    """A name and arguments that compare equal however a CLI writes the JSON."""
    try:
        return name, canonical(json.loads(arguments))
    except (ValueError, RecursionError):
        return name, arguments
