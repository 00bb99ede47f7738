"""The way to an endpoint: one keep-alive client, and what is retried, after which wait."""

from __future__ import annotations

import asyncio
import io
import math
import random
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from functools import partial
from types import SimpleNamespace
from typing import Protocol

import aiohttp
from yarl import URL

from orchestrator.gateway.contract import Endpoint
from orchestrator.gateway.faults import CATEGORIES, RATE_LIMITED
from orchestrator.gateway.joined import JoinedScrubber, KeySentError
from orchestrator.gateway.record import CallInProgress
from orchestrator.gateway.scrub import Scrubber, StreamScrubber
from orchestrator.gateway.window import Clock, Place, Window
from orchestrator.gateway.wire import Failure, Path, WireFormat

CONNECT_S = 30.0
SILENCE_S = 600.0
"""An endpoint that sends no byte for so long is taken for dead."""

BACKOFF_BASE_S = 0.5
BACKOFF_CAP_S = 60.0
STATED_WAIT_MAX_S = 900.0
"""A longer Retry-After is not waited for: retrying before it is useless, so the call fails at once."""

KEY_SENT = "the endpoint sent its own key, in pieces; the gateway ended the stream before it was whole"

_HOP_BY_HOP = frozenset(
    ("connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade")
)
_CREDENTIALS = frozenset(
    ("authorization", "proxy-authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie")
)
_OWN_REQUEST_HEADERS = (
    _HOP_BY_HOP
    | _CREDENTIALS
    | {
        *("host", "content-length", "expect", "accept-encoding"),
        # The server unpacks a request as it reads it.
        "content-encoding",
    }
)
_SKIP_DEFAULTS = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
_VERSION = re.compile(r"/v\d+\w*$")
_MAY_PASS = (408, 425)
_CONNECTION_ERRORS = (aiohttp.ClientError, OSError, asyncio.TimeoutError)


class StreamCutError(Exception):
    """A response ended before its end, after the first byte had been passed on; `category` is the call's."""

    def __init__(self, detail: str, category: str = "stream_cut") -> None:
        super().__init__(detail)
        self.category = category


class SystemClock:
    def monotonic(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@dataclass
class Reply:
    """A response on its way to the CLI. `failure` is set when it is the final failure of a call.

    `chunks` yields the body as it arrives and raises StreamCutError when it breaks off. `begun` says whether
    some of the body came with its head, `arrived` whether all of it is there by now.
    """

    status: int
    headers: list[tuple[str, str]]
    chunks: AsyncIterator[bytes]
    failure: Failure | None = None
    begun: bool = False
    arrived: Callable[[], bool] = lambda: False
    close: Callable[[], None] = lambda: None
    wait_hint: float | None = None

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name), "")


@dataclass(frozen=True)
class Outgoing:
    """A request on its way up: `path` and `query` go behind the base URL, `headers` are the CLI's own."""

    wire: WireFormat
    path: Path
    query: str
    headers: Mapping[str, str]
    body: bytes


class Source(Protocol):
    """Where a cell's calls go: an endpoint, a scripted model, or a recording."""

    async def send(self, call: CallInProgress, out: Outgoing) -> Reply: ...


async def whole(body: bytes) -> AsyncIterator[bytes]:
    """A body that is already there, as the chunks of a reply."""
    if body:
        yield body


