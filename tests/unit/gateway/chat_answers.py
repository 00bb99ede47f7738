"""Answers of chat completions for every shape that a translation meets: text, reasoning, parallel tool
calls, with usage or without, streamed or not.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from typing import Any

from gateway_rig import Handler, event, json_reply, stream_reply

THOUGHT = "Let me see\u2026"
TEXT = "H\u00e9, done: \u2713"
CALLS = [("call_a", "read", {"path": "src/a b.py", "lines": [1, 2]}), ("call_b", "list", {})]
USAGE = {
    "prompt_tokens": 120,
    "completion_tokens": 33,
    "total_tokens": 153,
    "prompt_tokens_details": {"cached_tokens": 64},
    "completion_tokens_details": {"reasoning_tokens": 20},
}


@dataclass(frozen=True)
class ChatAnswer:
    """What an endpoint says in one answer."""

    streamed: bool
    tools: bool
    reasoning: bool
    usage: bool

    @property
    def finish(self) -> str:
        return "tool_calls" if self.tools else "stop"

    @property
    def events(self) -> list[dict[str, Any]]:
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        if self.reasoning:
            deltas += [{"reasoning_content": THOUGHT[:3]}, {"reasoning_content": THOUGHT[3:]}]
        deltas += [{"content": TEXT[:4]}, {"content": TEXT[4:]}]
        for index, (call_id, name, arguments) in enumerate(CALLS if self.tools else []):
            begun = {"name": name, "arguments": ""}
            deltas.append(
                {"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": begun}]}
            )
            text = json.dumps(arguments)
            deltas += [
                {"tool_calls": [{"index": index, "function": {"arguments": part}}]}
                for part in (text[:1], text[1:])
            ]
        head = {"id": "c1", "object": "chat.completion.chunk", "created": 5, "model": "build-7"}
        chunks = [{**head, "choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
        chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": self.finish}]})
        return [*chunks, *([{**head, "choices": [], "usage": USAGE}] if self.usage else [])]

    @property
    def pieces(self) -> list[bytes]:
        return [*map(event, self.events), b"data: [DONE]\n\n"]

    @property
    def body(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": TEXT}
        if self.reasoning:
            message["reasoning_content"] = THOUGHT
        if self.tools:
            message["tool_calls"] = [
                {
                    "id": call_id,
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(given)},
                }
                for call_id, name, given in CALLS
            ]
        choice = {"index": 0, "message": message, "finish_reason": self.finish}
        body = {
            "id": "c1",
            "object": "chat.completion",
            "created": 5,
            "model": "build-7",
            "choices": [choice],
        }
        return {**body, **({"usage": USAGE} if self.usage else {})}

    def handler(self) -> Handler:
        return stream_reply(self.pieces) if self.streamed else json_reply(self.body)

    def __str__(self) -> str:
        words = ("streamed", "tools", "reasoning", "usage")
        return " ".join(word for word in words if getattr(self, word)) or "plain"


ANSWERS = [ChatAnswer(*flags) for flags in itertools.product((False, True), repeat=4)]

ASKS_STREAMED = ChatAnswer(streamed=True, tools=True, reasoning=True, usage=True)
