"""Keeps a key out of a stream that brings it in pieces, a few characters an event, for the CLI to join."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from orchestrator.gateway.scrub import MIN_SECRET, Scrubber

Texts = Callable[[dict[str, Any]], Iterable[tuple[Hashable, str]]]
"""The texts of an event, each with its place: what a client joins with the texts of the same place before."""

_CLOSING = b"} \t\r"
_CLOSING_SEEN = 64
"""Bytes at the end of a line among which `_CLOSING` is looked for; more braces than this close no event."""


class KeySentError(Exception):
    """The joined texts of a stream hold a secret whole. `passed` may pass all the same: it came before."""

    passed = b""


class JoinedScrubber:
    """Passes a stream's bytes on unchanged, but no secret that its joined texts hold.

    Bytes pass as they come, until the joined texts of one place end in what may be the beginning of a secret
    (MIN_SECRET bytes or more). From the line that did so on all is held, in order, until the texts go on
    otherwise. Lines are read, not events, since clients exist that do not wait for an event's blank line; a
    line in pieces passes without the brace that may complete its JSON.
    """

    def __init__(self, scrubber: Scrubber, texts: Texts) -> None:
        self._scrubber = scrubber
        self._texts = texts
        self._held = bytearray()
        self._line = bytearray()
        self._unread: list[bytes] = []
        self._tails: dict[Hashable, bytes] = {}
        self._suspects: set[Hashable] = set()

    def feed(self, data: bytes) -> bytes:
        """What may pass now. Raises KeySentError; then nothing else that is held may pass any more."""
        self._held += data
        self._line += data
        passed = 0
        if b"\n" in data or b"\r" in self._line[-len(data) - 1 :]:
            end = len(self._held) - len(self._line)
            lines = bytes(self._line).splitlines(keepends=True)
            # A carriage return at the end may be half of a line's end.
            self._line = bytearray(b"" if lines[-1].endswith(b"\n") else lines.pop())
            for line in lines:
                end += len(line)
                try:
                    self._read_line(line)
                except KeySentError as error:
                    # However the bytes were cut into chunks, the same of them pass.
                    error.passed = bytes(self._held[:passed])
                    raise
                if not self._suspects and not self._unread:
                    passed = end
        if not self._suspects and not self._unread:
            passed = len(self._held) - self._closing()
        out = bytes(self._held[:passed])
        del self._held[:passed]
        return out

    def rest(self) -> bytes:
        """What is held at the stream's end. Raises KeySentError when its unfinished event holds a secret."""
        self._read_line(bytes(self._line))
        self._read_line(b"\n")
        return bytes(self._held)

    def _closing(self) -> int:
        """Bytes at the end of an unfinished line that may complete its JSON."""
        if not self._line:
            return 0
        end = self._line[-_CLOSING_SEEN:]
        return len(end) - len(end.rstrip(_CLOSING))

    def _read_line(self, line: bytes) -> None:
        """Read a whole line. Data that is no JSON by itself may be a part of one: the blank line tells."""
        if line.startswith(b"data:"):
            data = line[5:]
            if not self._read(data):
                self._unread.append(data)
        elif self._unread and not line.strip(b"\r\n"):
            self._read(b"\n".join(self._unread))
            self._unread.clear()

    def _read(self, data: bytes) -> bool:
        try:
            # Clients replace what is no UTF-8 and read on.
            event = json.loads(data.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return False
        if isinstance(event, dict):
            for place, text in self._texts(event):
                if text:
                    self._join(place, text.encode("utf-8", "surrogatepass"))
        return True

    def _join(self, place: Hashable, text: bytes) -> None:
        joined = self._tails.get(place, b"") + text
        self._suspects.discard(place)
        if self._scrubber.begins_in(joined):
            if self._scrubber.stands_in(joined):
                raise KeySentError
            if self._scrubber.unfinished(joined) >= MIN_SECRET:
                self._suspects.add(place)
        self._tails[place] = joined[-self._scrubber.longest :]
