"""Exchanges of each wire, written as endpoints write them: streamed or not, with tools or without, with usage
or without.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from typing import Any

from gateway_rig import AUTH, MODEL, Handler, Rig, json_reply, stream_reply

from orchestrator.adapter import Wire
from orchestrator.gateway.evidence import read_calls
from scorers.evidence import ModelCall, Usage

TEXT = "Hé, done: \u2713"
ARGUMENTS = {"path": "src/a b.py", "lines": [1, 2]}
REPORTED = "model-build-7"


@dataclass(frozen=True)
class Exchange:
    """One request and the endpoint's response, with what the response states."""

    wire: Wire
    path: str
    request: dict[str, Any]
    pieces: list[bytes]
    content_type: str
    usage: Usage | None
    finish: str
    calls: list[tuple[str, dict[str, Any]]]
    label: str

    @property
    def streamed(self) -> bool:
        return self.content_type == "text/event-stream"


def exchanges() -> list[Exchange]:
    build = {"chat": chat, "responses": responses, "messages": messages, "gemini": gemini}
    every = itertools.product(build, (False, True), (False, True), (False, True))
    found = [build[wire](streamed, tools, usage) for wire, streamed, tools, usage in every]
    return [*found, gemini(True, True, True, listed=True)]


def sse(*events: dict[str, Any], named: bool = False) -> list[bytes]:
    """Events, with a line for their type where the wire's endpoints write one."""
    heads = [f"event: {event['type']}\n" if named else "" for event in events]
    return [
        f"{head}data: {json.dumps(event, ensure_ascii=False)}\n\n".encode()
        for head, event in zip(heads, events, strict=True)
    ]


def _label(wire: str, streamed: bool, tools: bool, usage: bool) -> str:
    parts = (
        "streamed" if streamed else "plain",
        "tools" if tools else "text",
        "usage" if usage else "no usage",
    )
    return f"{wire} {' '.join(parts)}"


def _plain(value: dict[str, Any]) -> list[bytes]:
    # Indented, as some endpoints do: a gateway that wrote the JSON anew would show.
    return [json.dumps(value, indent=2, ensure_ascii=False).encode()]


