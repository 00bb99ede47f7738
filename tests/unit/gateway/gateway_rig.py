"""A gateway in this process between a scripted upstream on loopback and a client on the cell's Unix
socket.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from orchestrator.adapter import Wire
from orchestrator.gateway.contract import CellRoute, Endpoint, RawCall, Script
from orchestrator.gateway.evidence import WireBody, read_wire
from orchestrator.gateway.server import GatewayServer

KEY = "sk-live-0123456789/abcdef+XYZ"
CREDENTIAL = "cell-credential-42"
MODEL = "vendor/model-1"
AUTH = {"Authorization": f"Bearer {CREDENTIAL}"}
URL = "http://cell/v1/chat/completions"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class FakeClock:
    """Sleeps at once and remembers for how long."""

    slept: list[float] = field(default_factory=list)
    now: float = 100.0

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> float:
        return 1_800_000_000.0

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@dataclass
class Seen:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Rig:
    server: GatewayServer
    client: aiohttp.ClientSession
    route: CellRoute
    clock: FakeClock
    seen: list[Seen]
    events: list[str]

    async def post(self, body: Any, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with self.client.post(
            URL, data=io.BytesIO(data), headers=AUTH if headers is None else headers
        ) as response:
            return response.status, await response.read()

    async def close(self) -> list[RawCall]:
        """Close the cell and read its calls."""
        await self.server.close_cell(self.route.cell_id)
        return calls(self.route)

    def wire(self) -> list[WireBody]:
        return list(read_wire(self.route.wire_path))


def calls(route: CellRoute) -> list[RawCall]:
    return [RawCall.model_validate_json(line) for line in route.calls_path.read_text().splitlines()]


def make_route(folder: Path, **changes: Any) -> CellRoute:
    values: dict[str, Any] = {
        "cell_id": "cell",
        "socket": folder / "m.sock",
        "socket_owner": (os.geteuid(), os.getegid()),
        "credential": CREDENTIAL,
        "model": MODEL,
        "endpoint": "up",
        "calls_path": folder / "calls.jsonl",
        "wire_path": folder / "wire.jsonl.gz",
    }
    return CellRoute(**(values | changes))


def scripted(folder: Path, script: Script, **changes: Any) -> CellRoute:
    return make_route(folder, endpoint=None, script=script, model=f"embedded/{script.kind}", **changes)


@asynccontextmanager
async def upstream(handler: Handler, seen: list[Seen]) -> AsyncIterator[str]:
    """A server on loopback; yields its base URL."""

    async def handle(request: web.Request) -> web.StreamResponse:
        seen.append(Seen(request.path_qs, dict(request.headers), await request.read()))
        return await handler(request)

    app = web.Application(client_max_size=1 << 26)
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def rig(
    folder: Path,
    handler: Handler,
    *,
    base_url: str | None = None,
    wire: Wire = "chat",
    concurrency: int | None = None,
    **changes: Any,
) -> AsyncIterator[Rig]:
    seen: list[Seen] = []
    events: list[str] = []
    clock = FakeClock()
    server = GatewayServer(lambda event, _: events.append(event), clock)
    route = make_route(folder, **changes)
    async with upstream(handler, seen) as url:
        endpoint = Endpoint(name="up", base_url=base_url or url, key=KEY, wire=wire, concurrency=concurrency)
        server.add_endpoint(endpoint)
        await server.open_cell(route)
        connector = aiohttp.UnixConnector(str(route.socket))
        try:
            async with aiohttp.ClientSession(connector=connector) as client:
                yield Rig(server, client, route, clock, seen, events)
        finally:
            await server.close()


def json_reply(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Handler:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()

    async def handle(request: web.Request) -> web.StreamResponse:
        return web.Response(body=body, status=status, content_type="application/json", headers=headers)

    return handle


def stream_reply(
    pieces: list[bytes], gates: list[asyncio.Event] | None = None, *, cut: bool = False
) -> Handler:
    """Send the pieces, each in a chunk of its own, each behind its gate where there are gates."""

    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for number, piece in enumerate(pieces):
            if gates is not None:
                await gates[number].wait()
            await response.write(piece)
        if cut and request.transport is not None:
            request.transport.close()
        return response

    return handle


def in_turn(*handlers: Handler) -> Handler:
    """The first handler for the first request, …; the last one for all further ones."""
    waiting = list(handlers)

    async def handle(request: web.Request) -> web.StreamResponse:
        return await (waiting.pop(0) if len(waiting) > 1 else waiting[0])(request)

    return handle


def request_body(**changes: Any) -> dict[str, Any]:
    return {"model": "alias", "messages": [{"role": "user", "content": "Say hi"}], **changes}


def completion(content: str = "hi", **changes: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    return {
        "id": "c1",
        "object": "chat.completion",
        "model": "vendor/model-1-build7",
        "choices": [choice],
        "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15},
        **changes,
    }


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def chunk(delta: dict[str, Any], finish: str | None = None, **changes: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "model": "build7", "choices": [choice], **changes}


def stream_events(*, usage: bool) -> list[bytes]:
    """A short streamed answer, as an endpoint sends it with or without `include_usage`."""
    extra: dict[str, Any] = {"usage": None} if usage else {}
    events = [event(chunk({"role": "assistant", "content": ""}, **extra))]
    events += [event(chunk({"content": text}, **extra)) for text in ("Hé", "llo")]
    events.append(event(chunk({}, "stop", **extra)))
    if usage:
        totals = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
        events.append(event({**chunk({}), "choices": [], "usage": totals}))
    return [*events, b"data: [DONE]\n\n"]
