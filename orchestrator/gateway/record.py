"""What a cell's calls leave behind: one line in `calls.jsonl` and one gzip member in `wire.jsonl.gz` a
call.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import hashlib
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from orchestrator.adapter import Wire
from orchestrator.gateway.contract import RawCall
from orchestrator.gateway.jsontext import canonical, deep, storable
from orchestrator.gateway.scrub import Scrubber
from orchestrator.gateway.wire import Capture, Failure, Reading, Target

STORED_BODY_MAX = 16 << 20
"""Bytes of a request, and of a response, that are stored; what is passed on has no such limit."""

CHUNKS_MAX = 65_536
"""Chunks of a response whose time is recorded; what comes after them counts as part of the last."""

BACKLOG_MAX = 4 << 20
"""Bytes of a cell's calls that may wait to be written; then its next call waits."""

CALL_WEIGHT = 10_000
"""Bytes of a call beside its bodies."""

HEADERS_KEPT = ("content-type", "retry-after", "retry-after-ms", "x-should-retry")
"""Headers of a response that a client acts on."""

DETAIL_MAX = 2000
DROPPED_MAX = 100
NAME_MAX = 200


ResponseEnd = Literal["whole", "cut", "left", "truncated"]
"""`cut`: it broke off. `left`: the client did not wait for its end. `truncated`: it is stored in part."""


def hash_request(body: bytes, request: dict[str, Any] | None) -> str:
    """sha256 of the canonical JSON of a request as the CLI sent it; of its bytes when it is no JSON object,
    or too deep a one.
    """
    plain = request is None or deep(request)
    return hashlib.sha256(body if plain else canonical(request).encode()).hexdigest()


@dataclass
class CallInProgress:
    """One call while it runs; becomes a `RawCall` when it ends. `now` is the gateway's monotonic clock."""

    index: int
    wire: Wire
    path: str
    now: Callable[[], float]
    on_wait: Callable[[bool], None]
    target: Target = "call"
    start: float = 0.0
    sent: float | None = None
    connect_s: float | None = None
    connection_reused: bool | None = None
    first_byte: float | None = None
    first_token: float | None = None
    last_byte: float | None = None
    status: int | None = None
    streamed: bool = False
    held: int = 0
    request_body: bytes = b""
    request: dict[str, Any] | None = None
    request_model: str | None = None
    other_model: bool = False
    settings: dict[str, Any] = field(default_factory=dict)
    settings_before: dict[str, Any] = field(default_factory=dict)
    failure: Failure | None = None
    attempts: int = 1
    waits: list[tuple[float, float]] = field(default_factory=list)
    reading: Reading = field(default_factory=Reading)
    response: Capture = field(default_factory=lambda: Capture(STORED_BODY_MAX))
    headers: dict[str, str] = field(default_factory=dict)
    chunks: list[tuple[int, int]] = field(default_factory=list)
    cut: bool = False
    cli_wire: Wire | None = None
    dropped: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.start = self.now()

    def received(self, data: bytes) -> None:
        """Keep a chunk of the response, and when it came."""
        now = self.now()
        self.last_byte = now
        if self.first_byte is None:
            self.first_byte = now
        self.response.add(data)
        if len(self.chunks) < CHUNKS_MAX:
            self.chunks.append((round((now - self.start) * 1e6), len(data)))
        else:
            at, size = self.chunks[-1]
            self.chunks[-1] = (at, size + len(data))

    def spoken(self) -> None:
        """Keep that the chunk that was received last is the first with something that the model said."""
        if self.first_token is None:
            self.first_token = self.last_byte

    @property
    def response_end(self) -> ResponseEnd:
        """How the response ended."""
        if self.response.truncated:
            return "truncated"
        if self.cut:
            return "cut"
        return "left" if self.failure and self.failure.category == "client_gone" else "whole"

    def raw(self, end: float) -> RawCall:
        return RawCall(
            index=self.index,
            wire=self.wire,
            path=self.path,
            start=self.start,
            end=end,
            sent=self.sent,
            connect_s=self.connect_s,
            connection_reused=self.connection_reused,
            first_byte=self.first_byte,
            first_token=self.first_token,
            last_byte=self.last_byte,
            status=self.status,
            streamed=self.streamed,
            request_hash=hash_request(self.request_body, self.request),
            request_model=self.request_model,
            other_model=self.other_model,
            reported_model=self.reading.reported_model,
            fingerprint=self.reading.fingerprint,
            settings=_shallow(self.settings) or {},
            settings_before=_shallow(self.settings_before) or {},
            usage_raw=_shallow(self.reading.usage_raw),
            finish_reason=self.reading.finish_reason,
            refusal=self.reading.refusal,
            error=self.failure.category if self.failure else None,
            error_detail=self.failure.detail[:DETAIL_MAX] if self.failure else None,
            attempts=self.attempts,
            waits=self.waits,
            cli_wire=self.cli_wire,
            dropped=[name[:NAME_MAX] for name in self.dropped[:DROPPED_MAX]],
        )


