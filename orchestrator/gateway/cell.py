"""One cell's side of the gateway: its socket's requests are checked, counted, passed on, metered and
recorded.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from aiohttp import web

from orchestrator.gateway.contract import CellRoute
from orchestrator.gateway.evidence import normalise_usage
from orchestrator.gateway.faults import INFRA
from orchestrator.gateway.record import HEADERS_KEPT, CallInProgress, Recorder
from orchestrator.gateway.upstream import Outgoing, Reply, Source, StreamCutError
from orchestrator.gateway.window import Clock
from orchestrator.gateway.wire import ErrorKind, Failure, Path, Shown, Target, WireFormat
from orchestrator.gateway.wires.meters import Meter, PlainMeter, StreamMeter, Unread
from orchestrator.gateway.wires.shared import bounded
from scorers.evidence import LIMIT_ERRORS
from scorers.price import cost_usd

REQUEST_MAX = 256 << 20
"""Bytes of a request. It is held whole, for a retry; without a bound one cell could take the memory of
all.
"""

REFUSED_RECORDS_MAX = 1000
"""Calls refused by the gateway itself that are recorded; more are only counted, so that a cell cannot fill
the disk.
"""

PATH_MAX = 200
"""Characters of a request's path, and of its query, that are recorded."""

logger = logging.getLogger("gateway")


class ClientGoneError(Exception):
    """The CLI closed its connection before it had the whole response."""


