"""How responses are read while they pass: whole, or event by event. The wire says what an object states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from orchestrator.gateway.sse import EventSplitter, event_data
from orchestrator.gateway.wire import Capture, Failure, Reading, Shown
from orchestrator.gateway.wires.shared import DETAIL_MAX, json_object, json_value, recorded

METERED_BODY_MAX = 64 << 20
"""A plain response larger than this (bytes) passes, but is not read for usage."""

Read = Callable[[Reading, dict[str, Any]], None]
"""`WireFormat.read` of a wire."""


class Meter(Protocol):
    """Reads a response while it passes. `feed` and `finish` return what the CLI is to see of it."""

    reading: Reading

    def feed(self, data: bytes) -> bytes: ...

    def finish(self) -> bytes: ...


class Unread:
    """Passes a response that says nothing of a model's work."""

    def __init__(self) -> None:
        self.reading = Reading(complete=True, answered=True)

    def feed(self, data: bytes) -> bytes:
        return data

    def finish(self) -> bytes:
        return b""


class PlainMeter:
    """Reads one JSON response once it is whole; bytes pass untouched. A list is read entry by entry."""

    def __init__(self, read: Read) -> None:
        self.reading = Reading()
        self._read = read
        self._body = Capture(METERED_BODY_MAX)

    def feed(self, data: bytes) -> bytes:
        self._body.add(data)
        return data

    def finish(self) -> bytes:
        if self._body.truncated:
            self.reading.complete = True
            return b""
        body = self._body.data()
        parsed = json_value(body)
        if parsed is None:
            # A client that asked for a stream reads one, whatever its content type says.
            stream = StreamMeter(self._read, reading=self.reading)
            stream.feed(body)
            stream.finish()
        else:
            self.reading.complete = True
            for part in recorded(parsed):
                self._read(self.reading, part)
        self.reading.failure = self.reading.failure or _unanswered(self.reading, body)
        return b""


class StreamMeter:
    """Reads the events of a stream as they pass.

    Every byte passes at once, unless `shown` is given: then an event that arrives in pieces is passed on when
    it is whole, as `shown` has it.
    """

    def __init__(self, read: Read, shown: Shown | None = None, reading: Reading | None = None) -> None:
        self.reading = reading or Reading()
        self._read = read
        self._shown = shown
        self._splitter = EventSplitter()
        self._last = b""

    def feed(self, data: bytes) -> bytes:
        shown = b"".join([self._event(event) for event in self._splitter.feed(data)])
        return data if self._shown is None else shown

    def finish(self) -> bytes:
        rest = self._splitter.rest()
        shown = self._event(rest) if rest else b""
        self.reading.complete = self.reading.complete or self.reading.finish_reason is not None
        if self.reading.complete and self.reading.failure is None:
            self.reading.failure = _unanswered(self.reading, self._last)
        return b"" if self._shown is None else shown

    def _event(self, event: bytes) -> bytes:
        """Read one event and return what the CLI is to see of it."""
        data = event_data(event)
        if data is None:
            return event
        if data.strip() == b"[DONE]":
            self.reading.complete = True
            return event
        self._last = data
        parsed = json_object(data)
        self._read(self.reading, parsed)
        return event if self._shown is None else self._shown(event, data, parsed)


def _unanswered(reading: Reading, body: bytes) -> Failure | None:
    """The endpoint's failure where a response that claims success holds no answer of any model."""
    if reading.answered:
        return None
    text = body[:DETAIL_MAX].decode("utf-8", "replace")
    return Failure("endpoint_down", f"the response holds no answer of a model: {text!r}")
