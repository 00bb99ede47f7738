"""The chat completions wire: requests, responses (plain and streamed) and errors as OpenAI writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from orchestrator.adapter import Wire
from orchestrator.gateway.jsontext import canonical, drop_member, members, set_members
from orchestrator.gateway.sse import EventSplitter, event_data
from orchestrator.gateway.wire import Capture, Failure, Path, Prepared, Reading

METERED_BODY_MAX = 64 << 20
"""A plain response larger than this (bytes) passes, but is not read for usage."""

DETAIL_MAX = 2000
NAME_MAX = 200
SETTING_MAX = 1000

_PATH = re.compile(r"(?:^|/)v1/(chat/completions|models)/?$")
_SETTINGS = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "max_tokens",
    "max_completion_tokens",
    "reasoning_effort",
    "reasoning",
    "seed",
    "stop",
    "n",
    "frequency_penalty",
    "presence_penalty",
    "tool_choice",
    "parallel_tool_calls",
    "verbosity",
    "service_tier",
)
_OVERFLOW_CODES = {"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"}
_OVERFLOW_WORDS = re.compile(
    r"context[ _-]?(length|window|size)|maximum context|(prompt|input) is too long|too many (input )?tokens"
    r"|reduce the length",
    re.IGNORECASE,
)
_ACCOUNT_STATUS = (401, 402, 403)
# Not the CLI's doing: path, method and model are the gateway's choice, and it is the endpoint that gave up.
_ENDPOINT_STATUS = (404, 405, 408, 425)


class ChatWire:
    """`WireFormat` of chat completions."""

    name: Wire = "chat"

    def match(self, method: str, path: str) -> Path | None:
        found = _PATH.search(path)
        if found is None:
            return None
        if found[1] == "models":
            return Path("models", "/models") if method == "GET" else None
        return Path("call", "/chat/completions") if method == "POST" else None

    def prepare(self, body: bytes, model: str) -> Prepared:
        text = body.decode("utf-8")
        found = members(text)
        request = {member.key: member.value for member in found}
        if not isinstance(request.get("messages"), list):
            raise ValueError("no list of messages")
        changes: dict[str, Any] = {}
        if request.get("model") != model:
            changes["model"] = model
        streamed = request.get("stream") is True
        options = request.get("stream_options")
        asks_usage = isinstance(options, dict) and options.get("include_usage") is True
        if streamed and not asks_usage:
            changes["stream_options"] = {
                **(options if isinstance(options, dict) else {}),
                "include_usage": True,
            }
        sent = set_members(text, found, changes).encode() if changes else body
        return Prepared(request, sent, streamed, streamed and not asks_usage, _settings(request))

    def meter(self, *, events: bool, hide_usage: bool) -> StreamMeter | PlainMeter:
        return StreamMeter(self, hide_usage=hide_usage) if events else PlainMeter(self)

    def texts(self, event: dict[str, Any]) -> list[tuple[tuple[str, ...], str]]:
        """Every text of the choices, whatever its name: endpoints name what they stream differently."""
        found: list[tuple[tuple[str, ...], str]] = []
        _add_texts(found, event.get("choices"), ())
        return found

    def classify(self, status: int, body: bytes) -> Failure:
        """The category of a failed response."""
        error = _error_object(body)
        text = body[:DETAIL_MAX].decode("utf-8", "replace")
        detail = f"HTTP {status}: {text}"
        codes = {str(error.get(name)) for name in ("code", "type")}
        if status == 429:
            return Failure("rate_limited", detail)
        if codes & _OVERFLOW_CODES or _OVERFLOW_WORDS.search(str(error.get("message") or text)):
            return Failure("context_overflow", detail)
        if status >= 500:
            return Failure("upstream_5xx", detail)
        if status in _ACCOUNT_STATUS:
            return Failure("key_refused", detail)
        endpoint = status in _ENDPOINT_STATUS or status < 400
        return Failure("endpoint_down" if endpoint else "bad_request", detail)

    def error_body(self, message: str, kind: str) -> bytes:
        error = {"message": message, "type": kind, "param": None, "code": kind}
        return json.dumps({"error": error}).encode()

    def models_body(self, model: str) -> bytes:
        entry = {"id": model, "object": "model", "created": 0, "owned_by": "cab"}
        return json.dumps({"object": "list", "data": [entry]}).encode()

    def auth_headers(self, key: str) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}


class PlainMeter:
    """Reads one JSON response once it is whole; bytes pass untouched."""

    def __init__(self, wire: ChatWire) -> None:
        self.reading = Reading()
        self._wire = wire
        self._body = Capture(METERED_BODY_MAX)

    def feed(self, data: bytes) -> bytes:
        self._body.add(data)
        return data

    def finish(self) -> bytes:
        self.reading.complete = True
        if self._body.truncated:
            return b""
        body = self._body.data()
        parsed = _json_object(body)
        if parsed is not None:
            _read(self.reading, parsed, "message")
            if parsed.get("error"):
                self.reading.failure = self._wire.classify(_error_status(parsed["error"]), body)
        self.reading.failure = self.reading.failure or _unanswered(self.reading, body)
        return b""


class StreamMeter:
    """Reads the events of a stream as they pass.

    With `hide_usage` the stream is as if the CLI's request, which did not ask for usage, had gone upstream:
    the usage event is left out and a `usage` field of another event is cut from it. An event that arrives in
    pieces is then passed on when it is whole; otherwise every byte passes at once.
    """

    def __init__(self, wire: ChatWire, *, hide_usage: bool) -> None:
        self.reading = Reading()
        self._wire = wire
        self._hide_usage = hide_usage
        self._splitter = EventSplitter()
        self._last = b""

    def feed(self, data: bytes) -> bytes:
        shown = b"".join([self._event(event) for event in self._splitter.feed(data)])
        return shown if self._hide_usage else data

    def finish(self) -> bytes:
        rest = self._splitter.rest()
        shown = self._event(rest) if rest else b""
        self.reading.complete = self.reading.complete or self.reading.finish_reason is not None
        if self.reading.complete and self.reading.failure is None:
            self.reading.failure = _unanswered(self.reading, self._last)
        return shown if self._hide_usage else b""

    def _event(self, event: bytes) -> bytes:
        """Read one event and return what the CLI is to see of it."""
        data = event_data(event)
        if data is None:
            return event
        if data.strip() == b"[DONE]":
            self.reading.complete = True
            return event
        self._last = data
        parsed = _json_object(data)
        if parsed is None:
            return event
        _read(self.reading, parsed, "delta")
        if parsed.get("error"):
            self.reading.failure = self._wire.classify(_error_status(parsed["error"]), data)
        if not self._hide_usage or "usage" not in parsed:
            return event
        if parsed.get("usage") and not parsed.get("choices"):
            return b""
        text = data.decode("utf-8")
        return event.replace(data, drop_member(text, members(text), "usage").encode(), 1)


def _unanswered(reading: Reading, body: bytes) -> Failure | None:
    """The endpoint's failure where a response that claims success holds no answer of any model."""
    if reading.answered:
        return None
    text = body[:DETAIL_MAX].decode("utf-8", "replace")
    return Failure("endpoint_down", f"the response holds no answer of a model: {text!r}")


