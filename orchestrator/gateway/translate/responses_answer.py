"""From chat completions to OpenAI's responses: answers."""

from __future__ import annotations

from typing import Any

from orchestrator.gateway.translate.contract import Ending, Fault, Head, Segment
from orchestrator.gateway.translate.frames import named_event
from orchestrator.gateway.translate.responses_tools import Tool, Tools, free_text
from scorers.evidence import Usage

_ECHOED: dict[str, Any] = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "reasoning": {"effort": None, "summary": None},
    "store": False,
    "temperature": None,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": None,
    "truncation": "disabled",
    "user": None,
}
"""Members of a response that repeat the request, with what they are where it says nothing."""

_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}

_IDS = {"reasoning": "rs", "text": "msg", "refusal": "msg", "call": "fc"}


class ResponsesWriter:
    """`Writer` of responses. A text and a refusal are a message each, whose one part they are."""

    content_type = "text/event-stream; charset=utf-8"

    def __init__(self, request: dict[str, Any], tools: Tools) -> None:
        self._tools = tools
        self._number = 0
        self._response: dict[str, Any] = {
            "id": "",
            "object": "response",
            "created_at": 0,
            "status": "in_progress",
            "background": False,
            "error": None,
            "incomplete_details": None,
            "model": "",
            "output": [],
            "usage": None,
        }
        echoed = {name: request.get(name) for name in _ECHOED}
        self._response |= {name: _ECHOED[name] if value is None else value for name, value in echoed.items()}

    def begin(self, head: Head) -> bytes:
        self._response |= {"id": f"resp_{head.id}", "created_at": head.created, "model": head.model}
        return self._event("response.created", response=self._response) + self._event(
            "response.in_progress", response=self._response
        )

    def open(self, segment: Segment) -> bytes:
        item = {**self._item(segment, "in_progress", ""), "status": "in_progress"}
        if segment.kind != "call":
            item["content"] = []
        added = self._event("response.output_item.added", output_index=segment.number, item=item)
        if segment.kind == "call":
            return added
        return added + self._in_part("response.content_part.added", segment, part=_part(segment, ""))

    def add(self, segment: Segment, part: str) -> bytes:
        match segment.kind:
            case "call":
                if self._tool(segment).kind != "function":
                    return b""  # Its text is what a JSON text holds: it can be told when that is whole.
                return self._in_item("response.function_call_arguments.delta", segment, delta=part)
            case "text":
                return self._in_part("response.output_text.delta", segment, delta=part, logprobs=[])
            case "refusal":
                return self._in_part("response.refusal.delta", segment, delta=part)
            case "reasoning":
                return self._in_part("response.reasoning_text.delta", segment, delta=part)

    def close(self, segment: Segment) -> bytes:
        text = segment.text
        match segment.kind:
            case "call":
                out = self._close_call(segment)
            case "text":
                out = self._in_part("response.output_text.done", segment, text=text, logprobs=[])
            case "refusal":
                out = self._in_part("response.refusal.done", segment, refusal=text)
            case "reasoning":
                out = self._in_part("response.reasoning_text.done", segment, text=text)
        if segment.kind != "call":
            out += self._in_part("response.content_part.done", segment, part=_part(segment, text))
        item = self._item(segment, "completed", text)
        self._response["output"].append(item)
        return out + self._event("response.output_item.done", output_index=segment.number, item=item)

    def end(self, ending: Ending) -> bytes:
        incomplete = _INCOMPLETE.get(ending.reason)
        status = "incomplete" if incomplete else "completed"
        self._response |= {
            "status": status,
            "incomplete_details": {"reason": incomplete} if incomplete else None,
            "usage": _usage(ending.usage) if ending.usage else None,
        }
        return self._event(f"response.{status}", response=self._response)

    def error(self, fault: Fault) -> bytes:
        error = {"code": _CODES.get(fault.category, "server_error"), "message": fault.message}
        self._response |= {"status": "failed", "error": error}
        return self._event("response.failed", response=self._response)

    def whole(self) -> dict[str, Any]:
        return self._response

    def _close_call(self, segment: Segment) -> bytes:
        match self._tool(segment).kind:
            case "function":
                name = "response.function_call_arguments.done"
                return self._in_item(name, segment, name=segment.name, arguments=segment.text)
            case "custom":
                text = free_text(segment.text)
                delta = self._in_item("response.custom_tool_call_input.delta", segment, delta=text)
                return delta + self._in_item("response.custom_tool_call_input.done", segment, input=text)
            case "hosted":
                return b""

    def _tool(self, segment: Segment) -> Tool:
        return self._tools.what(segment.name)

    def _id(self, segment: Segment) -> str:
        return f"{_IDS[segment.kind]}_{self._response['id'].removeprefix('resp_')}_{segment.number}"

    def _item(self, segment: Segment, status: str, text: str) -> dict[str, Any]:
        head = {"id": self._id(segment), "status": status}
        if segment.kind == "call":
            return head | self._call(segment, text)
        content = [_part(segment, text)]
        if segment.kind == "reasoning":
            return {**head, "type": "reasoning", "summary": [], "content": content}
        return {**head, "type": "message", "role": "assistant", "content": content}

    def _call(self, segment: Segment, text: str) -> dict[str, Any]:
        tool = self._tool(segment)
        space = {"namespace": tool.namespace} if tool.namespace else {}
        call: dict[str, Any] = {"call_id": segment.call_id, "name": tool.name, **space}
        if tool.hosted is not None:
            asked = segment.arguments() if text else {}
            if tool.hosted.item == "local_shell_call":
                asked = {"type": "exec", "env": {}, **asked}
            return {"type": tool.hosted.item, "call_id": segment.call_id, tool.hosted.member: asked}
        if tool.kind == "custom":
            return {"type": "custom_tool_call", **call, "input": free_text(text) if text else ""}
        return {"type": "function_call", **call, "arguments": text}

    def _in_item(self, kind: str, segment: Segment, **members: Any) -> bytes:
        return self._event(kind, item_id=self._id(segment), output_index=segment.number, **members)

    def _in_part(self, kind: str, segment: Segment, **members: Any) -> bytes:
        return self._in_item(kind, segment, content_index=0, **members)

    def _event(self, kind: str, **members: Any) -> bytes:
        number, self._number = self._number, self._number + 1
        return named_event({"type": kind, "sequence_number": number, **members})


_CODES = {
    "rate_limited": "rate_limit_exceeded",
    "context_overflow": "context_length_exceeded",
    "bad_request": "invalid_prompt",
    "key_refused": "invalid_api_key",
}
"""Failures by category, as the error of a response names them; else `server_error`."""


def _part(segment: Segment, text: str) -> dict[str, Any]:
    match segment.kind:
        case "refusal":
            return {"type": "refusal", "refusal": text}
        case "reasoning":
            return {"type": "reasoning_text", "text": text}
        case _:
            return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _usage(usage: Usage) -> dict[str, Any]:
    given = {"cached_tokens": usage.cached_read or 0}
    if usage.cache_write is not None:
        given["cache_write_tokens"] = usage.cache_write
    return {
        "input_tokens": usage.input,
        "input_tokens_details": given,
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
        "total_tokens": usage.input + usage.output,
    }
