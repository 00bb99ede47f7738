"""A cell's own socket, credential and limit."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path
from typing import Any

import pytest
from gateway_rig import (
    CREDENTIAL,
    completion,
    in_turn,
    json_reply,
    make_route,
    request_body,
    rig,
    scripted,
    stream_events,
    stream_reply,
)

from orchestrator.errors import CabError, InputError
from orchestrator.gateway.contract import Endpoint, Script
from orchestrator.gateway.server import GatewayServer
from scorers.evidence import Price, Rates

TOKENS = 15
"""Of one `completion()`."""

DOLLAR_A_MILLION = Price(rates=[Rates(input=1, output=1)], source="sweep file")


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": f"Bearer {CREDENTIAL}"},
        {"authorization": f"bearer  {CREDENTIAL}"},
        {"x-api-key": CREDENTIAL},
        {"x-goog-api-key": CREDENTIAL},
    ],
)
def test_credential_is_taken_where_clis_put_it(tmp_path: Path, headers: dict[str, str]) -> None:
    async def run() -> None:
        async with rig(tmp_path, json_reply(completion())) as gateway:
            assert (await gateway.post(request_body(), headers))[0] == 200
            assert CREDENTIAL not in str(gateway.seen[0].headers)

    asyncio.run(run())


@pytest.mark.parametrize(
    "headers",
    [{}, {"Authorization": "Bearer wrong"}, {"Authorization": CREDENTIAL}, {"x-api-key": "ü"}],
)
def test_wrong_credential_is_refused_and_recorded(tmp_path: Path, headers: dict[str, str]) -> None:
    async def run() -> None:
        async with rig(tmp_path, json_reply(completion())) as gateway:
            assert (await gateway.post(request_body(), headers))[0] == 401
            assert gateway.seen == []
            (call,) = await gateway.close()
            assert (call.error, call.status) == ("unauthorised", 401)

    asyncio.run(run())


def test_calls_beyond_the_limit_are_refused(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, json_reply(completion()), max_calls=2) as gateway:
            statuses = [(await gateway.post(request_body()))[0] for _ in range(4)]
            assert statuses == [200, 200, 403, 403]
            assert len(gateway.seen) == 2
            assert gateway.events == ["limit"]
            assert [call.error for call in await gateway.close()] == [None, None, "limit", "limit"]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("limit", "error", "said"),
    [
        ({"max_tokens": 2 * TOKENS}, "limit_tokens", "tokens"),
        ({"max_usd": 2 * TOKENS / 1e6, "price": DOLLAR_A_MILLION}, "limit_usd", "usd"),
    ],
)
def test_the_call_that_reaches_a_limit_is_answered_and_the_next_refused(
    tmp_path: Path, limit: dict[str, Any], error: str, said: str
) -> None:
    async def run() -> None:
        async with rig(tmp_path, json_reply(completion()), **limit) as gateway:
            answers = [await gateway.post(request_body()) for _ in range(4)]
            assert [status for status, _ in answers] == [200, 200, 403, 403]
            assert json.loads(answers[2][1])["error"]["message"] == f"the limit on {said} was reached"
            assert len(gateway.seen) == 2
            assert gateway.events == ["limit"]
            assert [call.error for call in await gateway.close()] == [None, None, error, error]

    asyncio.run(run())


def test_calls_that_the_endpoint_failed_do_not_count_against_the_limit(tmp_path: Path) -> None:
    handler = in_turn(json_reply({}, 500), json_reply(completion()))

    async def run() -> None:
        async with rig(tmp_path, handler, max_calls=1, max_retries=0) as gateway:
            assert [(await gateway.post(request_body()))[0] for _ in range(3)] == [500, 200, 403]

    asyncio.run(run())


def test_silent_connection_stays_open_until_the_cell_closes(tmp_path: Path) -> None:
    """PID 1 of the container holds one, and dies with it."""

    async def run() -> None:
        async with rig(tmp_path, json_reply(completion())) as gateway:
            reader, writer = await asyncio.open_unix_connection(gateway.route.socket)
            await gateway.post(request_body())
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.read(1), 0.2)
            await gateway.close()
            assert await asyncio.wait_for(reader.read(1), 60) == b""
            writer.close()
            assert not gateway.route.socket.exists()

    asyncio.run(run())


def test_socket_is_for_its_owner_only(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, json_reply(completion())) as gateway:
            assert stat.S_IMODE(gateway.route.socket.stat().st_mode) == 0o600

    asyncio.run(run())


def test_routes_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    async def run() -> None:
        server = GatewayServer(lambda *_: None)
        with pytest.raises(InputError, match="unknown endpoint"):
            await server.open_cell(make_route(tmp_path))
        server.add_endpoint(Endpoint(name="up", base_url="http://127.0.0.1:1", key=""))
        with pytest.raises(InputError, match="an endpoint, a script or a recording"):
            await server.open_cell(make_route(tmp_path, script=Script(kind="idle")))
        with pytest.raises(CabError):
            await server.open_cell(make_route(tmp_path, socket=tmp_path / "none" / "s"))
        with pytest.raises(InputError, match="not open"):
            await server.close_cell("cell")
        await server.open_cell(scripted(tmp_path, Script(kind="idle")))
        with pytest.raises(InputError, match="already open"):
            await server.open_cell(scripted(tmp_path, Script(kind="idle")))
        await server.close()

    asyncio.run(run())


def test_files_that_cannot_be_written_are_told(tmp_path: Path) -> None:
    async def run() -> None:
        missing = tmp_path / "gone" / "calls.jsonl"
        async with rig(tmp_path, json_reply(completion()), calls_path=missing) as gateway:
            assert (await gateway.post(request_body()))[0] == 200
            with pytest.raises(OSError, match="gone"):
                await gateway.server.close_cell("cell")

    asyncio.run(run())


def test_an_endpoint_that_refuses_to_be_asked_for_usage_is_not_asked(tmp_path: Path) -> None:
    """Of a CLI that speaks the endpoint's wire, as every cell's route says."""

    async def run() -> None:
        handler = stream_reply(stream_events(usage=False))
        async with rig(tmp_path, handler, cli_wire="chat", ask_usage=False) as gateway:
            assert (await gateway.post(request_body(stream=True)))[0] == 200
            assert "stream_options" not in gateway.seen[0].json

    asyncio.run(run())
