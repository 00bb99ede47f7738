"""A reply of the endpoint's on its way to a CLI of another wire."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from orchestrator.gateway.jsontext import canonical
from orchestrator.gateway.translate.answer import NO_ANSWER, AnswerTranslator, stated_message
from orchestrator.gateway.translate.contract import Fault, Translated, Translation
from orchestrator.gateway.wire import Failure
from orchestrator.gateway.wires.shared import DETAIL_MAX, json_object, json_value

_OWN_HEADERS = frozenset(("content-type", "content-length", "content-encoding"))


@dataclass(frozen=True)
class Whole:
    """A response that is sent at once."""

    status: int
    content_type: str
    body: bytes


class Passage:
    """One reply. `streams` is whether the CLI asked for a stream."""

    def __init__(self, translation: Translation, translated: Translated) -> None:
        self._translation = translation
        self._writer = translated.writer
        self._request = translated.request
        self.content_type = translated.writer.content_type
        self.streams = translated.request.get("stream") is True
        self._answer = AnswerTranslator(translated.writer, _tag(translated.request))

    def feed(self, data: bytes) -> bytes:
        return self._answer.feed(data)

    def finish(self) -> bytes:
        return self._answer.finish()

    def whole(self, body: bytes, *, events: bool) -> Whole:
        """A reply that is there as a whole, as the stream or the object that the CLI asked for; events are
        read as such, whatever the reply's type says. Raises ValueError for a body that holds no answer.
        """
        events = events or json_value(body) is None
        out = self.feed(body) + self.finish() if events else self._answer.plain(body)
        if self.streams:
            return Whole(200, self.content_type, out)
        return Whole(200, "application/json", json.dumps(self._writer.whole()).encode())

    def error(self, status: int, failure: Failure, body: bytes) -> Whole:
        """The endpoint's error in the CLI's shape."""
        text = body[:DETAIL_MAX].decode("utf-8", "replace").strip()
        message = stated_message(json_object(body)) or text or failure.detail or NO_ANSWER
        fault = Fault.of(failure, message, status)
        return Whole(fault.status, "application/json", self._translation.error_body(fault))


def passed_headers(headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """An endpoint's headers, less those that speak of the body that is not passed on."""
    return [(name, value) for name, value in headers if name.lower() not in _OWN_HEADERS]


def _tag(request: dict[str, Any]) -> str:
    """Tells answers apart: no request of a conversation is another's equal."""
    return hashlib.sha256(canonical(request).encode()).hexdigest()[:24]
