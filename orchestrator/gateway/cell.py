"""One cell's side of the gateway: its socket's requests are checked, counted, passed on, metered and
recorded.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from aiohttp import web

from orchestrator.gateway.contract import CellRoute
from orchestrator.gateway.evidence import normalise_usage
from orchestrator.gateway.faults import INFRA
from orchestrator.gateway.jsontext import utf8
from orchestrator.gateway.record import HEADERS_KEPT, CallInProgress, Recorder
from orchestrator.gateway.settings import AS_THE_CLI_ASKS
from orchestrator.gateway.translate.contract import Asked, Translation, TranslationError
from orchestrator.gateway.translate.passage import Passage, Whole, passed_headers
from orchestrator.gateway.upstream import Outgoing, Reply, Source, StreamCutError
from orchestrator.gateway.window import Clock
from orchestrator.gateway.wire import ErrorKind, Failure, Path, Prepared, Shown, Target, WireFormat
from orchestrator.gateway.wires.meters import Meter, PlainMeter, StreamMeter, Unread
from orchestrator.gateway.wires.shared import bounded
from scorers.evidence import LIMIT_ERRORS, OTHER_MODEL
from scorers.price import cost_usd

REQUEST_MAX = 256 << 20
"""Bytes of a request. It is held whole, for a retry; without a bound one cell could take the memory of
all.
"""

HELD_MAX = 2 * REQUEST_MAX
"""Bytes of all requests of a cell that are under way."""

REFUSED_RECORDS_MAX = 1000
"""Calls refused by the gateway itself that are recorded, and counts of tokens; more are only counted, so that
a cell cannot fill the disk with what it is not charged for.
"""

STALLED_S = 300.0
"""A CLI that takes no byte of its answer for so long is taken to be gone: its call holds a place at the
endpoint that others wait for.
"""

PATH_MAX = 200
"""Characters of a request's path, and of its query, that are recorded."""

_UNCHARGED = frozenset((*INFRA, OTHER_MODEL))
_REFUSED = frozenset((*LIMIT_ERRORS, OTHER_MODEL, "unauthorised"))
TRANSLATED_PATH = Path("call", "/chat/completions")
"""Where translated requests go: all translations end in chat completions."""

logger = logging.getLogger("gateway")


class ClientGoneError(Exception):
    """The CLI closed its connection before it had the whole response."""


@dataclass(frozen=True)
class Up:
    """A request on its way up, and where it was translated the way back for its answer."""

    prepared: Prepared
    path: Path
    query: str
    passage: Passage | None = None


class _Response(web.StreamResponse):
    """A response whose head goes out with the first bytes of its body: each write wakes the CLI."""

    _send_headers_immediately = False

    async def begin(self, request: web.BaseRequest, *, at_once: bool) -> None:
        """Prepare it; `at_once` sends the head by itself, since the body may be long in coming."""
        writer = await self.prepare(request)
        if at_once and writer is not None:
            writer.send_headers()