def _read(reading: Reading, body: dict[str, Any], part: str) -> None:
    """Take what one response object, or one chunk of a stream, states. Later statements replace earlier
    ones.
    """
    model = body.get("model")
    if isinstance(model, str) and model:
        reading.reported_model = model[:NAME_MAX]
    usage = body.get("usage")
    if isinstance(usage, dict):
        reading.usage_raw = usage
    choice = first_choice(body)
    reading.answered = reading.answered or bool(choice)
    reason = choice.get("finish_reason")
    if isinstance(reason, str) and reason:
        reading.finish_reason = reason[:NAME_MAX]
    said = choice.get(part)
    refusal = said.get("refusal") if isinstance(said, dict) else None
    if isinstance(refusal, str) and refusal:
        reading.refusal = ((reading.refusal or "") + refusal)[:DETAIL_MAX]
    if reason == "content_filter" and reading.refusal is None:
        reading.refusal = "content_filter"


def _add_texts(found: list[tuple[tuple[str, ...], str]], value: Any, place: tuple[str, ...]) -> None:
    """Add the texts inside a JSON value with the names on the way to them; in a list, its entry's `index`."""
    if isinstance(value, str):
        found.append((place, value))
    elif isinstance(value, dict):
        for name, inner in value.items():
            if inner and isinstance(inner, (str, dict, list)):
                _add_texts(found, inner, (*place, name))
    elif isinstance(value, list):
        for entry in value:
            index = entry.get("index", 0) if isinstance(entry, dict) else 0
            _add_texts(found, entry, (*place, str(index)))


def first_choice(body: dict[str, Any]) -> dict[str, Any]:
    """The choice with index 0, or {}: further choices (`n` > 1) are not what a CLI acts on."""
    choices = body.get("choices")
    for choice in choices if isinstance(choices, list) else []:
        if isinstance(choice, dict) and choice.get("index", 0) == 0:
            return choice
    return {}


def _settings(request: dict[str, Any]) -> dict[str, Any]:
    present = {name: request[name] for name in _SETTINGS if request.get(name) is not None}
    return {name: value for name, value in present.items() if len(canonical(value)) <= SETTING_MAX}


def _json_object(data: bytes) -> dict[str, Any] | None:
    try:
        parsed = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def _error_object(body: bytes) -> dict[str, Any]:
    parsed = _json_object(body) or {}
    error = parsed.get("error")
    return error if isinstance(error, dict) else parsed


def _error_status(error: Any) -> int:
    """The HTTP status that an error inside a 200 response states, else 500."""
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 500


def text_of(content: Any) -> str:
    """The text of a message's content, which is a text or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(
        part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)
    )
