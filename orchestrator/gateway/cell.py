"""One cell's side of the gateway: its socket's requests are checked, counted, passed on, metered and
recorded.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from aiohttp import web

from orchestrator.gateway.contract import CellRoute
from orchestrator.gateway.evidence import normalise_usage
from orchestrator.gateway.faults import INFRA
from orchestrator.gateway.jsontext import utf8
from orchestrator.gateway.passing import ClientGoneError, break_off, pass_on, pass_translated
from orchestrator.gateway.record import CallInProgress, Recorder
from orchestrator.gateway.settings import AS_THE_CLI_ASKS
from orchestrator.gateway.translate.contract import Asked, Translation, TranslationError
from orchestrator.gateway.translate.passage import Passage
from orchestrator.gateway.upstream import Outgoing, Source
from orchestrator.gateway.window import Clock
from orchestrator.gateway.wire import ErrorKind, Failure, Path, Prepared, Target, WireFormat
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

PATH_MAX = 200
"""Characters of a request's path, and of its query, that are recorded."""

_UNCHARGED = frozenset((*INFRA, OTHER_MODEL))
_REFUSED = frozenset((*LIMIT_ERRORS, OTHER_MODEL, "unauthorised"))
TRANSLATED_PATH = Path("call", "/chat/completions")
"""Where translated requests go: all translations end in chat completions."""

logger = logging.getLogger("gateway")


@dataclass(frozen=True)
class Up:
    """A request on its way up, and where it was translated the way back for its answer."""

    prepared: Prepared
    path: Path
    query: str
    passage: Passage | None = None


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
            break_off(request)
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
                scrubber = self.recorder.scrubber
                return await pass_translated(call, request, reply, self.wire, asked.passage, scrubber)
            return await pass_on(call, request, reply, self.wire, prepared.shown)
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


def _own_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers of a translated request: those of the CLI speak of its own wire, but for its name."""
    named = {name: value for name, value in headers.items() if name.lower() == "user-agent"}
    return {"Content-Type": "application/json", **named}


def _query_without_key(query: str) -> str:
    return "&".join(part for part in query.split("&") if part and part.partition("=")[0] != "key")
