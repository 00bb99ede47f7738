"""From chat completions to Anthropic's messages: answers."""

from __future__ import annotations

from typing import Any

from orchestrator.gateway.translate.contract import Ending, Fault, Head, Segment
from orchestrator.gateway.translate.frames import named_event
from scorers.evidence import Usage

_REASONS = {"length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
"""Chat's finish reasons; else `end_turn`."""

_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}

OVERFLOW = "prompt is too long"
"""What this wire says of a request larger than the model's context, and clients look for."""


class MessagesWriter:
    """`Writer` of messages.

    A message begins with its usage, which chat states at the end: both counts are 0 there, as they are where
    none is stated at all, since the wire has no word for not known.
    """

    content_type = "text/event-stream; charset=utf-8"

    def __init__(self, request: dict[str, Any]) -> None:
        stops = request.get("stop_sequences")
        self._stops = stops if isinstance(stops, list) else []
        self._refused = False
        self._message: dict[str, Any] = {
            "id": "",
            "type": "message",
            "role": "assistant",
            "model": "",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0},
        }

    def begin(self, head: Head) -> bytes:
        self._message |= {"id": f"msg_{head.id}", "model": head.model}
        return named_event({"type": "message_start", "message": self._message})

    def open(self, segment: Segment) -> bytes:
        empty = {**_block(segment, ""), **({"input": {}} if segment.kind == "call" else {})}
        return _in_block("content_block_start", segment, content_block=empty)

    def add(self, segment: Segment, part: str) -> bytes:
        return _in_block("content_block_delta", segment, delta=_delta(segment, part))

    def close(self, segment: Segment) -> bytes:
        self._refused = self._refused or segment.kind == "refusal"
        self._message["content"].append(_block(segment, segment.text))
        return _in_block("content_block_stop", segment)

    def end(self, ending: Ending) -> bytes:
        reason = "refusal" if self._refused else _REASONS.get(ending.reason, "end_turn")
        stop = ending.stop_sequence if ending.stop_sequence in self._stops else None
        delta = {"stop_reason": "stop_sequence" if stop else reason, "stop_sequence": stop}
        usage = _usage(ending.usage) if ending.usage else self._message["usage"]
        self._message |= {**delta, "usage": usage}
        last = named_event({"type": "message_delta", "delta": delta, "usage": usage})
        return last + named_event({"type": "message_stop"})

    def error(self, fault: Fault) -> bytes:
        return named_event(error_of(fault))

    def whole(self) -> dict[str, Any]:
        return self._message


def error_of(fault: Fault) -> dict[str, Any]:
    """An error as this wire writes it."""
    kind = _ERRORS.get(fault.status, "api_error" if fault.status >= 500 else "invalid_request_error")
    message = fault.message
    if fault.category == "context_overflow" and OVERFLOW not in message:
        message = f"{OVERFLOW}: {message}"
    return {"type": "error", "error": {"type": kind, "message": message}}


def _in_block(kind: str, segment: Segment, **members: Any) -> bytes:
    return named_event({"type": kind, "index": segment.number, **members})


def _delta(segment: Segment, part: str) -> dict[str, Any]:
    match segment.kind:
        case "reasoning":
            return {"type": "thinking_delta", "thinking": part}
        case "call":
            return {"type": "input_json_delta", "partial_json": part}
        case _:
            return {"type": "text_delta", "text": part}


def _block(segment: Segment, text: str) -> dict[str, Any]:
    """A block; no one signed its thinking."""
    match segment.kind:
        case "reasoning":
            return {"type": "thinking", "thinking": text, "signature": ""}
        case "call":
            asked = segment.arguments()
            return {"type": "tool_use", "id": segment.call_id, "name": segment.name, "input": asked}
        case _:
            return {"type": "text", "text": text}


def _usage(usage: Usage) -> dict[str, Any]:
    """Cached input stands beside the rest on this wire, not inside."""
    read, written = usage.cached_read or 0, usage.cache_write or 0
    counts: dict[str, Any] = {
        "input_tokens": max(0, usage.input - read - written),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "output_tokens": usage.output,
    }
    if usage.reasoning is not None:
        counts["output_tokens_details"] = {"thinking_tokens": usage.reasoning}
    return counts
