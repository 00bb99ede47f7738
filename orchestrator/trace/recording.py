"""What a container writes, kept within bounds: a terminal recording (asciicast v2) and plain logs.

Both are output sinks. Where something had to be left out, the file says so in its own terms.
"""

from __future__ import annotations

import codecs
import json
import threading
from pathlib import Path

from orchestrator.errors import CellFault
from orchestrator.sandbox.contract import OutputSink

MAX_RECORDING_BYTES = 16 << 20
MAX_LOG_BYTES = 4 << 20


def tee(*sinks: OutputSink) -> OutputSink:
    """One sink that feeds several."""

    def sink(stream: str, at: float, data: bytes) -> None:
        for each in sinks:
            each(stream, at, data)

    return sink


def for_screen(data: bytes) -> bytes:
    """A pipe has no terminal to turn its line ends into what a screen needs."""
    return data.replace(b"\n", b"\r\n")


class Recorder:
    """An asciicast v2 of a terminal, whose events are timed in seconds from `origin` (`time.monotonic()`).

    `started_unix` is the wall time of the origin in whole seconds. Bytes that are no UTF-8 become U+FFFD;
    characters split between two reads are put together. The file ends within about `max_bytes`: a marker
    event stands where the recording was cut, and another at the end says how much was left out. `close`
    raises CellFault(cause="disk") when something could not be written; feeding it never does.
    """

    def __init__(
        self,
        path: Path,
        origin: float,
        columns: int,
        rows: int,
        title: str,
        *,
        started_unix: int | None = None,
        max_bytes: int = MAX_RECORDING_BYTES,
    ) -> None:
        self._origin = origin
        self._left = max_bytes
        self._last = 0.0
        self._dropped = 0
        self._decoders = {name: _decoder() for name in ("stdout", "stderr")}
        self._out = _File(path)
        self._lock = threading.Lock()
        header: dict[str, object] = {"version": 2, "width": columns, "height": rows}
        if started_unix is not None:
            header["timestamp"] = started_unix
        self._line(header | {"title": title, "env": {"TERM": "xterm-256color"}})

    def __call__(self, stream: str, at: float, data: bytes) -> None:
        with self._lock:
            if self._dropped:
                self._dropped += len(data)
            elif text := self._decoders[stream].decode(data):
                self._event(at - self._origin, text, len(data))

    def close(self) -> None:
        """Write what a split character left, then how much was left out. Closing twice is closing once."""
        with self._lock:
            if self._out.closed:
                return
            for decoder in self._decoders.values():
                if not self._dropped and (text := decoder.decode(b"", True)):
                    self._event(self._last, text, len(text))
            if self._dropped:
                self._mark(f"{self._dropped} bytes left out")
            self._out.close()

    def _event(self, at: float, text: str, size: int) -> None:
        # Time never runs backwards in a recording: stdout and stderr may arrive a little out of order.
        self._last = max(self._last, at)
        line = _json([round(self._last, 6), "o", text])
        if len(line) > self._left:
            self._dropped = size
            self._mark("recording cut: it reached its size limit")
        else:
            self._left -= len(line)
            self._out.write(line)

    def _mark(self, text: str) -> None:
        self._line([round(self._last, 6), "m", text])

    def _line(self, value: object) -> None:
        self._out.write(_json(value))


class LogCapture:
    """One stream as a file: all of it, or head and tail of half of `max_bytes` each with a line between them.

    `close` raises CellFault(cause="disk") when something could not be written; feeding it never does.
    """

    def __init__(self, path: Path, max_bytes: int = MAX_LOG_BYTES, *, stream: str = "stdout") -> None:
        self._stream = stream
        self._head_left = max_bytes - max_bytes // 2
        self._tail_max = max_bytes // 2
        self._tail = bytearray()
        self._dropped = 0
        self._out = _File(path)
        self._lock = threading.Lock()

    def __call__(self, stream: str, at: float, data: bytes) -> None:
        del at  # a log has no times
        if stream != self._stream:
            return
        with self._lock:
            head, rest = data[: self._head_left], data[self._head_left :]
            self._head_left -= len(head)
            self._out.write(head)
            self._tail += rest
            if len(self._tail) > 2 * self._tail_max:
                self._trim()

    def close(self) -> None:
        """Write the tail. Closing twice is closing once."""
        with self._lock:
            if self._out.closed:
                return
            self._trim()
            if self._dropped:
                self._out.write(b"\n[cab: %d bytes left out]\n" % self._dropped)
            self._out.write(bytes(self._tail))
            self._out.close()

    def _trim(self) -> None:
        if (surplus := len(self._tail) - self._tail_max) > 0:
            del self._tail[:surplus]
            self._dropped += surplus


def tail_of(path: Path, max_bytes: int) -> str:
    """The last bytes of a log as text; what is no UTF-8 becomes U+FFFD. Empty when there is no such file."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - max_bytes))
            return file.read(max_bytes).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""


class _File:
    """A file whose faults wait for `close`: a sink is called by a reader that a fault must not stop."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._error: OSError | None = None
        try:
            self._file = path.open("wb")
        except OSError as error:
            raise self._fault(error) from error

    @property
    def closed(self) -> bool:
        return self._file.closed

    def write(self, data: bytes) -> None:
        if self._error is None:
            try:
                self._file.write(data)
            except OSError as error:
                self._error = error

    def close(self) -> None:
        try:
            self._file.close()
        except OSError as error:
            self._error = self._error or error
        if self._error is not None:
            raise self._fault(self._error) from self._error

    def _fault(self, error: OSError) -> CellFault:
        return CellFault("disk", f"output cannot be kept: {error.strerror}", place=self._path.name)


def _decoder() -> codecs.IncrementalDecoder:
    return codecs.getincrementaldecoder("utf-8")("replace")


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode() + b"\n"
