"""The wire of Anthropic's messages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from orchestrator.adapter import Wire
from orchestrator.gateway.settings import AS_THE_CLI_ASKS, GenerationSettings
from orchestrator.gateway.wire import (
    Answer,
    Conversation,
    ErrorKind,
    Failure,
    Path,
    Prepared,
    Prompt,
    Reading,
    ToolRequest,
)
from orchestrator.gateway.wires.shared import (
    DETAIL_MAX,
    bounded,
    categorise,
    count,
    cumulated,
    json_object,
    member,
    models_path,
    objects,
    parse_request,
    prompts_of,
    recorded,
    renamed,
    says,
    settings,
    text_of,
    texts_in,
    tool_request,
    within,
    wordless,
)
from scorers.evidence import Usage

VERSION = "v1"

_POST = re.compile(r"(?:^|/)messages(/count_tokens)?/?$")
_SETTINGS = (
    "temperature",
    "top_p",
    "top_k",
    "max_tokens",
    "thinking",
    "output_config",
    "stop_sequences",
    "tool_choice",
    "service_tier",
)
_NAMES = {"temperature": "temperature", "top_p": "top_p", "max_output_tokens": "max_tokens"}
_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_HOTTEST = 1.0
_ERROR_TYPES: dict[ErrorKind, str] = {
    "bad_request": "invalid_request_error",
    "too_large": "request_too_large",
    "unauthorised": "authentication_error",
    "limit": "permission_error",
    "not_found": "not_found_error",
    "model_not_found": "not_found_error",
    "endpoint_down": "api_error",
}


class MessagesWire:
    """`WireFormat` of messages."""

    name: Wire = "messages"

    def match(self, method: str, path: str, model: str) -> Path | None:
        found = _POST.search(path)
        if found is None:
            return models_path(method, path, model)
        rest = found[1] or ""
        if method != "POST":
            return None
        return Path("count" if rest else "call", f"/messages{rest}", VERSION, generates=not rest)

    def prepare(self, body: bytes, model: str, wanted: GenerationSettings = AS_THE_CLI_ASKS) -> Prepared:
        parsed = parse_request(body)
        request = parsed.request
        if not isinstance(request.get("messages"), list):
            raise ValueError("no list of messages")
        changes: dict[str, Any] = {"model": model, **renamed(wanted, _NAMES)}
        if wanted.reasoning_effort is not None:
            changes["output_config"] = within(request.get("output_config"), effort=wanted.reasoning_effort)
        return parsed.prepared(changes, lambda asked: settings(asked, _SETTINGS))

    def cannot_set(self, wanted: GenerationSettings) -> str | None:
        if wanted.temperature is not None and wanted.temperature > _HOTTEST:
            return f"the wire {self.name} has no temperature above {_HOTTEST:g}"
        return wordless(self.name, wanted, lacks=("seed",), efforts=_EFFORTS)

    def read(self, reading: Reading, body: dict[str, Any]) -> None:
        """A message, or an event. The totals of `message_delta` are those of the whole message so far."""
        parts = (body.get("content_block"), body.get("delta") if "index" in body else None)
        reading.spoke = reading.spoke or any(says(part, but=("type", "signature")) for part in parts)
        match body.get("type"):
            case "message":
                _read(reading, body)
            case "message_start":
                _read(reading, body.get("message"))
            case "message_delta":
                reading.usage_raw = cumulated(reading.usage_raw, body.get("usage"))
                _read_end(reading, body.get("delta"))
            case "message_stop":
                reading.complete = True
            case "error":
                reading.failure = self.classify(200, json.dumps(body).encode())

    def texts(self, event: dict[str, Any]) -> Iterable[tuple[tuple[str, ...], str]]:
        """Every text; a block begins in one event and goes on in others, at the same place."""
        for name, value in event.items():
            part = "block" if name in ("content_block", "delta") else name
            yield from texts_in(value, (part, str(event.get("index"))))

    def classify(self, status: int, body: bytes) -> Failure:
        error = json_object(body).get("error")
        return categorise(status, (member(error, "type"),), member(error, "message"), body)

    def error_body(self, message: str, kind: ErrorKind) -> bytes:
        error = {"type": _ERROR_TYPES[kind], "message": message}
        return json.dumps({"type": "error", "error": error}).encode()

    def models_body(self, model: str, *, one: bool) -> bytes:
        entry = {"type": "model", "id": model, "display_name": model, "created_at": "1970-01-01T00:00:00Z"}
        page = {"data": [entry], "has_more": False, "first_id": model, "last_id": model}
        return json.dumps(entry if one else page).encode()

    def auth_headers(self, key: str) -> Mapping[str, str]:
        return {"x-api-key": key} if key else {}

    def usage(self, raw: dict[str, Any]) -> Usage | None:
        """`input_tokens` leaves out what was read from the cache or written to it; `output_tokens` includes
        thinking.
        """
        asked, said = count(raw, "input_tokens"), count(raw, "output_tokens")
        if asked is None or said is None:
            return None
        read, written = count(raw, "cache_read_input_tokens"), count(raw, "cache_creation_input_tokens")
        return Usage(
            input=asked + (read or 0) + (written or 0),
            output=said,
            cached_read=read,
            cache_write=written,
            reasoning=count(raw.get("output_tokens_details"), "thinking_tokens"),
        )

    def conversation(self, request: dict[str, Any]) -> Conversation:
        messages = objects(request.get("messages"))
        first = text_of(messages[0].get("content")) if messages else ""
        blocks = [block for message in messages for block in objects(message.get("content"))]
        return Conversation(
            opening=text_of(request.get("system")) or first,
            offers_tools=bool(request.get("tools")),
            calls=tuple(_calls(blocks)),
            results={
                str(block.get("tool_use_id")): text_of(block.get("content"))
                for block in blocks
                if block.get("type") == "tool_result"
            },
        )

    def prompts(self, request: dict[str, Any]) -> tuple[Prompt, ...]:
        messages = objects(request.get("messages"))
        said = ((message.get("role"), message.get("content")) for message in messages)
        return prompts_of([("system", request.get("system")), *said])

    def answer(self, response: Any) -> Answer:
        blocks = objects(response.get("content")) if isinstance(response, dict) else _assembled(response)
        text = text_of([block for block in blocks if block.get("type") == "text"])
        return Answer(text, tuple(_calls(blocks)))


def _read(reading: Reading, message: Any) -> None:
    reading.reported_model = bounded(member(message, "model")) or reading.reported_model
    reading.usage_raw = cumulated(reading.usage_raw, member(message, "usage"))
    reading.answered = reading.answered or isinstance(member(message, "content"), list)
    _read_end(reading, message)


def _read_end(reading: Reading, said: Any) -> None:
    """Take why the message ended from the object that says so."""
    reason = bounded(member(said, "stop_reason"))
    reading.finish_reason = reason or reading.finish_reason
    if reason == "refusal":
        explanation = text_of(member(member(said, "stop_details"), "explanation"))
        reading.refusal = explanation[:DETAIL_MAX] or "refusal"


def _assembled(stream: Any) -> list[dict[str, Any]]:
    """The blocks of a recorded stream, put together from their deltas."""
    blocks: dict[int, dict[str, Any]] = {}
    written: dict[int, str] = {}
    for event in recorded(stream):
        index, delta = event.get("index"), event.get("delta")
        if not isinstance(index, int):
            continue
        if isinstance(block := event.get("content_block"), dict):
            blocks[index] = dict(block)
        elif index in blocks and isinstance(delta, dict):
            written[index] = written.get(index, "") + text_of(delta.get("partial_json"))
            blocks[index]["text"] = text_of(blocks[index].get("text")) + text_of(delta.get("text"))
    for index, arguments in written.items():
        if arguments:
            blocks[index]["input"] = arguments
    return [blocks[index] for index in sorted(blocks)]


def _calls(blocks: list[dict[str, Any]]) -> Iterable[ToolRequest]:
    """The tool calls among blocks, less those of tools that the endpoint runs itself."""
    for block in blocks:
        if block.get("type") == "tool_use":
            yield tool_request(block.get("id"), block.get("name"), block.get("input"))
