"""Tool calls and the final message, read from the wire: what every CLI that calls tools has in common."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orchestrator.gateway.evidence import WireBody
from orchestrator.gateway.jsontext import canonical
from orchestrator.gateway.wire import Conversation
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
            _answer(asked, body.conversation(), time)
        else:
            asked += [_Asked(call.call_id, call.name, call.arguments, time) for call in body.answer().calls]
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
            text = body.answer().text.strip()
            if text:
                return FinalMessage(text=text[:TEXT_MAX], source="wire", truncated=len(text) > TEXT_MAX)
    return FinalMessage(text="", source="none")


def _answer(asked: list[_Asked], told: Conversation, time: float) -> None:
    """Give the open calls the results that a request carries."""
    by_id = {call.call_id: call for call in asked if call.call_id}
    seen: dict[tuple[str, str], int] = {}
    for request in told.calls:
        key = _key(request.name, request.arguments)
        nth = seen[key] = seen.get(key, 0) + 1
        same = [call for call in asked if call.key == key]
        call = by_id.get(request.call_id) or (same[nth - 1] if nth <= len(same) else None)
        if call is not None and call.end is None and request.call_id in told.results:
            call.end, call.result = time, told.results[request.call_id]


def _key(name: str, arguments: str) -> tuple[str, str]:
    """A name and arguments that compare equal however a CLI writes the JSON."""
    try:
        return name, canonical(json.loads(arguments))
    except (ValueError, RecursionError):
        return name, arguments