def chat(streamed: bool, tools: bool, usage: bool) -> Exchange:
    stated = {
        "prompt_tokens": 120,
        "completion_tokens": 33,
        "total_tokens": 153,
        "prompt_tokens_details": {"cached_tokens": 64},
        "completion_tokens_details": {"reasoning_tokens": 20},
    }
    finish = "tool_calls" if tools else "stop"
    head = {"id": "c1", "model": REPORTED, "created": 1}
    request: dict[str, Any] = {"model": "alias", "messages": [{"role": "user", "content": "go"}]}
    call = {"id": "call_1", "type": "function"}
    arguments = json.dumps(ARGUMENTS)
    if streamed:
        request |= {"stream": True, "stream_options": {"include_usage": True}}
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": TEXT[:4]}, {"content": TEXT[4:]}]
        if tools:
            named = {"name": "read", "arguments": ""}
            deltas += [{"tool_calls": [{**call, "index": 0, "function": named}]}]
            deltas += [
                {"tool_calls": [{"index": 0, "function": {"arguments": part}}]}
                for part in (arguments[:7], arguments[7:])
            ]
        chunk = {**head, "object": "chat.completion.chunk"}
        events = [
            {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
        ]
        events += [{**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}]
        pieces = sse(*events, *([{**chunk, "choices": [], "usage": stated}] if usage else []))
        pieces.append(b"data: [DONE]\n\n")
    else:
        message: dict[str, Any] = {"role": "assistant", "content": TEXT}
        if tools:
            message["tool_calls"] = [{**call, "function": {"name": "read", "arguments": arguments}}]
        choice = {"index": 0, "message": message, "finish_reason": finish}
        body = {**head, "object": "chat.completion", "choices": [choice]}
        pieces = _plain({**body, **({"usage": stated} if usage else {})})
    return Exchange(
        wire="chat",
        path="/v1/chat/completions",
        request={
            **request,
            **({"tools": [{"type": "function", "function": {"name": "read"}}]} if tools else {}),
        },
        pieces=pieces,
        content_type="text/event-stream" if streamed else "application/json",
        usage=Usage(input=120, output=33, cached_read=64, reasoning=20) if usage else None,
        finish=finish,
        calls=[("read", ARGUMENTS)] if tools else [],
        label=_label("chat", streamed, tools, usage),
    )


def responses(streamed: bool, tools: bool, usage: bool) -> Exchange:
    stated = {
        "input_tokens": 120,
        "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 8},
        "output_tokens": 33,
        "output_tokens_details": {"reasoning_tokens": 20},
        "total_tokens": 153,
    }
    text = {"type": "output_text", "text": TEXT, "annotations": []}
    items: list[dict[str, Any]] = [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]},
    ]
    if tools:
        call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "status": "completed"}
        items.append({**call, "name": "read", "arguments": json.dumps(ARGUMENTS)})
    response = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": REPORTED,
        "output": items,
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": stated if usage else None,
    }
    request: dict[str, Any] = {"model": "alias", "instructions": "Be brief", "input": "go"}
    if streamed:
        request["stream"] = True
        begun = {**response, "status": "in_progress", "output": [], "usage": None}
        events = [{"type": "response.created", "response": begun}]
        for index, item in enumerate(items):
            at = {"output_index": index}
            part = {**at, "item_id": item["id"], "content_index": 0}
            events.append({"type": "response.output_item.added", **at, "item": {**item, "content": []}})
            if item["type"] == "message":
                events += [
                    {"type": "response.content_part.added", **part, "part": {**text, "text": ""}},
                    {"type": "response.output_text.delta", **part, "delta": TEXT[:4], "logprobs": []},
                    {"type": "response.output_text.delta", **part, "delta": TEXT[4:], "logprobs": []},
                    {"type": "response.output_text.done", **part, "text": TEXT, "logprobs": []},
                    {"type": "response.content_part.done", **part, "part": text},
                ]
            events.append({"type": "response.output_item.done", **at, "item": item})
        events.append({"type": "response.completed", "response": response})
        numbered = [{**event, "sequence_number": number} for number, event in enumerate(events)]
        pieces = sse(*numbered, named=True)
    else:
        pieces = _plain(response)
    return Exchange(
        wire="responses",
        path="/v1/responses",
        request={**request, **({"tools": [{"type": "function", "name": "read"}]} if tools else {})},
        pieces=pieces,
        content_type="text/event-stream" if streamed else "application/json",
        usage=Usage(input=120, output=33, cached_read=64, cache_write=8, reasoning=20) if usage else None,
        finish="completed",
        calls=[("read", ARGUMENTS)] if tools else [],
        label=_label("responses", streamed, tools, usage),
    )


def messages(streamed: bool, tools: bool, usage: bool) -> Exchange:
    stated = {
        "input_tokens": 40,
        "cache_creation_input_tokens": 16,
        "cache_read_input_tokens": 64,
        "output_tokens": 33,
        "service_tier": "standard",
    }
    finish = "tool_use" if tools else "end_turn"
    blocks: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "text", "text": TEXT},
    ]
    if tools:
        blocks.append({"type": "tool_use", "id": "toolu_1", "name": "read", "input": ARGUMENTS})
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": REPORTED}
    request: dict[str, Any] = {
        "model": "alias",
        "max_tokens": 64,
        "system": [{"type": "text", "text": "Be brief"}],
        "messages": [{"role": "user", "content": "go"}],
    }
    if streamed:
        request["stream"] = True
        # The first count of output is a placeholder; the last event has the totals.
        begun = {"stop_reason": None, "stop_sequence": None, "content": []}
        first = {"usage": {**stated, "output_tokens": 1}} if usage else {}
        events: list[dict[str, Any]] = [{"type": "message_start", "message": {**message, **begun, **first}}]
        events.append({"type": "ping"})
        for index, block in enumerate(blocks):
            events += _block_events(index, block)
        ended = {"stop_reason": finish, "stop_sequence": None}
        last = {"usage": {"output_tokens": 33}} if usage else {}
        events += [{"type": "message_delta", "delta": ended, **last}, {"type": "message_stop"}]
        pieces = sse(*events, named=True)
    else:
        whole = {**message, "content": blocks, "stop_reason": finish, "stop_sequence": None}
        pieces = _plain({**whole, **({"usage": stated} if usage else {})})
    return Exchange(
        wire="messages",
        path="/v1/messages",
        request={**request, **({"tools": [{"name": "read", "input_schema": {}}]} if tools else {})},
        pieces=pieces,
        content_type="text/event-stream" if streamed else "application/json",
        usage=Usage(input=120, output=33, cached_read=64, cache_write=16) if usage else None,
        finish=finish,
        calls=[("read", ARGUMENTS)] if tools else [],
        label=_label("messages", streamed, tools, usage),
    )


