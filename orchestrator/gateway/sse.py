"""Server-sent events as bytes: cut a stream into whole events without changing one."""

from __future__ import annotations

import re

_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r|\n\r\n")
_LONGEST_END = 4


class EventSplitter:
    """Takes a stream's bytes as they arrive and gives back whole events, each with its closing blank line."""

    def __init__(self) -> None:
        self._held = bytearray()
        self._searched = 0

    def feed(self, data: bytes) -> list[bytes]:
        self._held += data
        events: list[bytes] = []
        start = 0
        while match := _EVENT_END.search(self._held, max(start, self._searched)):
            events.append(bytes(self._held[start : match.end()]))
            start = self._searched = match.end()
        del self._held[:start]
        self._searched = max(0, len(self._held) - _LONGEST_END + 1)
        return events

    def rest(self) -> bytes:
        """What has arrived of an event that never ended."""
        held = bytes(self._held)
        self._held.clear()
        self._searched = 0
        return held


def event_data(event: bytes) -> bytes | None:
    """The `data` of an event, several lines joined by a newline; None when it has none (a comment)."""
    lines = [line[5:].removeprefix(b" ") for line in event.splitlines() if line.startswith(b"data:")]
    return b"\n".join(lines) if lines else None


def split_events(stream: bytes) -> list[bytes]:
    """The events of a whole stream, the last one even when its blank line is missing."""
    splitter = EventSplitter()
    events = splitter.feed(stream)
    rest = splitter.rest()
    return [*events, rest] if rest.strip() else events