@dataclass
class Cell:
    """The state of one open cell. `wire` is the source's, `cli_wire` the CLI's; where they differ
    `translation` stands between. `notify` sends an event (`wait_start`, `wait_end`, `limit`, `differs`) to
    the runner.
    """

    route: CellRoute
    wire: WireFormat
    source: Source
    recorder: Recorder
    clock: Clock
    notify: Callable[[str], None]
    cli_wire: WireFormat
    translation: Translation | None = None
    calls: int = 0
    refused: int = 0
    charged: int = 0
    tokens: int = 0
    usd: float = 0.0
    limit_reached: bool = False
    _waiting: int = field(default=0, init=False)
    _held: int = field(default=0, init=False)
    _counts: int = field(default=0, init=False)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one HTTP request of the cell's socket."""
        path = self.cli_wire.match(request.method, request.path, self.route.model)
        if path is None:
            return self._answer(404, f"cab serves no {request.method} of this path", "not_found")
        if not self._authorised(request):
            self._refuse(request, Failure("unauthorised", "wrong or missing credential"), 401)
            return self._answer(401, "wrong or missing credential", "unauthorised")
        if path.target == "models":
            models = self.cli_wire.models_body(self.route.model, one=path.model is not None)
            return web.Response(body=models, content_type="application/json")
        if self.translation is not None and not self.translation.serves(path):
            return self._answer(404, "the model's endpoint has no such call", "not_found")
        # Nothing is waited for between the look at the limit and the charge: calls at once would all pass.
        await self.recorder.room()
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
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=499)
        except Exception as fault:
            logger.exception("fault in a call of cell %s", self.route.cell_id)
            call.failure = Failure("gateway", type(fault).__name__)
            _break_off(request)
            return web.Response(status=500)
        finally:
            if call.failure is not None and call.failure.category in _UNCHARGED:
                self.charged -= charge
            self._held -= call.held
            self._spend(call)
            self._record(call)

    async def _serve(self, call: CallInProgress, request: web.BaseRequest, path: Path) -> web.StreamResponse:
        try:
            body = await self._read_body(call, request)
        except web.RequestPayloadError as error:
            return self._bad_request(call, 400, f"the request's body cannot be read: {error}")
        call.request_body = body[:REQUEST_MAX]
        if len(body) > REQUEST_MAX or self._held > HELD_MAX:
            most = f"{REQUEST_MAX} bytes, or those under way than {HELD_MAX}"
            return self._bad_request(call, 413, f"the request is larger than {most}")
        query = _query_without_key(request.query_string)
        try:
            asked = self._asked(call, body, path, query)
        except TranslationError as error:
            return self._untranslatable(call, str(error))
        except ValueError as error:
            return self._bad_request(call, 400, f"not a request of this wire: {error}")
        except RecursionError:
            return self._bad_request(call, 400, "not a request of this wire: nested too deeply")
        prepared = asked.prepared
        call.request, call.settings = prepared.request, prepared.settings
        call.settings_before = prepared.settings_before
        if call.other_model and self.route.other_models == "refuse":
            return self._refuse_model(call)
        headers = request.headers if asked.passage is None else _own_headers(request.headers)
        out = Outgoing(self.wire, asked.path, asked.query, headers, prepared.body)
        reply = await self.source.send(call, out)
        call.status, call.failure = reply.status, reply.failure
        try:
            if asked.passage is not None:
                return await self._pass_translated(call, request, reply, asked.passage)
            return await self._pass_on(call, request, reply, prepared.shown)
        finally:
            reply.close()

    async def _read_body(self, call: CallInProgress, request: web.BaseRequest) -> bytes:
        """The body, as far as it may go and a piece more."""
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = bytearray()
        async for data in request.content.iter_any():
            body += data
            call.held += len(data)
            self._held += len(data)
            if len(body) > REQUEST_MAX or self._held > HELD_MAX:
                break
        return bytes(body)

    def _asked(self, call: CallInProgress, body: bytes, path: Path, query: str) -> Up:
        """The request as it goes upstream. Raises ValueError, of which TranslationError is one."""
        wanted = self.route.settings if path.generates else AS_THE_CLI_ASKS
        # Where it is translated, what is wanted is set on the request that goes upstream.
        own = wanted if self.translation is None else AS_THE_CLI_ASKS
        stated = self.cli_wire.prepare(body, self.route.model, own)
        call.request_model = path.model or bounded(stated.request.get("model"))
        call.other_model = _bare(call.request_model or self.route.model) != _bare(self.route.model)
        if self.translation is None:
            return Up(stated, path, query)
        translated = self.translation.request(Asked(stated.request, path, query))
        call.request_body = utf8(translated.request)
        call.cli_wire, call.dropped = self.cli_wire.name, list(translated.dropped)
        prepared = self.wire.prepare(call.request_body, self.route.model, wanted)
        return Up(prepared, TRANSLATED_PATH, "", Passage(self.translation, translated))

    async def _pass_on(
        self, call: CallInProgress, request: web.BaseRequest, reply: Reply, shown: Shown | None
    ) -> web.StreamResponse:
        """Send the reply as it comes, what arrived together in one write; a body that breaks off breaks the
        connection.
        """
        meter = self._begin_reading(call, reply, shown)
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
            _take_cut(call, meter, cut, request)
            return response
        await _to_client(response.write_eof(rest + meter.finish()))
        _take_end(call, meter)
        return response

    async def _pass_translated(
        self, call: CallInProgress, request: web.BaseRequest, reply: Reply, passage: Passage
    ) -> web.StreamResponse:
        """Send the reply on the CLI's wire: a stream as it comes, anything else when it is whole."""
        meter = self._begin_reading(call, reply, None)
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
            _take_cut(call, meter, cut, request)
            return response
        meter.finish()
        _take_end(call, meter)
        rest = passage.finish() if at_once else b""
        if not at_once:
            whole = _translated(call, passage, reply.status, bytes(body))
            # What JSON escapes is plain text once it is written anew.
            rest = self.recorder.scrubber.clean(whole.body)
            response.set_status(whole.status)
            response.content_type = whole.content_type.partition(";")[0]
            response.content_length = len(rest)
            await _to_client(response.prepare(request))
        await _to_client(response.write_eof(rest))
        return response

    def _begin_reading(self, call: CallInProgress, reply: Reply, shown: Shown | None) -> Meter:
        call.streamed = reply.header("content-type").lower().startswith("text/event-stream")
        meter = self._meter(call, shown)
        call.reading = meter.reading
        call.headers = {name: value for name in HEADERS_KEPT if (value := reply.header(name))}
        return meter

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
        call = self._begin(request)
        call.failure, call.status = failure, status
        self._record(call)

    def _refuse_model(self, call: CallInProgress) -> web.Response:
        message = f"the model {call.request_model!r} does not exist"
        call.failure, call.status = Failure(OTHER_MODEL, message), 404
        return self._answer(404, message, "model_not_found")

    def _record(self, call: CallInProgress) -> None:
        """Record a call that has ended; of those that the gateway refused by itself, the first ones."""
        refused = call.failure is not None and call.failure.category in _REFUSED
        unsent = call.failure is not None and call.failure.category == "gateway" and call.sent is None
        self.refused += refused or unsent
        self._counts += call.target == "count"
        if self.refused > REFUSED_RECORDS_MAX and (refused or unsent):
            return
        if self._counts > REFUSED_RECORDS_MAX and call.target == "count":
            return
        self.recorder.add(call)

    def _untranslatable(self, call: CallInProgress, message: str) -> web.Response:
        """The CLI asked for nothing wrong: it is cab that cannot bring it to this endpoint."""
        call.failure, call.status = Failure("gateway", f"cannot be translated: {message}"), 400
        return self._answer(400, message, "bad_request")

    def _bad_request(self, call: CallInProgress, status: int, message: str) -> web.Response:
        call.failure, call.status = Failure("bad_request", message), status
        return self._answer(status, message, "too_large" if status == 413 else "bad_request")

    def _answer(self, status: int, message: str, kind: ErrorKind) -> web.Response:
        body = self.cli_wire.error_body(message, kind)
        return web.Response(status=status, body=body, content_type="application/json")

    def _authorised(self, request: web.BaseRequest) -> bool:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        offered = [token.strip() if scheme.lower() == "bearer" else ""]
        offered += [request.headers.get(name, "") for name in ("x-api-key", "x-goog-api-key")]
        offered.append(request.query.get("key", ""))
        expected = self.route.credential.encode()
        matches = [hmac.compare_digest(token.encode("utf-8", "replace"), expected) for token in offered]
        return any(matches)


def _bare(model: str) -> str:
    """A model's id without the word that Gemini's wire puts before it."""
    return model.removeprefix("models/")


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
    _break_off(request)


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


def _own_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers of a translated request: those of the CLI speak of its own wire, but for its name."""
    named = {name: value for name, value in headers.items() if name.lower() == "user-agent"}
    return {"Content-Type": "application/json", **named}


def _break_off(request: web.BaseRequest) -> None:
    """Close the CLI's connection after what was sent, without the end that a whole response has."""
    if request.transport is not None:
        request.transport.close()


def _query_without_key(query: str) -> str:
    return "&".join(part for part in query.split("&") if part and part.partition("=")[0] != "key")


async def _to_client(sending: Awaitable[object]) -> None:
    try:
        async with asyncio.timeout(STALLED_S):
            await sending
    except (ConnectionError, TimeoutError) as error:
        raise ClientGoneError from error
