"""What goes wrong upstream reaches a CLI of another wire in that wire's shape."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from gateway_rig import (
    AUTH,
    CREDENTIAL,
    KEY,
    MODEL,
    Handler,
    chunk,
    completion,
    event,
    json_reply,
    rig,
    stream_reply,
)
from wire_corpus import ask, counted

from orchestrator.adapter import Wire

USER = {"role": "user", "content": "go"}
REQUESTS: dict[Wire, tuple[str, dict[str, Any]]] = {
    "responses": ("/v1/responses", {"model": "m", "input": "go"}),
    "messages": ("/v1/messages", {"model": "m", "max_tokens": 9, "messages": [USER]}),
    "gemini": (f"/v1beta/models/{MODEL}:generateContent", {"contents": [{"parts": [{"text": "go"}]}]}),
}
STREAMED: dict[Wire, tuple[str, dict[str, Any]]] = {
    "responses": ("/v1/responses", REQUESTS["responses"][1] | {"stream": True}),
    "messages": ("/v1/messages", REQUESTS["messages"][1] | {"stream": True}),
    "gemini": (f"/v1beta/models/{MODEL}:streamGenerateContent?alt=sse", REQUESTS["gemini"][1]),
}


def refused(code: str, message: str, status: int) -> Handler:
    return json_reply({"error": {"message": message, "type": code, "code": code}}, status)


def html(status: int) -> Handler:
    async def handle(request: Any) -> Any:
        return aiohttp.web.Response(text="<html>Bad Gateway</html>", status=status, content_type="text/html")

    return handle


FAULTS: list[tuple[str, Handler, int, str, tuple[str, str, str]]] = [
    (
        "rate limit",
        refused("rate_limit_exceeded", "slow down", 429),
        429,
        "rate_limited",
        ("rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED"),
    ),
    (
        "server error",
        refused("oops", "broken", 500),
        500,
        "upstream_5xx",
        ("server_error", "api_error", "INTERNAL"),
    ),
    ("html error", html(503), 503, "upstream_5xx", ("server_error", "api_error", "UNAVAILABLE")),
    (
        "overflow",
        refused("context_length_exceeded", "maximum context length is 9", 413),
        400,
        "context_overflow",
        ("context_length_exceeded", "invalid_request_error", "INVALID_ARGUMENT"),
    ),
    (
        "bad key",
        refused("invalid_api_key", "no such key", 401),
        401,
        "key_refused",
        ("invalid_api_key", "authentication_error", "UNAUTHENTICATED"),
    ),
    (
        "bad request",
        refused("invalid_request_error", "too odd", 400),
        400,
        "bad_request",
        ("invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT"),
    ),
    ("html success", html(200), 502, "endpoint_down", ("server_error", "api_error", "UNAVAILABLE")),
    ("no answer", json_reply({}), 502, "endpoint_down", ("server_error", "api_error", "UNAVAILABLE")),
    (
        "error in success",
        refused("rate_limit_exceeded", "slow down", 200),
        429,
        "rate_limited",
        ("rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED"),
    ),
]


@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault[0])
@pytest.mark.parametrize("wire", REQUESTS)
def test_fault_has_the_shape_of_the_clis_wire(
    tmp_path: Path, wire: Wire, fault: tuple[str, Handler, int, str, tuple[str, str, str]], streamed: bool
) -> None:
    _, handler, status, category, names = fault

    async def run() -> None:
        async with rig(tmp_path, handler, cli_wire=wire, max_retries=0) as gateway:
            told = await ask(gateway, *(STREAMED if streamed else REQUESTS)[wire])
            await gateway.close()
            (call,) = counted(gateway)
        assert (told[0], told[2], call.error) == (status, "application/json", category)
        body = json.loads(told[1])
        error = body["error"]
        named = {"responses": "code", "messages": "type", "gemini": "status"}[wire]
        assert error[named] == names[list(REQUESTS).index(wire)]
        assert wire != "messages" or body["type"] == "error"
        assert wire != "gemini" or error["code"] == status
        if wire == "messages" and category == "context_overflow":
            assert error["message"].startswith("prompt is too long")

    asyncio.run(run())


@pytest.mark.parametrize("wire", STREAMED)
def test_a_stream_that_is_cut_breaks_off(tmp_path: Path, wire: Wire) -> None:
    handler = stream_reply([event(chunk({"content": "half"})), event(chunk({}, "stop"))], cut=True)

    async def run() -> None:
        async with rig(tmp_path, handler, cli_wire=wire) as gateway:
            path, body = STREAMED[wire]
            got: list[bytes] = []
            async with gateway.client.post(f"http://cell{path}", json=body, headers=AUTH) as response:
                with pytest.raises(aiohttp.ClientPayloadError):
                    await read_into(got, response)
            await gateway.close()
            (call,) = counted(gateway)
        assert call.error == "stream_cut"
        stream = b"".join(got)
        assert b"half" in stream
        for end in (b"response.completed", b"message_stop", b"finishReason"):
            assert end not in stream

    asyncio.run(run())


async def read_into(got: list[bytes], response: aiohttp.ClientResponse) -> None:
    async for data in response.content.iter_any():
        got.append(data)


@pytest.mark.parametrize("wire", STREAMED)
def test_an_error_inside_a_stream_is_the_wires_own_event(tmp_path: Path, wire: Wire) -> None:
    error = {"error": {"message": "slow down", "code": 429}}
    handler = stream_reply([event(chunk({"content": "half"})), event(error)])

    async def run() -> None:
        async with rig(tmp_path, handler, cli_wire=wire) as gateway:
            status, body, kind = await ask(gateway, *STREAMED[wire])
            await gateway.close()
            (call,) = counted(gateway)
        assert (status, kind, call.error) == (200, "text/event-stream", "rate_limited")
        last = json.loads(body.decode().rstrip().rpartition("data: ")[2])
        match wire:
            case "responses":
                assert last["type"] == "response.failed"
                assert last["response"]["error"] == {"code": "rate_limit_exceeded", "message": "slow down"}
            case "messages":
                assert last == {
                    "type": "error",
                    "error": {"type": "rate_limit_error", "message": "slow down"},
                }
            case _:
                told = {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}
                assert last == {"error": told}

    asyncio.run(run())


@pytest.mark.parametrize("wire", REQUESTS)
def test_other_requests_of_the_wire(tmp_path: Path, wire: Wire) -> None:
    """The list of models is the cell's; for a count of tokens chat has no call, and the CLI is told so."""
    counts = {"responses": "/v1/responses/input_tokens", "messages": "/v1/messages/count_tokens"}
    path = counts.get(wire, f"/v1beta/models/{MODEL}:countTokens")
    models = "/v1beta/models" if wire == "gemini" else "/v1/models"

    async def run() -> None:
        async with rig(tmp_path, json_reply(completion()), cli_wire=wire) as gateway:
            status, body, _ = await ask(gateway, path, REQUESTS[wire][1])
            assert (status, "no such call" in body.decode()) == (404, True)
            async with gateway.client.get(f"http://cell{models}", headers=AUTH) as response:
                assert MODEL in await response.text()
            await gateway.server.close_cell(gateway.route.cell_id)
            assert (gateway.seen, gateway.route.calls_path.exists()) == ([], False)

    asyncio.run(run())


