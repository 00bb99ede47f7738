"""A reply on its way to the CLI: kept, read for what it states, and sent on as it came or translated."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from aiohttp import web

from orchestrator.gateway.record import HEADERS_KEPT, CallInProgress
from orchestrator.gateway.scrub import Scrubber
from orchestrator.gateway.translate.passage import Passage, Whole, passed_headers
from orchestrator.gateway.upstream import Reply, StreamCutError
from orchestrator.gateway.wire import Failure, Shown, WireFormat
from orchestrator.gateway.wires.meters import Meter, PlainMeter, StreamMeter, Unread

STALLED_S = 300.0
"""A CLI that takes no byte of its answer for so long is taken to be gone: its call holds a place at the
endpoint that others wait for.
"""


class ClientGoneError(Exception):
    """The CLI closed its connection before it had the whole response."""


class _Response(web.StreamResponse):
    """A response whose head goes out with the first bytes of its body: each write wakes the CLI."""

    _send_headers_immediately = False

    async def begin(self, request: web.BaseRequest, *, at_once: bool) -> None:
        """Prepare it; `at_once` sends the head by itself, since the body may be long in coming."""
        await self.prepare(request)
        if at_once:
            self.send_head()

    def send_head(self) -> None:
        """Send it without waiting for the body, if it did not go out yet."""
        if self._payload_writer is not None:
            self._payload_writer.send_headers()


async def pass_on(
    call: CallInProgress, request: web.BaseRequest, reply: Reply, wire: WireFormat, shown: Shown | None
) -> web.StreamResponse:
    """Send the reply as it comes, what arrived together in one write; a body that breaks off breaks the
    connection.
    """
    meter = _begin_reading(call, reply, wire, shown)
    response = _Response(status=reply.status)
    shortened = call.streamed and shown is not None
    for name, value in reply.headers:
        if not (shortened and name.lower() == "content-length"):
            response.headers.add(name, value)
    await _to_client(response.begin(request, at_once=call.streamed and not reply.begun))
    rest = b""
    try:
        async for data in reply.chunks:
            rest += _take(call, meter, data)
            if rest and not reply.arrived():
                await _to_client(response.write(rest))
                rest = b""
    except StreamCutError as cut:
        response.send_head()
        if rest:  # it came together with the cut
            await _to_client(response.write(rest))
        _take_cut(call, meter, cut, request)
        return response
    await _to_client(response.write_eof(rest + meter.finish()))
    _take_end(call, meter)
    return response


async def pass_translated(
    call: CallInProgress,
    request: web.BaseRequest,
    reply: Reply,
    wire: WireFormat,
    passage: Passage,
    scrubber: Scrubber,
) -> web.StreamResponse:
    """Send the reply on the CLI's wire: a stream as it comes, anything else when it is whole."""
    meter = _begin_reading(call, reply, wire, None)
    at_once = passage.streams and call.streamed and reply.failure is None
    response = _Response()
    response.headers.extend(passed_headers(reply.headers))
    response.content_type, _, _ = passage.content_type.partition(";")
    if at_once:
        await _to_client(response.begin(request, at_once=not reply.begun))
    body = bytearray()
    try:
        async for data in reply.chunks:
            _take(call, meter, data)
            if not at_once:
                body += data
            elif passed := passage.feed(data):
                await _to_client(response.write(passed))
    except StreamCutError as cut:
        if at_once:
            response.send_head()
        _take_cut(call, meter, cut, request)
        return response
    meter.finish()
    _take_end(call, meter)
    rest = passage.finish() if at_once else b""
    if not at_once:
        whole = _translated(call, passage, reply.status, bytes(body))
        # What JSON escapes is plain text once it is written anew.
        rest = scrubber.clean(whole.body)
        response.set_status(whole.status)
        response.content_type = whole.content_type.partition(";")[0]
        response.content_length = len(rest)
        await _to_client(response.prepare(request))
    await _to_client(response.write_eof(rest))
    return response


def _begin_reading(call: CallInProgress, reply: Reply, wire: WireFormat, shown: Shown | None) -> Meter:
    call.streamed = reply.header("content-type").lower().startswith("text/event-stream")
    meter = _meter(call, wire, shown)
    call.reading = meter.reading
    call.headers = {name: value for name in HEADERS_KEPT if (value := reply.header(name))}
    return meter


def _meter(call: CallInProgress, wire: WireFormat, shown: Shown | None) -> Meter:
    if call.target == "count":
        return Unread()
    return StreamMeter(wire.read, shown) if call.streamed else PlainMeter(wire.read)


def _take(call: CallInProgress, meter: Meter, data: bytes) -> bytes:
    """Keep and read a chunk of the response, and give what the CLI is to see of it."""
    call.received(data)
    passed = meter.feed(data)
    if call.streamed and meter.reading.spoke:
        call.spoken()
    return passed


def _take_cut(call: CallInProgress, meter: Meter, cut: StreamCutError, request: web.BaseRequest) -> None:
    """A reply broke off; so does what the CLI gets."""
    meter.finish()
    call.cut = True
    call.failure = Failure(cut.category, str(cut))
    break_off(request)


def _take_end(call: CallInProgress, meter: Meter) -> None:
    """A reply is over: take from it why the call failed, if it did and that is not known."""
    if call.failure is None:
        call.failure = meter.reading.failure
    if call.failure is None and not meter.reading.complete:
        call.failure = Failure("stream_cut", "the stream stopped before its end")


def _translated(call: CallInProgress, passage: Passage, status: int, body: bytes) -> Whole:
    """A whole reply for the CLI. It is the endpoint's fault when it cannot be translated."""
    if call.failure is None:
        try:
            return passage.whole(body, events=call.streamed)
        except ValueError as error:
            call.failure = Failure("endpoint_down", str(error))
            body = b""
    return passage.error(status, call.failure, body)


def break_off(request: web.BaseRequest) -> None:
    """Close the CLI's connection after what was sent, without the end that a whole response has."""
    if request.transport is not None:
        request.transport.close()


async def _to_client(sending: Awaitable[object]) -> None:
    try:
        async with asyncio.timeout(STALLED_S):
            await sending
    except (ConnectionError, TimeoutError) as error:
        raise ClientGoneError from error
