"""What the fault table leaves open of failed calls: waits, order of attempts, keys, oddities of answers."""

from __future__ import annotations

import asyncio
import base64
import json
import urllib.parse
from email.utils import formatdate
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from gateway_rig import (
    AUTH,
    CREDENTIAL,
    KEY,
    URL,
    Handler,
    completion,
    event,
    in_turn,
    json_reply,
    request_body,
    rig,
    stream_events,
    stream_reply,
)

RATE_LIMITED = {"error": {"message": "slow down", "type": "rate_limit"}}
BROKEN = {"error": {"message": "broken"}}


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7.0), ("0.25", 0.25), (formatdate(1_800_000_011, usegmt=True), 11.0)],
)
def test_rate_limit_is_waited_for_as_stated(tmp_path: Path, header: str, seconds: float) -> None:
    limited = json_reply(RATE_LIMITED, 429, {"Retry-After": header})

    async def run() -> None:
        async with rig(tmp_path, in_turn(limited, json_reply(completion()))) as gateway:
            assert (await gateway.post(request_body()))[0] == 200
            assert gateway.clock.slept == [seconds]
            assert gateway.events == ["wait_start", "wait_end"]
            (call,) = await gateway.close()
            assert (call.attempts, call.error, call.waits) == (2, None, [(100.0, 100.0 + seconds)])

    asyncio.run(run())


def test_rate_limit_without_a_stated_wait_backs_off_within_its_caps(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, json_reply(RATE_LIMITED, 429), max_retries=9) as gateway:
            status, body = await gateway.post(request_body())
            assert (status, json.loads(body)) == (429, RATE_LIMITED)
            assert len(gateway.clock.slept) == 9
            for attempt, slept in enumerate(gateway.clock.slept, 1):
                assert 0 <= slept <= min(60.0, 0.5 * 2**attempt)
            (call,) = await gateway.close()
            assert (call.error, call.attempts, len(call.waits)) == ("rate_limited", 10, 9)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("status", "error", "category", "attempts"),
    [
        (400, {"error": {"message": "bad", "code": "context_length_exceeded"}}, "context_overflow", 1),
        (413, {"message": "prompt is too long"}, "context_overflow", 1),
        (400, {"error": {"message": "unknown field foo"}}, "bad_request", 1),
        (405, BROKEN, "endpoint_down", 1),
        (425, BROKEN, "endpoint_down", 3),
    ],
)
def test_final_failure_passes_as_it_came(
    tmp_path: Path, status: int, error: dict[str, Any], category: str, attempts: int
) -> None:
    async def run() -> None:
        async with rig(tmp_path, json_reply(error, status), max_retries=2) as gateway:
            got, body = await gateway.post(request_body())
            assert (got, json.loads(body)) == (status, error)
            (call,) = await gateway.close()
            assert (call.error, call.attempts, call.status) == (category, attempts, status)
            assert json.dumps(error) in (call.error_detail or "")

    asyncio.run(run())


def test_server_errors_are_retried(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, in_turn(json_reply(BROKEN, 502), json_reply(completion()))) as gateway:
            assert (await gateway.post(request_body()))[0] == 200
            (call,) = await gateway.close()
            assert (call.attempts, call.error) == (2, None)
            assert gateway.seen[0].body == gateway.seen[1].body

    asyncio.run(run())


def test_dropped_connection_is_retried_at_once(tmp_path: Path) -> None:
    """A server may close an idle connection just when it is used again."""

    async def drop(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    async def run() -> None:
        async with rig(tmp_path, in_turn(drop, json_reply(completion()))) as gateway:
            assert (await gateway.post(request_body()))[0] == 200
            (call,) = await gateway.close()
            assert (call.attempts, call.error, call.waits) == (2, None, [])

    asyncio.run(run())


@pytest.mark.parametrize("asks", [True, False])
def test_cut_stream_is_not_papered_over_nor_retried(tmp_path: Path, asks: bool) -> None:
    events = stream_events(usage=True)[:2]

    async def run() -> None:
        async with rig(tmp_path, stream_reply(events, cut=True)) as gateway:
            body = request_body(stream=True, **({"stream_options": {"include_usage": True}} if asks else {}))
            async with gateway.client.post(URL, json=body, headers=AUTH) as response:
                assert response.status == 200
                assert await response.content.readchunk() != (b"", False)
                with pytest.raises(aiohttp.ClientPayloadError):
                    await response.read()
            (call,) = await gateway.close()
            assert (call.error, call.attempts, call.usage_raw) == ("stream_cut", 1, None)
            assert gateway.wire()[0].response == b"".join(events).decode()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("code", "category"), [(429, "rate_limited"), (502, "upstream_5xx"), ("x", "upstream_5xx")]
)
def test_error_inside_a_good_response(tmp_path: Path, code: Any, category: str) -> None:
    error = {"error": {"message": "provider failed", "code": code}}

    async def run() -> None:
        for number, reply in enumerate(
            (json_reply(error), stream_reply([event(error), b"data: [DONE]\n\n"]))
        ):
            folder = tmp_path / str(number)
            folder.mkdir()
            async with rig(folder, reply) as gateway:
                assert (await gateway.post(request_body(stream=number == 1)))[0] == 200
                (call,) = await gateway.close()
                assert call.error == category

    asyncio.run(run())


