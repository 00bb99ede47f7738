"""Reads what a container writes, as it comes, from the engine's attach stream."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable

from orchestrator.sandbox.contract import OutputSink

_CHUNK = 1 << 16
_HEADER = 8
_STREAMS = {1: "stdout", 2: "stderr"}


class SinkThread(threading.Thread):
    """Reads output, and hands it to `sink`.

    Output that nobody reads blocks who writes it, so reading goes on when the sink fails: its error is kept
    in `error`, and `notify` is called at once, as it is at the end of the output.
    """

    def __init__(self, sink: OutputSink | None, notify: Callable[[], None]) -> None:
        super().__init__(name="output", daemon=True)
        self._sink = sink
        self._notify = notify
        self.error: Exception | None = None
        self.ended_at: float | None = None
        self._ended = threading.Event()

    def _hand_on(self, name: str, now: float, data: bytes) -> None:
        if self._sink is None or self.error is not None:
            return
        try:
            self._sink(name, now, data)
        except Exception as error:  # noqa: BLE001 - a sink is the caller's; its error is raised in the caller's thread
            self.error = error
            self._notify()

    def _end(self) -> None:
        """All has been read."""
        self.ended_at = time.monotonic()
        self._ended.set()
        self._notify()


class OutputReader(SinkThread):
    """Hands every chunk on with the time it came, until the stream ends."""

    def __init__(
        self, stream: socket.socket, *, tty: bool, sink: OutputSink | None, notify: Callable[[], None]
    ) -> None:
        super().__init__(sink, notify)
        self._stream = stream
        self._tty = tty

    def run(self) -> None:
        buffer = bytearray()
        try:
            while data := self._stream.recv(_CHUNK):
                now = time.monotonic()
                if self._tty:
                    self._hand_on("stdout", now, data)
                else:
                    buffer += data
                    self._split(buffer, now)
        except OSError:
            pass  # the engine went away; whoever waits for the container's end finds out why
        finally:
            self._end()

    def stop(self, patience_s: float) -> bool:
        """Waits for the end of the stream; after `patience_s` cuts it off and says False."""
        complete = self._ended.wait(patience_s)
        if not complete:
            with contextlib.suppress(OSError):  # it may end by itself at this moment
                self._stream.shutdown(socket.SHUT_RDWR)
        self.join()
        self._stream.close()
        return complete

    def _split(self, buffer: bytearray, now: float) -> None:
        """Takes whole frames off `buffer`: one byte of stream, three of nothing, four of length, the data."""
        start = 0
        while len(buffer) - start >= _HEADER:
            end = start + _HEADER + int.from_bytes(buffer[start + 4 : start + _HEADER], "big")
            if len(buffer) < end:
                break
            name = _STREAMS.get(buffer[start])
            if name:
                self._hand_on(name, now, bytes(buffer[start + _HEADER : end]))
            start = end
        del buffer[:start]