STATEFUL: dict[Wire, dict[str, Any]] = {
    "responses": {"previous_response_id": "resp_1"},
    "gemini": {"cachedContent": "cachedContents/1"},
}


@pytest.mark.parametrize("wire", STATEFUL)
def test_what_needs_an_endpoint_with_a_memory_is_not_held_against_the_cli(tmp_path: Path, wire: Wire) -> None:
    path, body = REQUESTS[wire]

    async def run() -> None:
        async with rig(tmp_path, json_reply(completion()), cli_wire=wire) as gateway:
            status, _, _ = await ask(gateway, path, body | STATEFUL[wire])
            await gateway.close()
            (call,) = counted(gateway)
        assert (status, call.error, gateway.seen) == (400, "gateway", [])

    asyncio.run(run())


@pytest.mark.parametrize("wire", REQUESTS)
def test_only_the_endpoints_key_goes_up_and_no_header_of_the_other_wire(tmp_path: Path, wire: Wire) -> None:
    path, body = REQUESTS[wire]
    headers = {"x-api-key": CREDENTIAL, "anthropic-version": "2023-06-01", "User-Agent": "cli/1"}

    async def run() -> None:
        async with rig(tmp_path, json_reply(completion()), cli_wire=wire) as gateway:
            status, _, _ = await ask(gateway, path, body, headers)
            (seen,) = gateway.seen
        assert status == 200
        named = {name.lower(): value for name, value in seen.headers.items()}
        assert named["authorization"] == f"Bearer {KEY}"
        assert named["user-agent"] == "cli/1"
        assert not {"x-api-key", "anthropic-version"} & set(named)

    asyncio.run(run())