class Recorder:
    """Appends a cell's calls to its files, in the order in which they end.

    Writing happens on `writer`, a single thread: compressing a long conversation would hold up other cells'
    calls. A call's bodies are written before its line, so that a line never speaks of bodies that are not
    there.
    """

    def __init__(self, calls: Path, wire: Path, scrubber: Scrubber, writer: ThreadPoolExecutor) -> None:
        self._calls = calls
        self._wire = wire
        self.scrubber = scrubber
        self._writer = writer
        self._fault: OSError | None = None
        # Each is changed by one thread alone: bytes handed to the writer, and written by it.
        self._handed = 0
        self._written = 0

    def add(self, call: CallInProgress) -> None:
        """Record a call that has ended now."""
        self._handed += _weight(call)
        self._writer.submit(self._write, call, call.now())

    async def room(self) -> None:
        """Wait while too much is left to be written: what is held until then is held in memory."""
        if self._handed - self._written > BACKLOG_MAX:
            await asyncio.get_running_loop().run_in_executor(self._writer, lambda: None)

    async def drain(self) -> None:
        """Wait until all that was added is written. Raises OSError when something could not be."""
        await asyncio.get_running_loop().run_in_executor(self._writer, self._check)

    def _check(self) -> None:
        if self._fault is not None:
            raise self._fault

    def _write(self, call: CallInProgress, end: float) -> None:
        try:
            if call.request_body:
                with self._wire.open("ab") as file:
                    file.write(gzip.compress(self._line(_bodies(call)), compresslevel=5, mtime=0))
            if call.target == "call":
                with self._calls.open("ab") as file:
                    file.write(self._line(storable(call.raw(end).model_dump(mode="json"))))
        except OSError as fault:
            self._fault = fault
        except Exception as fault:  # noqa: BLE001 - it is raised by `drain`
            # No call may be missing from the record without a word.
            self._fault = OSError(f"call {call.index} could not be recorded: {type(fault).__name__}")
        finally:
            self._written += _weight(call)

    def _line(self, value: dict[str, Any]) -> bytes:
        return self.scrubber.clean(json.dumps(value, separators=(",", ":")).encode()) + b"\n"


def _weight(call: CallInProgress) -> int:
    """About how many bytes of memory a call holds until it is written."""
    return CALL_WEIGHT + len(call.request_body) + min(call.response.size, STORED_BODY_MAX)


def _shallow(values: dict[str, Any] | None) -> dict[str, Any] | None:
    """The members that are not too deep to be stored."""
    return values and {name: value for name, value in values.items() if not deep(value)}


def _bodies(call: CallInProgress) -> dict[str, Any]:
    """A plain response is stored as its JSON, a stream as its text; a body over the limit as the text of its
    start, and JSON that is too deep as its text.
    """
    request: Any = call.request
    if request is None or len(call.request_body) > STORED_BODY_MAX or deep(request):
        request = call.request_body[:STORED_BODY_MAX].decode("utf-8", "replace")
    response: Any = call.response.data().decode("utf-8", "replace")
    if not call.streamed and not call.response.truncated:
        with contextlib.suppress(ValueError, RecursionError):
            parsed = json.loads(response)
            response = response if deep(parsed) else parsed
    return {
        "index": call.index,
        "wire": call.wire,
        "target": call.target,
        "path": call.path,
        "status": call.status,
        "request": request,
        "response": response,
        "headers": call.headers,
        "chunks": call.chunks,
        "end": call.response_end,
    }