def _block_events(index: int, block: dict[str, Any]) -> list[dict[str, Any]]:
    """A block as it is streamed: begun empty, its content in deltas."""
    arguments = json.dumps(block.get("input"))
    begun, deltas = {
        "thinking": (
            {**block, "thinking": "", "signature": ""},
            [
                {"type": "thinking_delta", "thinking": "hm"},
                {"type": "signature_delta", "signature": "c2ln"},
            ],
        ),
        "text": (
            {**block, "text": ""},
            [{"type": "text_delta", "text": part} for part in (TEXT[:4], TEXT[4:])],
        ),
        "tool_use": (
            {**block, "input": {}},
            [
                {"type": "input_json_delta", "partial_json": part}
                for part in ("", arguments[:7], arguments[7:])
            ],
        ),
    }[block["type"]]
    return [
        {"type": "content_block_start", "index": index, "content_block": begun},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def gemini(streamed: bool, tools: bool, usage: bool, *, listed: bool = False) -> Exchange:
    """`listed`: streamed without `alt=sse`, as one JSON list."""
    stated = {
        "promptTokenCount": 120,
        "cachedContentTokenCount": 64,
        "candidatesTokenCount": 13,
        "thoughtsTokenCount": 20,
        "totalTokenCount": 153,
    }
    parts: list[dict[str, Any]] = [
        {"text": "hm", "thought": True},
        {"text": TEXT[:4]},
        {"text": TEXT[4:]},
    ]
    if tools:
        parts.append({"functionCall": {"name": "read", "args": ARGUMENTS}, "thoughtSignature": "c2ln"})
    head = {"modelVersion": REPORTED, "responseId": "r1"}
    request = {
        "contents": [{"role": "user", "parts": [{"text": "go"}]}],
        "systemInstruction": {"parts": [{"text": "Be brief"}]},
        "generationConfig": {"temperature": 0.5, "maxOutputTokens": 64},
        **({"tools": [{"functionDeclarations": [{"name": "read"}]}]} if tools else {}),
    }
    if streamed:
        chunks: list[dict[str, Any]] = []
        for number, part in enumerate(parts):
            candidate: dict[str, Any] = {"content": {"role": "model", "parts": [part]}, "index": 0}
            last = number == len(parts) - 1
            # Every chunk states the totals so far.
            so_far = stated if last else {"promptTokenCount": 120, "candidatesTokenCount": number}
            chunks.append({"candidates": [candidate | ({"finishReason": "STOP"} if last else {})], **head})
            chunks[-1] |= {"usageMetadata": so_far} if usage else {}
        pieces = sse(*chunks)
        if listed:
            pieces = [b"[" + b"\n,\r\n".join(json.dumps(chunk).encode() for chunk in chunks) + b"]"]
    else:
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
        pieces = _plain({"candidates": [candidate], **head, **({"usageMetadata": stated} if usage else {})})
    method = "streamGenerateContent" if streamed else "generateContent"
    return Exchange(
        wire="gemini",
        path=f"/v1beta/models/{MODEL}:{method}{'?alt=sse' if streamed and not listed else ''}",
        request=request,
        pieces=pieces,
        content_type="text/event-stream" if streamed and not listed else "application/json",
        usage=Usage(input=120, output=33, cached_read=64, reasoning=20) if usage else None,
        finish="STOP",
        calls=[("read", ARGUMENTS)] if tools else [],
        label=_label("gemini", streamed, tools, usage) + (" listed" if listed else ""),
    )


CORPUS = exchanges()
STREAMED = [exchange for exchange in CORPUS if exchange.streamed]
PLAIN: dict[Wire, Exchange] = {e.wire: e for e in CORPUS if not e.streamed and e.usage and e.calls}


def label(exchange: Exchange) -> str:
    return exchange.label


def reply(exchange: Exchange) -> Handler:
    if exchange.streamed:
        return stream_reply(exchange.pieces)
    return json_reply(b"".join(exchange.pieces))


async def ask(
    gateway: Rig, path: str, body: Any, headers: dict[str, str] | None = None
) -> tuple[int, bytes, str]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    url = f"http://cell{path}"
    async with gateway.client.post(url, data=data, headers=AUTH if headers is None else headers) as response:
        return response.status, await response.read(), response.content_type


def counted(gateway: Rig) -> list[ModelCall]:
    """The cell's calls as evidence."""
    return read_calls(gateway.route.calls_path, gateway.route.wire_path, 0.0)
