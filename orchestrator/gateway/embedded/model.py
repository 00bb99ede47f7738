"""A scripted model as a source of replies: the same wire, streamed or not, as an endpoint's."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.adapter import WORKDIR
from orchestrator.gateway.contract import Script
from orchestrator.gateway.embedded.dialects import recognise
from orchestrator.gateway.embedded.turn import Turn
from orchestrator.gateway.jsontext import canonical
from orchestrator.gateway.record import CallInProgress
from orchestrator.gateway.upstream import Outgoing, Reply, whole
from orchestrator.gateway.wires.shared import text_of

FINGERPRINT = "cab-scripted"
"""`system_fingerprint` of every reply: no model produced it."""

TITLE = "Scripted run"
IDLE_TEXT = "Nothing was done: this scripted model ends at once."
REFUSAL_TEXT = "I'm sorry, but I can't help with that."
CLAIM_TEXT = "I fixed the problem described in the ticket and ran the tests: all of them pass now."
BYTES_A_TOKEN = 4
_PIECE = 48


@dataclass(frozen=True)
class ScriptedModel:
    """Answers chat completions from a script. A request in no known dialect is beside the task, as one for a
    title or a commit message, and gets a title.

    Tokens are counted as ceil(UTF-8 bytes / 4) of the canonical request and of the canonical reply message: a
    plain, repeatable measure of the traffic, not a tokenizer's.
    """

    script: Script
    model: str
    workdir: str = WORKDIR

    async def send(self, call: CallInProgress, out: Outgoing) -> Reply:
        request = call.request or {}
        message, reason = self._turn(request).message()
        usage = _usage(request, message)
        head = {
            "id": f"chatcmpl-{hashlib.sha256(out.body).hexdigest()[:24]}",
            "created": int(time.time()),
            "model": self.model,
            "system_fingerprint": FINGERPRINT,
        }
        if request.get("stream") is True:
            chunks = _stream(head, message, reason, usage)
            return Reply(200, [("Content-Type", "text/event-stream; charset=utf-8")], chunks)
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
        reply = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
        return Reply(200, [("Content-Type", "application/json")], whole(json.dumps(reply).encode()))

    def _turn(self, request: dict[str, Any]) -> Turn:
        dialect = recognise(request, self.workdir)
        if dialect is None:
            return Turn(text=TITLE)
        match self.script.kind:
            case "reference" | "wrong":
                return dialect.step(self.script)
            case "follows-context":
                return dialect.step(followed(self.script, request))
            case "loop":
                return dialect.again()
            case "idle":
                return dialect.say(IDLE_TEXT)
            case "refuse":
                return Turn(refusal=REFUSAL_TEXT)
            case "false-claim":
                return dialect.say(CLAIM_TEXT)


def followed(script: Script, request: Mapping[str, Any]) -> Script:
    """The reference where the prompts hold every phrase that the script needs, else the other way.

    What the model or its tools said is no prompt: a phrase that stands in a file of the repository decides
    nothing unless the CLI sends that file as a prompt. Letters' case and white space do not count.
    """
    said = [message for message in request["messages"] if isinstance(message, dict)]
    prompts = _plain(
        "\n".join(text_of(one.get("content")) for one in said if one.get("role") not in ("assistant", "tool"))
    )
    if script.otherwise is not None and any(_plain(phrase) not in prompts for phrase in script.needs):
        return script.otherwise
    return script.model_copy(update={"kind": "reference"})


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def count_tokens(value: Any) -> int:
    """ceil(UTF-8 bytes of the canonical JSON / 4)."""
    return -(-len(canonical(value).encode()) // BYTES_A_TOKEN)


def _usage(request: dict[str, Any], message: dict[str, Any]) -> dict[str, int]:
    asked, said = count_tokens(request), count_tokens(message)
    return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}


async def _stream(
    head: dict[str, Any], message: dict[str, Any], reason: str, usage: dict[str, int]
) -> AsyncIterator[bytes]:
    """The reply as events, usage last. The wire takes that event out where the CLI did not ask for it."""
    chunk = {**head, "object": "chat.completion.chunk"}
    for delta in _deltas(message):
        yield _event({**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    yield _event({**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    yield _event({**chunk, "choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


def _deltas(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": "" if message["content"] is not None else None}
    for piece in _pieces(message["content"] or ""):
        yield {"content": piece}
    for piece in _pieces(message["refusal"] or ""):
        yield {"refusal": piece}
    for index, call in enumerate(message.get("tool_calls", [])):
        yield {
            "tool_calls": [
                {**call, "index": index, "function": {"name": call["function"]["name"], "arguments": ""}}
            ]
        }
        for piece in _pieces(call["function"]["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _pieces(text: str) -> list[str]:
    return [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]


def _event(chunk: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"
