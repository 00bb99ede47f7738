"""From chat completions to Gemini's generateContent: answers."""

from __future__ import annotations

import json
from typing import Any

from orchestrator.gateway.translate.contract import Ending, Fault, Head, Segment
from orchestrator.gateway.translate.frames import event
from scorers.evidence import Usage

_REASONS = {"length": "MAX_TOKENS", "content_filter": "SAFETY"}
"""Chat's finish reasons; else `STOP`."""

_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


class GeminiWriter:
    """`Writer` of generateContent. A call is told when it is whole, as the wire has it; `listed` is a stream
    that is one JSON list.
    """

    def __init__(self, *, listed: bool) -> None:
        self._listed = listed
        self._head: dict[str, Any] = {}
        self._parts: list[dict[str, Any]] = []
        self._last: dict[str, Any] = {}
        self._chunks = 0
        self.content_type = "application/json" if listed else "text/event-stream"

    def begin(self, head: Head) -> bytes:
        self._head = {"modelVersion": head.model, "responseId": head.id}
        return b""

    def open(self, _: Segment, /) -> bytes:
        return b""

    def add(self, segment: Segment, part: str) -> bytes:
        return b"" if segment.kind == "call" else self._part(_part(segment, part))

    def close(self, segment: Segment) -> bytes:
        part = _part(segment, segment.text)
        self._parts.append(part)
        return self._part(part) if segment.kind == "call" else b""

    def end(self, ending: Ending) -> bytes:
        reason = _REASONS.get(ending.reason, "STOP")
        self._last = {"usageMetadata": _usage(ending.usage)} if ending.usage else {}
        nothing = [{"text": ""}]
        closing = {"content": {"role": "model", "parts": nothing}, "finishReason": reason, "index": 0}
        whole = {**closing, "content": {"role": "model", "parts": self._parts or nothing}}
        out = self._chunk({"candidates": [closing], **self._last, **self._head})
        self._last = {"candidates": [whole], **self._last, **self._head}
        return out + (b"]" if self._listed else b"")

    def error(self, fault: Fault) -> bytes:
        out = self._chunk(error_of(fault))
        return out + (b"]" if self._listed else b"")

    def whole(self) -> dict[str, Any]:
        return self._last

    def _part(self, part: dict[str, Any]) -> bytes:
        candidate = {"content": {"role": "model", "parts": [part]}, "index": 0}
        return self._chunk({"candidates": [candidate], **self._head})

    def _chunk(self, chunk: dict[str, Any]) -> bytes:
        self._chunks += 1
        if not self._listed:
            return event(chunk)
        before = "[" if self._chunks == 1 else ",\r\n"
        return f"{before}{json.dumps(chunk)}".encode()


def error_of(fault: Fault) -> dict[str, Any]:
    """An error as this wire writes it."""
    name = _STATUS.get(fault.status, "UNAVAILABLE" if fault.status >= 500 else "INVALID_ARGUMENT")
    return {"error": {"code": fault.status, "message": fault.message, "status": name}}


def _part(segment: Segment, text: str) -> dict[str, Any]:
    match segment.kind:
        case "call":
            call = {"id": segment.call_id, "name": segment.name, "args": segment.arguments()}
            return {"functionCall": call}
        case "reasoning":
            return {"text": text, "thought": True}
        case _:
            return {"text": text}


def _usage(usage: Usage) -> dict[str, Any]:
    """Reasoning stands beside the rest of the output on this wire, not inside."""
    counts = {
        "promptTokenCount": usage.input,
        "candidatesTokenCount": usage.output - (usage.reasoning or 0),
        "totalTokenCount": usage.input + usage.output,
    }
    if usage.cached_read is not None:
        counts["cachedContentTokenCount"] = usage.cached_read
    if usage.reasoning is not None:
        counts["thoughtsTokenCount"] = usage.reasoning
    return counts
