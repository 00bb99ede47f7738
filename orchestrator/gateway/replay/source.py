"""A recorded cell as a source of replies. Requests may come in another order than they were recorded in, as
those for a title do: each gets the answer of the first recorded request that is equal to it and not yet
answered.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.adapter import Wire
from orchestrator.errors import InputError, StoreError
from orchestrator.gateway.contract import RawCall, Replay, ReplayReport, RequestDifference
from orchestrator.gateway.evidence import WireBody, read_raw_calls, read_wire
from orchestrator.gateway.jsontext import canonical
from orchestrator.gateway.record import CallInProgress
from orchestrator.gateway.replay.difference import differences, distance
from orchestrator.gateway.replay.normalise import normalise
from orchestrator.gateway.scrub import Scrubber
from orchestrator.gateway.upstream import Outgoing, Reply, StreamCutError, whole
from orchestrator.gateway.window import Clock
from orchestrator.gateway.wire import Failure
from scorers.evidence import OTHER_MODEL

DIFFERS = "replay_differs"
"""Category of a call that is not among the recorded ones, and of all that come after it."""

_REFUSED = "this is not the request that was recorded; the replay ends here"


@dataclass(frozen=True)
class Exchange:
    """One recorded exchange. `request` is normalised; `chunks` are what came of the answer, each with its
    offset in seconds from the start of the call. `end` is how the answer ended (`WireBody.end`). `path` is
    None in a record of an earlier cab.
    """

    index: int
    path: str | None
    request: dict[str, Any]
    digest: str
    status: int | None
    headers: tuple[tuple[str, str], ...]
    chunks: tuple[tuple[float, bytes], ...]
    end: str
    failure: Failure | None


def load_recording(calls_path: Path, wire_path: Path, wire: Wire) -> list[Exchange]:
    """The recorded calls of a cell, less those that the gateway refused by itself: it will again.

    Raises InputError where a body is longer than what is stored of it, StoreError for a damaged file.
    """
    raws = {raw.index: raw for raw in read_raw_calls(calls_path)}
    found = []
    for body in sorted(read_wire(wire_path), key=lambda body: body.index):
        raw = raws.get(body.index)
        if raw is None and body.target == "call":
            thing = f"bodies of call {body.index} without the call"
            raise StoreError(thing, place=str(wire_path), mend="restore the file")
        if raw is not None and raw.error in ("bad_request", "gateway") and not isinstance(body.request, dict):
            continue
        if raw is not None and raw.error == OTHER_MODEL:
            continue
        if not isinstance(body.request, dict) or body.end == "truncated":
            thing = f"call {body.index} is longer than what is stored of it"
            raise InputError(thing, place=str(wire_path), mend="it cannot be replayed")
        found.append(_exchange(wire, body, raw))
    return found


def _exchange(wire: Wire, body: WireBody, raw: RawCall | None) -> Exchange:
    """`raw` is None for a count of tokens, which is no call."""
    request = normalise(wire, body.request)
    streamed = raw is not None and raw.streamed
    headers = dict(body.headers) or {"content-type": _content_type(body, streamed=streamed)}
    return Exchange(
        index=body.index,
        path=body.path,
        request=request,
        digest=digest_of(request),
        status=raw.status if raw else body.status,
        headers=tuple(headers.items()),
        chunks=_chunks(body),
        end=body.end or "whole",
        failure=Failure(raw.error, raw.error_detail or "") if raw and raw.error else None,
    )


def digest_of(normalised: dict[str, Any]) -> str:
    return hashlib.sha256(canonical(normalised).encode()).hexdigest()


def _content_type(body: WireBody, *, streamed: bool) -> str:
    """Of a record that does not tell it."""
    if streamed:
        return "text/event-stream"
    return "text/plain" if isinstance(body.response, str) else "application/json"


def _chunks(body: WireBody) -> tuple[tuple[float, bytes], ...]:
    """The answer in the pieces that it came in; in one, where it is stored as JSON or was no UTF-8."""
    text = body.response if isinstance(body.response, str) else json.dumps(body.response)
    data = text.encode("utf-8", "surrogatepass")
    if sum(size for _, size in body.chunks) != len(data):
        last = body.chunks[-1][0] / 1e6 if body.chunks else 0.0
        return ((last, data),) if data else ()
    found, at = [], 0
    for offset, size in body.chunks:
        found.append((offset / 1e6, data[at : at + size]))
        at += size
    return tuple(found)


@dataclass
class ReplayedModel:
    """Answers with what was recorded. `on_difference` is told once, when a request is not a recorded one."""

    replay: Replay
    clock: Clock
    scrubber: Scrubber
    on_difference: Callable[[], None]
    asked: int = field(default=0, init=False)
    difference: RequestDifference | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        recorded = self.replay
        self._waiting = load_recording(recorded.calls_path, recorded.wire_path, recorded.wire)
        self._answered: set[str] = set()

    async def send(self, call: CallInProgress, out: Outgoing) -> Reply:
        scrubbed = json.loads(self.scrubber.clean(canonical(call.request or {}).encode()))
        request = normalise(self.replay.wire, scrubbed)
        exchange = None if self.difference else self._take(call.path, digest_of(request))
        if exchange is None:
            detail = self._differs(call, request)
            body = out.wire.error_body(_REFUSED, "bad_request")
            headers = [("Content-Type", "application/json")]
            return Reply(400, headers, whole(body), Failure(DIFFERS, detail))
        self.asked += 1
        if exchange.status is None:
            await _until_the_client_leaves()
        final = exchange.failure if exchange.failure and exchange.failure.category != "client_gone" else None
        return Reply(exchange.status or 200, list(exchange.headers), self._body(exchange, call.start), final)

    def report(self) -> ReplayReport:
        """What came of the replay so far."""
        left = tuple(exchange.index for exchange in self._waiting)
        return ReplayReport(
            of=self.replay.cell_id, asked=self.asked, not_asked=left, difference=self.difference
        )

    def _take(self, path: str, digest: str) -> Exchange | None:
        for at, exchange in enumerate(self._waiting):
            if exchange.digest == digest and exchange.path in (path, None):
                self._answered.add(digest)
                return self._waiting.pop(at)
        return None

    def _differs(self, call: CallInProgress, request: dict[str, Any]) -> str:
        """Note the first request that was not recorded, beside the most alike of those still to come."""
        if self.difference is None:
            index = call.index
            nearest = min(self._waiting, key=lambda it: distance(it.request, request), default=None)
            if nearest is None or digest_of(request) in self._answered:
                how = "sent once more than it was recorded" if nearest else "sent after the last recorded one"
                self.difference = RequestDifference(index=index, how=how)
            else:
                places, more = differences(nearest.request, request)
                how = f"not as recorded in call {nearest.index}"
                if nearest.path not in (call.path, None):
                    how += f", which went to {nearest.path}, and this to {call.path}"
                self.difference = RequestDifference(
                    index=index,
                    recorded_index=nearest.index,
                    how=how,
                    places=places,
                    more=more,
                )
            self.on_difference()
        return f"request {self.difference.index} is {self.difference.how}"

    async def _body(self, exchange: Exchange, start: float) -> AsyncIterator[bytes]:
        for offset, data in exchange.chunks:
            if self.replay.paced:
                await self.clock.sleep(max(0.0, start + offset - self.clock.monotonic()))
            yield data
        if exchange.end == "cut":
            failure = exchange.failure or Failure("stream_cut", "")
            raise StreamCutError(failure.detail, failure.category)
        if exchange.end == "left":
            await _until_the_client_leaves()


async def _until_the_client_leaves() -> None:
    """The recorded client did not wait for the answer; its leaving cancels this."""
    await asyncio.Event().wait()