@dataclass
class Cell:
    """The state of one open cell. `notify` sends an event (`wait_start`, `wait_end`, `limit`, `differs`) to
    the runner.
    """

    route: CellRoute
    wire: WireFormat
    source: Source
    recorder: Recorder
    clock: Clock
    notify: Callable[[str], None]
    calls: int = 0
    refused: int = 0
    charged: int = 0
    tokens: int = 0
    usd: float = 0.0
    limit_reached: bool = False
    _waiting: int = field(default=0, init=False)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one HTTP request of the cell's socket."""
        path = self.wire.match(request.method, request.path, self.route.model)
        if path is None:
            return self._answer(404, f"cab serves no {request.method} of this path", "not_found")
        if not self._authorised(request):
            self._refuse(request, Failure("unauthorised", "wrong or missing credential"), 401)
            return self._answer(401, "wrong or missing credential", "unauthorised")
        if path.target == "models":
            models = self.wire.models_body(self.route.model, one=path.model is not None)
            return web.Response(body=models, content_type="application/json")
        if path.target == "call" and (limit := self._limit()):
            self._refuse(request, limit, 403)
            if not self.limit_reached:
                self.limit_reached = True
                self.notify("limit")
            return self._answer(403, f"the limit on {LIMIT_ERRORS[limit.category]} was reached", "limit")
        return await self._call(request, path)

    def _limit(self) -> Failure | None:
        """The limit that is used up, if any."""
        route = self.route
        if route.max_calls is not None and self.charged >= route.max_calls:
            return Failure("limit", f"{route.max_calls} calls were made")
        if route.max_tokens is not None and self.tokens >= route.max_tokens:
            return Failure("limit_tokens", f"{self.tokens} tokens of {route.max_tokens} were used")
        if route.max_usd is not None and self.usd >= route.max_usd:
            return Failure("limit_usd", f"{self.usd:.6f} USD of {route.max_usd} were spent")
        return None

    def _spend(self, call: CallInProgress) -> None:
        """Count what a call that has ended stated of its usage, whichever way it ended."""
        usage = normalise_usage(self.wire.name, call.reading.usage_raw)
        if usage is not None:
            self.tokens += usage.input + usage.output
            if self.route.price is not None:
                self.usd += cost_usd(usage, self.route.price)

    async def _call(self, request: web.BaseRequest, path: Path) -> web.StreamResponse:
        call = self._begin(request, path.target)
        charge = 1 if path.target == "call" else 0
        self.charged += charge
        try:
            return await self._serve(call, request, path)
        except asyncio.CancelledError:
            call.failure = Failure("client_gone", "the CLI went away")
            raise
        except ClientGoneError:
            call.failure = Failure("client_gone", "the CLI went away while the response was sent")
            return web.Response(status=499)
        except Exception as fault:
            logger.exception("fault in a call of cell %s", self.route.cell_id)
            call.failure = Failure("gateway", type(fault).__name__)
            _break_off(request)
            return web.Response(status=500)
        finally:
            if call.failure is not None and call.failure.category in INFRA:
                self.charged -= charge
            self._spend(call)
            self.recorder.add(call)

    async def _serve(self, call: CallInProgress, request: web.BaseRequest, path: Path) -> web.StreamResponse:
        body = await _read_body(request)
        call.request_body = body[:REQUEST_MAX]
        if len(body) > REQUEST_MAX:
            return self._bad_request(call, 413, f"the request is larger than {REQUEST_MAX} bytes")
        try:
            prepared = self.wire.prepare(body, self.route.model)
        except ValueError as error:
            return self._bad_request(call, 400, f"not a request of this wire: {error}")
        call.request, call.settings = prepared.request, prepared.settings
        call.request_model = path.model or bounded(prepared.request.get("model"))
        query = _query_without_key(request.query_string)
        reply = await self.source.send(call, Outgoing(self.wire, path, query, request.headers, prepared.body))
        call.status, call.failure = reply.status, reply.failure
        try:
            return await self._pass_on(call, request, reply, prepared.shown)
        finally:
            reply.close()

    async def _pass_on(
        self, call: CallInProgress, request: web.BaseRequest, reply: Reply, shown: Shown | None
    ) -> web.StreamResponse:
        """Send the reply as it comes, one write for each chunk; a body that breaks off breaks the
        connection.
        """
        call.streamed = reply.header("content-type").startswith("text/event-stream")
        meter = self._meter(call, shown)
        call.reading = meter.reading
        call.headers = {name: value for name in HEADERS_KEPT if (value := reply.header(name))}
        response = web.StreamResponse(status=reply.status)
        shortened = call.streamed and shown is not None
        for name, value in reply.headers:
            if not (shortened and name.lower() == "content-length"):
                response.headers.add(name, value)
        await _to_client(response.prepare(request))
        try:
            async for data in reply.chunks:
                call.received(data)
                passed = meter.feed(data)
                if call.streamed and meter.reading.spoke:
                    call.spoken()
                if passed:
                    await _to_client(response.write(passed))
        except StreamCutError as cut:
            meter.finish()
            call.cut = True
            call.failure = Failure(cut.category, str(cut))
            _break_off(request)
            return response
        if rest := meter.finish():
            await _to_client(response.write(rest))
        await _to_client(response.write_eof())
        if call.failure is None:
            call.failure = meter.reading.failure
        if call.failure is None and not meter.reading.complete:
            call.failure = Failure("stream_cut", "the stream stopped before its end")
        return response

    def _meter(self, call: CallInProgress, shown: Shown | None) -> Meter:
        if call.target == "count":
            return Unread()
        return StreamMeter(self.wire.read, shown) if call.streamed else PlainMeter(self.wire.read)

    def _begin(self, request: web.BaseRequest, target: Target = "call") -> CallInProgress:
        query = _query_without_key(request.query_string)
        path = (request.path + (f"?{query}" if query else ""))[:PATH_MAX]
        call = CallInProgress(self.calls, self.wire.name, path, self.clock.monotonic, self._wait, target)
        self.calls += 1
        return call

    def _wait(self, begins: bool) -> None:
        """The cell waits as long as any of its calls does."""
        self._waiting += 1 if begins else -1
        if begins and self._waiting == 1:
            self.notify("wait_start")
        elif not begins and self._waiting == 0:
            self.notify("wait_end")

    def _refuse(self, request: web.BaseRequest, failure: Failure, status: int) -> None:
        """Record a call that the gateway refuses by itself."""
        self.refused += 1
        if self.refused <= REFUSED_RECORDS_MAX:
            call = self._begin(request)
            call.failure, call.status = failure, status
            self.recorder.add(call)

    def _bad_request(self, call: CallInProgress, status: int, message: str) -> web.Response:
        call.failure, call.status = Failure("bad_request", message), status
        return self._answer(status, message, "too_large" if status == 413 else "bad_request")

    def _answer(self, status: int, message: str, kind: ErrorKind) -> web.Response:
        body = self.wire.error_body(message, kind)
        return web.Response(status=status, body=body, content_type="application/json")

    def _authorised(self, request: web.BaseRequest) -> bool:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        offered = [token.strip() if scheme.lower() == "bearer" else ""]
        offered += [request.headers.get(name, "") for name in ("x-api-key", "x-goog-api-key")]
        offered.append(request.query.get("key", ""))
        expected = self.route.credential.encode()
        matches = [hmac.compare_digest(token.encode("utf-8", "replace"), expected) for token in offered]
        return any(matches)


async def _read_body(request: web.BaseRequest) -> bytes:
    """The body, up to one byte more than REQUEST_MAX."""
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    body = bytearray()
    async for data in request.content.iter_any():
        body += data
        if len(body) > REQUEST_MAX:
            break
    return bytes(body)


def _break_off(request: web.BaseRequest) -> None:
    """Close the CLI's connection after what was sent, without the end that a whole response has."""
    if request.transport is not None:
        request.transport.close()


def _query_without_key(query: str) -> str:
    return "&".join(part for part in query.split("&") if part and part.partition("=")[0] != "key")


async def _to_client(sending: Awaitable[object]) -> None:
    try:
        await sending
    except ConnectionError as error:
        raise ClientGoneError from error
