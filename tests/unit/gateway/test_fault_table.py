"""The fault table, one case a row on each wire: against an endpoint on loopback, through the real gateway."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from gateway_rig import AUTH, Handler, Rig, json_reply, rig, stream_reply
from wire_corpus import PLAIN, STREAMED, Exchange, counted

from orchestrator.adapter import Wire
from orchestrator.gateway import upstream
from orchestrator.gateway.faults import CATEGORIES, FAULTS, INFRA, as_markdown
from orchestrator.gateway.wires import WIRES
from orchestrator.run.outcome import INFRA_CAUSES, TABLE, of_agent, with_cause
from scorers.evidence import AgentEnd, ModelCall

RETRIES = 1
BROKEN = "something broke"
STREAM: dict[Wire, Exchange] = {
    e.wire: e for e in STREAMED if e.usage and e.content_type == "text/event-stream"
}
EVENTS: dict[Wire, tuple[Any, Any]] = {
    "chat": ({"error": {"code": 502, "message": "x"}}, {"error": {"code": 429, "message": "x"}}),
    "responses": (
        {"type": "error", "code": "server_error", "message": "x"},
        {"type": "error", "code": "rate_limit_exceeded", "message": "x"},
    ),
    "messages": (
        {"type": "error", "error": {"type": "overloaded_error", "message": "x"}},
        {"type": "error", "error": {"type": "rate_limit_error", "message": "x"}},
    ),
    "gemini": (
        {"error": {"code": 500, "status": "INTERNAL", "message": "x"}},
        {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "x"}},
    ),
}
"""An error event, and one that tells of a rate limit, by wire."""


@dataclass(frozen=True)
class Case:
    """How a row is made to happen: what the endpoint does, whether a stream is asked for, and `sent`, what is
    asked with; `body` is what the endpoint sends where the CLI gets it as it came.
    """

    handler: Handler
    streamed: bool = False
    status: int = 200
    body: bytes | None = None
    sent: bytes | None = None
    base_url: str | None = None
    headers: dict[str, str] | None = None


def said(wire: Wire, status: int, message: str = BROKEN, **headers: str) -> Case:
    """An error in the shape of the wire."""
    error: dict[str, Any] = {"message": message}
    error |= {"type": "x"} if wire != "gemini" else {"code": status, "status": "X"}
    body = json.dumps({"type": "error", "error": error} if wire == "messages" else {"error": error}).encode()
    return Case(json_reply(body, status, headers), status=status, body=body)


def whole(body: bytes, kind: str = "application/json", *, streamed: bool = False) -> Case:
    """A response with status 200."""

    async def handle(_: web.Request) -> web.StreamResponse:
        return web.Response(body=body, headers={"Content-Type": kind})

    return Case(handle, streamed=streamed, body=body)


def pieces(parts: list[bytes]) -> Case:
    return Case(stream_reply(parts), streamed=True, body=b"".join(parts))


async def drop(request: web.Request) -> web.StreamResponse:
    assert request.transport is not None
    request.transport.close()
    return web.Response()


async def silent(_: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


def stalled(parts: list[bytes]) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for part in parts:
            await response.write(part)
        return await silent(request)

    return handle


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


CASES: dict[str, Callable[[Wire], Case]] = {
    "429": lambda wire: said(wire, 429),
    "429-hopeless": lambda wire: said(wire, 429, "insufficient_quota"),
    "429-long": lambda wire: said(wire, 429, **{"Retry-After": "901"}),
    **{str(status): lambda wire, status=status: said(wire, status) for status in (500, 502, 503, 504, 408)},
    "refused": lambda _: Case(drop, base_url="http://127.0.0.1:1/v1", status=502),
    "dropped": lambda _: Case(drop, status=502),
    "silent": lambda _: Case(silent, status=502),
    "stalled": lambda wire: Case(stalled(STREAM[wire].pieces[:2]), streamed=True),
    "cut": lambda wire: Case(stream_reply(STREAM[wire].pieces[:2], cut=True), streamed=True),
    "unfinished": lambda wire: pieces(STREAM[wire].pieces[:2]),
    "empty-stream": lambda _: pieces([]),
    "error-event": lambda wire: pieces([*STREAM[wire].pieces[:2], event(EVENTS[wire][0])]),
    "limited-event": lambda wire: pieces([*STREAM[wire].pieces[:2], event(EVENTS[wire][1])]),
    "invalid-json": lambda wire: whole(b"".join(PLAIN[wire].pieces)[:-9]),
    "html": lambda _: whole(b"<html>Please log in</html>", "text/html"),
    "empty": lambda _: whole(b""),
    "no-answer": lambda _: whole(b"{}"),
    "wrong-type": lambda wire: whole(b"".join(STREAM[wire].pieces), "text/plain", streamed=True),
    "not-streamed": lambda wire: whole(b"".join(PLAIN[wire].pieces), streamed=True),
    "model-unknown": lambda wire: said(wire, 404, "no such model"),
    "key-refused": lambda wire: said(wire, 401),
    "no-permission": lambda wire: said(wire, 403),
    "overflow": lambda wire: said(wire, 400, "This model's maximum context length is 8192 tokens"),
    "bad-request": lambda wire: said(wire, 422),
    "malformed": lambda _: Case(drop, sent=b"{", status=400),
    "credential": lambda _: Case(drop, headers={"Authorization": "Bearer wrong"}, status=401),
}


@pytest.fixture
def short_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream, "SILENCE_S", 0.1)


@pytest.mark.usefixtures("short_silence")
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", FAULTS)
def test_row(tmp_path: Path, name: str, wire: Wire) -> None:
    fault, case = FAULTS[name], CASES[name](wire)
    attempts = 1 + RETRIES if fault.retried else 1

    async def run() -> None:
        changes = {"base_url": case.base_url, "max_retries": RETRIES}
        async with rig(tmp_path, case.handler, wire=wire, **changes) as gateway:
            status, body, broken = await received(gateway, case, wire)
            await gateway.close()
            [call] = counted(gateway)
            reaches = case.base_url is None and fault.receives not in ("400 of cab's", "401 of cab's")
            assert len(gateway.seen) == (attempts if reaches else 0)
        assert (call.error, call.attempts, status) == (fault.category, attempts, case.status)
        assert broken is (fault.receives == "what came, then a cut")
        if fault.receives == "as it came":
            assert body == case.body
        elif broken:
            assert body == b"".join(STREAM[wire].pieces[:2])
        else:
            assert str(status) == fault.receives.split()[0]
            assert_shape(body, wire)
        check_outcome(name, call)

    asyncio.run(run())


async def received(gateway: Rig, case: Case, wire: Wire) -> tuple[int, bytes, bool]:
    """Status, body, and whether the connection ended before the body did."""
    exchange = STREAM[wire] if case.streamed else PLAIN[wire]
    data = case.sent or json.dumps(exchange.request).encode()
    headers = case.headers or AUTH
    got = b""
    async with gateway.client.post(f"http://cell{exchange.path}", data=data, headers=headers) as response:
        try:
            async for chunk in response.content.iter_any():
                got += chunk
        except aiohttp.ClientPayloadError:
            return response.status, got, True
        return response.status, got, False


def assert_shape(body: bytes, wire: Wire) -> None:
    """An error as the wire's clients read one."""
    error = json.loads(body)
    assert error["error"]["message"]
    named = {"messages": ("type", str), "gemini": ("code", int)}.get(wire, ("code", str))
    assert isinstance(error["error"][named[0]], named[1])
    assert wire != "messages" or error["type"] == "error"


def check_outcome(name: str, call: ModelCall) -> None:
    """A cell that ends on it, whatever the CLI's exit code says."""
    fault = FAULTS[name]
    for code in (0, 1, 147):
        outcome = of_agent(AgentEnd(exit_code=code), [call], exit_code_tells=True)
        if fault.category is None:
            assert outcome.name == ("agent_crashed" if code else "completed")
            assert call.usage is not None
        else:
            assert with_cause(outcome.name, outcome.cause) == fault.outcome
            assert outcome.rule.counted is (fault.category not in INFRA)


def test_every_row_has_a_case_and_every_category_an_outcome() -> None:
    assert CASES.keys() == FAULTS.keys()
    assert {fault.category for fault in FAULTS.values()} - {None} == CATEGORIES.keys() - {"gateway"}
    for category in CATEGORIES.values():
        assert category.outcome in TABLE
    assert set(INFRA) <= set(INFRA_CAUSES)


def test_the_page_shows_the_table() -> None:
    page = Path(__file__).parents[3] / "docs" / "outcomes.md"
    assert as_markdown() in page.read_text("utf-8")