@dataclass
class Upstream:
    """Calls to one endpoint, retried until they succeed or `max_retries` further attempts are spent.

    What is retried, `faults` says. Each attempt has a place in the endpoint's `window` until its answer has
    passed; a wait that the endpoint states holds for all cells. Counts of tokens are sent at once: a CLI
    makes do without one, so nothing is waited for. `jitter` draws from [0, 1).
    """

    endpoint: Endpoint
    session: aiohttp.ClientSession
    clock: Clock
    scrubber: Scrubber
    max_retries: int
    window: Window
    jitter: Callable[[], float] = random.random

    async def send(self, call: CallInProgress, out: Outgoing) -> Reply:
        url = URL(_url(self.endpoint.base_url, out.path, out.query), encoded=True)
        sent = {
            name: value for name, value in out.headers.items() if name.lower() not in _OWN_REQUEST_HEADERS
        }
        # Metering has to read what passes: ask for it uncompressed rather than unpack every chunk.
        sent |= {"Accept-Encoding": "identity", **out.wire.auth_headers(self.endpoint.key)}
        if call.target != "call":
            return await self._attempt(call, out.wire, url, sent, out.body)
        ticket, delay = self.window.ticket(), 0.0
        while True:
            place = await self._enter(call, ticket, delay)
            try:
                reply = await self._attempt(call, out.wire, url, sent, out.body)
            except BaseException:
                self.window.leave(place, "other")
                raise
            if reply.failure is None:
                return replace(reply, close=partial(self._leave, place, call, reply))
            category = reply.failure.category
            if stated := self._stated_for_all(reply):
                self.window.block(stated)
            self.window.leave(place, "limited" if category == RATE_LIMITED else "other")
            again = self._delay(reply, call.attempts)
            if again is None:
                return reply
            delay = 0.0 if stated else again
            call.attempts += 1

    async def _enter(self, call: CallInProgress, ticket: int, delay: float) -> Place:
        """A place in the window, after `delay` seconds; what was waited is kept."""
        if not delay and (place := self.window.try_enter()):
            return place
        start = self.clock.monotonic()
        call.on_wait(True)
        try:
            if delay:
                await self.clock.sleep(delay)
            return await self.window.enter(ticket)
        finally:
            end = self.clock.monotonic()
            call.waits.append((start, end))
            self.window.waited_s += end - start
            call.on_wait(False)

    def _leave(self, place: Place, call: CallInProgress, reply: Reply) -> None:
        """The end of a response that began well; it may have told an error later."""
        reply.close()
        limited = call.failure is not None and call.failure.category == RATE_LIMITED
        answered = call.failure is None and call.reading.answered
        self.window.leave(place, "limited" if limited else "answered" if answered else "other")

    async def _attempt(
        self, call: CallInProgress, wire: WireFormat, url: URL, headers: Mapping[str, str], body: bytes
    ) -> Reply:
        call.sent = self.clock.monotonic()
        call.connect_s = call.connection_reused = None
        try:
            response = await self.session.post(
                url,
                data=io.BytesIO(body),
                headers=headers,
                allow_redirects=False,
                skip_auto_headers=_SKIP_DEFAULTS,
                trace_request_ctx=call,
            )
        except _CONNECTION_ERRORS as error:
            # A server may close an idle connection in the instant in which it is used again: no reason to
            # wait.
            hint = 0.0 if isinstance(error, aiohttp.ServerDisconnectedError) else None
            return self._unreachable(wire, error, hint)
        passed = self._headers(response)
        if response.status < 300:
            return Reply(
                response.status,
                passed,
                self._chunks(response, wire),
                begun=response.content.total_bytes > 0,
                arrived=response.content.at_eof,
                close=response.close,
            )
        try:
            text = self.scrubber.clean(await response.read())
        except _CONNECTION_ERRORS as error:
            response.close()
            return self._unreachable(wire, error, None)
        failure = wire.classify(response.status, text)
        stated = None if failure.wait_s == math.inf else self._stated_wait(response)
        wait = failure.wait_s if stated is None else stated
        return Reply(response.status, passed, whole(text), failure, wait_hint=wait)

    def _unreachable(self, wire: WireFormat, error: BaseException, hint: float | None) -> Reply:
        detail = self.scrubber.clean_text(f"{type(error).__name__}: {error}")
        body = wire.error_body("the model endpoint cannot be reached", "endpoint_down")
        headers = [("Content-Type", "application/json")]
        return Reply(502, headers, whole(body), Failure("endpoint_down", detail), wait_hint=hint)

    def _delay(self, reply: Reply, attempt: int) -> float | None:
        """Seconds to wait before the next attempt; None when there is to be none."""
        if reply.failure is None or not CATEGORIES[reply.failure.category].retried:
            return None
        if 300 <= reply.status < 429 and reply.status not in _MAY_PASS:
            return None
        if attempt > self.max_retries:
            return None
        if reply.wait_hint is not None and (reply.wait_hint > 0 or attempt == 1):
            return reply.wait_hint if reply.wait_hint <= STATED_WAIT_MAX_S else None
        return self.jitter() * min(BACKOFF_CAP_S, BACKOFF_BASE_S * 2.0**attempt)

    def _stated_for_all(self, reply: Reply) -> float | None:
        """Seconds for which the endpoint asked to be left alone, where that is a wait for all cells."""
        failure, wait = reply.failure, reply.wait_hint
        if failure is None or not wait or wait > STATED_WAIT_MAX_S:
            return None
        return wait if CATEGORIES[failure.category].retried else None

    def _stated_wait(self, response: aiohttp.ClientResponse) -> float | None:
        """Seconds of `retry-after-ms` or `Retry-After` (seconds or a date); None when neither can be read."""
        for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
            try:
                return max(0.0, float(response.headers[name]) / unit)
            except (KeyError, ValueError):
                continue
        try:
            date = parsedate_to_datetime(response.headers.get("retry-after", ""))
            return max(0.0, date.timestamp() - self.clock.wall())
        except (ValueError, OverflowError):
            return None

    def _headers(self, response: aiohttp.ClientResponse) -> list[tuple[str, str]]:
        """The response's headers to pass on. aiohttp unpacks a body that came compressed against our
        asking.
        """
        dropped = _HOP_BY_HOP
        if response.headers.get("Content-Encoding", "identity") != "identity":
            dropped = dropped | {"content-encoding", "content-length"}
        return [
            (name, self.scrubber.clean_text(value))
            for name, value in response.headers.items()
            if name.lower() not in dropped
        ]

    async def _chunks(self, response: aiohttp.ClientResponse, wire: WireFormat) -> AsyncIterator[bytes]:
        scrub = StreamScrubber(self.scrubber)
        # Not by the type of a stream: a client that asked for one reads it as one, whatever it is called.
        streams = self.scrubber.longest and response.content_type != "application/json"
        joined = JoinedScrubber(self.scrubber, wire.texts) if streams else None
        cut: StreamCutError | None = None
        try:
            try:
                async for data in response.content.iter_any():
                    clean = scrub.feed(data)
                    if clean and (passed := joined.feed(clean) if joined else clean):
                        yield passed
            except _CONNECTION_ERRORS as error:
                cut = StreamCutError(self.scrubber.clean_text(f"{type(error).__name__}: {error}"))
            rest = scrub.rest()
            if rest := joined.feed(rest) + joined.rest() if joined else rest:
                yield rest
        except KeySentError as error:
            if error.passed:
                yield error.passed
            raise StreamCutError(KEY_SENT, "gateway") from error
        if cut is not None:
            raise cut


def _url(base_url: str, path: Path, query: str) -> str:
    base = base_url.rstrip("/")
    version = f"/{path.version}" if path.version and not _VERSION.search(base) else ""
    return f"{base}{version}{path.upstream}" + (f"?{query}" if query else "")


def new_session(clock: Clock) -> aiohttp.ClientSession:
    """The client for all endpoints: no limit on connections, no cookies, nothing taken from the
    environment. It tells each call whether its connection was there already, else how long it took.
    """
    trace = aiohttp.TraceConfig()

    async def creating(_: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
        context.since = clock.monotonic()

    async def created(_: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
        call: CallInProgress = context.trace_request_ctx
        call.connect_s, call.connection_reused = clock.monotonic() - context.since, False

    async def reused(_: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
        call: CallInProgress = context.trace_request_ctx
        call.connection_reused = True

    trace.on_connection_create_start.append(creating)
    trace.on_connection_create_end.append(created)
    trace.on_connection_reuseconn.append(reused)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=SILENCE_S),
        trust_env=False,
        trace_configs=[trace],
    )