def test_key_echoed_by_the_endpoint_reaches_nobody(tmp_path: Path) -> None:
    async def echo(request: web.Request) -> web.StreamResponse:
        header = request.headers["Authorization"]
        token = header.removeprefix("Bearer ")
        forms = [header, base64.b64encode(header.encode()).decode(), urllib.parse.quote(token, safe="")]
        forms += [base64.urlsafe_b64encode(f"user:{token}".encode()).decode(), token.replace("/", "\\/")]
        status = 200 if b'"stream": true' in await request.read() else 401
        reply = web.StreamResponse(
            status=status, headers={"Content-Type": "text/event-stream", "X-Echo": token}
        )
        await reply.prepare(request)
        text = event({"choices": [], "echo": forms})
        # In the middle of the key, so that it arrives in two pieces.
        middle = text.index(token.encode()) + len(token) // 2
        await reply.write(text[:middle])
        await asyncio.sleep(0)
        await reply.write(text[middle:])
        return reply

    async def run() -> None:
        async with rig(tmp_path, echo) as gateway:
            shown = b""
            for stream in (False, True):
                body = json.dumps(request_body(stream=stream, note=f"my key is {CREDENTIAL}")).encode()
                async with gateway.client.post(URL, data=body, headers=AUTH) as response:
                    shown += await response.read() + str(response.headers).encode()
            calls = await gateway.close()
            assert calls[0].error == "key_refused"
            stored = gateway.route.calls_path.read_text() + str(gateway.wire())
        core = base64.b64encode(KEY.encode())[4:-4].decode()
        for text in (shown.decode(), stored):
            assert "****" in text
            for form in (KEY, core, urllib.parse.quote(KEY, safe=""), KEY[8:]):
                assert form not in text
        assert CREDENTIAL not in stored

    asyncio.run(run())


def test_client_that_goes_away_cancels_the_endpoints_work(tmp_path: Path) -> None:
    async def run() -> None:
        arrived, cancelled = asyncio.Event(), asyncio.Event()

        async def hang(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            await response.write(stream_events(usage=True)[0])
            arrived.set()
            transport = request.transport
            while transport is not None and not transport.is_closing():
                await asyncio.sleep(0.01)
            cancelled.set()
            return response

        async with rig(tmp_path, hang) as gateway:
            response = await gateway.client.post(URL, json=request_body(stream=True), headers=AUTH)
            await arrived.wait()
            response.close()
            await asyncio.wait_for(cancelled.wait(), 60)
            (call,) = await gateway.close()
            assert (call.error, call.status) == ("client_gone", 200)

    asyncio.run(run())


@pytest.mark.parametrize(
    "body", [b"", b"not json", b"[]", b'{"model":"m"}', b'{"messages":[]} x', b"[" * 99999, b"\xff"]
)
def test_body_that_is_no_request(tmp_path: Path, body: bytes) -> None:
    async def run() -> None:
        async with rig(tmp_path, json_reply(completion())) as gateway:
            assert (await gateway.post(body))[0] == 400
            assert gateway.seen == []
            (call,) = await gateway.close()
            assert (call.error, call.status) == ("bad_request", 400)

    asyncio.run(run())


def text_reply(text: str, kind: str) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        return web.Response(text=text, content_type=kind)

    return handle


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("[]", "application/json"),
        ('{"object": "chat.completion", "choices": []}', "application/json"),
        ("data: [DONE]\n\n", "text/event-stream"),
        ("data: <html>\n\ndata: [DONE]\n\n", "text/event-stream"),
        ('data: {"choices": []}\n\ndata: [DONE]\n\n', "text/event-stream"),
    ],
)
def test_a_success_without_any_answer_is_the_endpoints_failure(tmp_path: Path, text: str, kind: str) -> None:
    async def run() -> None:
        async with rig(tmp_path, text_reply(text, kind)) as gateway:
            assert await gateway.post(request_body()) == (200, text.encode())
            (call,) = await gateway.close()
            assert call.error == "endpoint_down"
            assert "holds no answer" in (call.error_detail or "")

    asyncio.run(run())


def test_an_empty_answer_is_the_models_own(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, json_reply(completion(""))) as gateway:
            assert (await gateway.post(request_body()))[0] == 200
            (call,) = await gateway.close()
            assert call.error is None

    asyncio.run(run())
