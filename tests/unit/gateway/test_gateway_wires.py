"""Each wire passes its exchanges on unchanged and counts what they state."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from gateway_rig import (
    AUTH,
    CREDENTIAL,
    KEY,
    MODEL,
    calls,
    in_turn,
    json_reply,
    rig,
    stream_reply,
)
from hypothesis import given
from hypothesis import strategies as st
from wire_corpus import CORPUS, PLAIN, REPORTED, STREAMED, TEXT, Exchange, ask, counted, label, reply

from orchestrator.adapter import Wire
from orchestrator.gateway.wire import Reading
from orchestrator.gateway.wires import WIRES
from orchestrator.gateway.wires.meters import PlainMeter, StreamMeter


@pytest.mark.parametrize("exchange", CORPUS, ids=label)
def test_exchange_passes_unchanged_and_is_counted(tmp_path: Path, exchange: Exchange) -> None:
    sent = json.dumps(exchange.request, indent=1)

    async def run() -> None:
        async with rig(tmp_path, reply(exchange), wire=exchange.wire) as gateway:
            status, body, _ = await ask(gateway, exchange.path, sent.encode())
            assert (status, body) == (200, b"".join(exchange.pieces))
            assert gateway.seen[0].body.decode() == sent.replace('"alias"', json.dumps(MODEL))
            await gateway.close()
            (call,) = counted(gateway)
            assert (call.error, call.finish_reason, call.reported_model) == (None, exchange.finish, REPORTED)
            assert (call.usage, call.streamed) == (exchange.usage, exchange.streamed)
            assert call.request_model == (MODEL if exchange.wire == "gemini" else "alias")
            (wire,) = gateway.wire()
            answer = wire.answer()
            assert answer.text == TEXT
            assert [(told.name, json.loads(told.arguments)) for told in answer.calls] == exchange.calls

    asyncio.run(run())


@given(st.sampled_from(CORPUS), st.data())
def test_readings_do_not_depend_on_the_boundaries_of_chunks(exchange: Exchange, data: st.DataObject) -> None:
    stream = b"".join(exchange.pieces)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=12).map(sorted))
    pieces = [stream[start:end] for start, end in pairwise([0, *cuts, len(stream)])]
    read = WIRES[exchange.wire].read

    def metered(chunks: list[bytes]) -> tuple[bytes, Reading]:
        meter = StreamMeter(read) if exchange.streamed else PlainMeter(read)
        passed = b"".join([meter.feed(chunk) for chunk in chunks])
        return passed + meter.finish(), meter.reading

    assert metered(pieces) == metered([stream])
    assert metered(pieces)[0] == stream
    assert metered(pieces)[1].complete


@pytest.mark.parametrize(
    ("wire", "body", "finish", "refusal"),
    [
        (
            "responses",
            {
                "status": "completed",
                "output": [{"type": "message", "content": [{"type": "refusal", "refusal": "I will not"}]}],
            },
            "completed",
            "I will not",
        ),
        (
            "responses",
            {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}, "output": []},
            "content_filter",
            "content_filter",
        ),
        (
            "responses",
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": []},
            "max_output_tokens",
            None,
        ),
        ("messages", {"type": "message", "content": [], "stop_reason": "refusal"}, "refusal", "refusal"),
        (
            "messages",
            {
                "type": "message",
                "content": [],
                "stop_reason": "refusal",
                "stop_details": {"type": "refusal", "explanation": "Not this"},
            },
            "refusal",
            "Not this",
        ),
        ("gemini", {"candidates": [{"finishReason": "SAFETY"}]}, "SAFETY", "SAFETY"),
        ("gemini", {"candidates": [{"finishReason": "MAX_TOKENS"}]}, "MAX_TOKENS", None),
        ("gemini", {"promptFeedback": {"blockReason": "OTHER"}}, "OTHER", "OTHER"),
    ],
)
def test_ends_and_refusals(wire: Wire, body: dict[str, Any], finish: str, refusal: str | None) -> None:
    meter = PlainMeter(WIRES[wire].read)
    meter.feed(json.dumps(body).encode())
    meter.finish()
    assert (meter.reading.finish_reason, meter.reading.refusal, meter.reading.failure) == (
        finish,
        refusal,
        None,
    )


@pytest.mark.parametrize(
    ("wire", "events"),
    [
        ("chat", [{"usage": {"prompt_tokens": 9}}, {"usage": None}, {"usage": {"prompt_tokens": 0}}]),
        (
            "messages",
            [
                {"type": "message_start", "message": {"usage": {"input_tokens": 9, "output_tokens": 1}}},
                {"type": "message_delta", "usage": {"input_tokens": 0, "output_tokens": 4}},
                {"type": "message_delta", "usage": {"input_tokens": None, "output_tokens": 5}},
            ],
        ),
        ("gemini", [{"usageMetadata": {"promptTokenCount": 9}}, {"usageMetadata": {"trafficType": "x"}}]),
    ],
)
def test_a_later_zero_or_null_is_not_a_statement(wire: Wire, events: list[dict[str, Any]]) -> None:
    expected = {
        "chat": {"prompt_tokens": 9},
        "messages": {"input_tokens": 9, "output_tokens": 5},
        "gemini": {"promptTokenCount": 9, "trafficType": "x"},
    }
    reading = Reading()
    for event in events:
        WIRES[wire].read(reading, event)
    assert reading.usage_raw == expected[wire]


@pytest.mark.parametrize(
    ("wire", "request_body", "expected"),
    [
        ("responses", {"input": "x", "max_output_tokens": 5}, {"max_output_tokens": 5}),
        (
            "messages",
            {"messages": [], "max_tokens": 5, "thinking": {"type": "enabled"}, "metadata": {"user_id": "u"}},
            {"max_tokens": 5, "thinking": {"type": "enabled"}},
        ),
        ("gemini", {"contents": [], "generation_config": {"topP": 0.5, "x": 1}}, {"topP": 0.5}),
        ("gemini", {"contents": [], "generationConfig": {"stopSequences": ["x" * 2000]}}, {}),
    ],
)
def test_generation_settings(wire: Wire, request_body: dict[str, Any], expected: dict[str, Any]) -> None:
    assert WIRES[wire].prepare(json.dumps(request_body).encode(), MODEL).settings == expected


def test_refusal_in_pieces() -> None:
    meter = StreamMeter(WIRES["responses"].read)
    for part in ("I will", " not"):
        event = {"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "delta": part}
        meter.feed(b"data: " + json.dumps(event).encode() + b"\n\n")
    assert meter.reading.refusal == "I will not"


@pytest.mark.parametrize(
    ("wire", "path", "upstream"),
    [
        ("chat", "/v1/chat/completions", "/v1/chat/completions"),
        ("chat", "/chat/completions", "/v1/chat/completions"),
        ("responses", "/v1/responses", "/v1/responses"),
        ("responses", "/responses", "/v1/responses"),
        ("responses", "/v1/responses/input_tokens", "/v1/responses/input_tokens"),
        ("responses", "/v1/responses/compact", "/v1/responses/compact"),
        ("messages", "/v1/messages?beta=true", "/v1/messages?beta=true"),
        ("messages", "/messages", "/v1/messages"),
        ("messages", "/r/run-7/v1/messages/count_tokens", "/v1/messages/count_tokens"),
        ("gemini", "/v1beta/models/other:generateContent", f"/v1/models/{MODEL}:generateContent"),
        (
            "gemini",
            "/models/a%2Fb:streamGenerateContent?alt=sse",
            f"/v1/models/{MODEL}:streamGenerateContent?alt=sse",
        ),
        (
            "gemini",
            f"/v1alpha/models/{MODEL}:countTokens?key={CREDENTIAL}&x=1",
            f"/v1/models/{MODEL}:countTokens?x=1",
        ),
    ],
)
def test_paths(tmp_path: Path, wire: Wire, path: str, upstream: str) -> None:
    async def run() -> None:
        async with rig(tmp_path, json_reply({}), wire=wire) as gateway:
            assert (await ask(gateway, path, PLAIN[wire].request))[0] == 200
            assert gateway.seen[0].path == upstream

    asyncio.run(run())


@pytest.mark.parametrize(
    ("wire", "path", "upstream"),
    [
        ("chat", "/v1/chat/completions", "/chat/completions"),
        ("messages", "/messages", "/v1/messages"),
        ("gemini", "/models/m:generateContent", f"/v1beta/models/{MODEL}:generateContent"),
        ("gemini", "/v1alpha/models/m:generateContent", f"/v1alpha/models/{MODEL}:generateContent"),
    ],
)
def test_version_is_put_where_the_base_url_has_none(
    tmp_path: Path, wire: Wire, path: str, upstream: str
) -> None:
    seen: list[str] = []

    async def handle(request: web.Request) -> web.StreamResponse:
        seen.append(request.path)
        return web.json_response({})

    async def run() -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        base_url = f"http://127.0.0.1:{runner.addresses[0][1]}/base/"
        async with rig(tmp_path, json_reply({}), wire=wire, base_url=base_url) as gateway:
            await ask(gateway, path, PLAIN[wire].request)
        await runner.cleanup()

    asyncio.run(run())
    assert seen == [f"/base{upstream}"]


CREDENTIALS: list[tuple[Wire, dict[str, str], str]] = [
    ("responses", {"Authorization": f"Bearer {CREDENTIAL}"}, ""),
    ("messages", {"x-api-key": CREDENTIAL}, ""),
    ("messages", {"Authorization": f"Bearer {CREDENTIAL}"}, ""),
    ("gemini", {"x-goog-api-key": CREDENTIAL}, ""),
    ("gemini", {}, f"?key={CREDENTIAL}"),
]
KEY_HEADER = {"responses": "Authorization", "messages": "x-api-key", "gemini": "x-goog-api-key"}


@pytest.mark.parametrize(("wire", "headers", "query"), CREDENTIALS)
def test_the_cells_credential_gives_way_to_the_key(
    tmp_path: Path, wire: Wire, headers: dict[str, str], query: str
) -> None:
    kept = {"anthropic-version": "2023-06-01", "anthropic-beta": "b1"}

    async def run() -> None:
        async with rig(tmp_path, reply(PLAIN[wire]), wire=wire) as gateway:
            path = PLAIN[wire].path + query
            assert (await ask(gateway, path, PLAIN[wire].request, headers | kept))[0] == 200
            (up,) = gateway.seen
            assert CREDENTIAL not in f"{up.path} {up.headers}"
            sent = {name.lower(): value for name, value in up.headers.items()}
            assert {name: sent[name] for name in kept} == kept
            held = {name: value for name, value in sent.items() if KEY in value}
            bearer = "Bearer " if wire == "responses" else ""
            assert held == {KEY_HEADER[wire].lower(): bearer + KEY}
            assert (await ask(gateway, PLAIN[wire].path, {}, {"x-api-key": "wrong"}))[0] == 401

    asyncio.run(run())


COUNTS: dict[Wire, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "responses": ("/v1/responses/input_tokens", PLAIN["responses"].request, {"input_tokens": 7}),
    "messages": ("/v1/messages/count_tokens", PLAIN["messages"].request, {"input_tokens": 7}),
    "gemini": (
        "/v1beta/models/m:countTokens",
        {"generateContentRequest": {"model": "models/m", **PLAIN["gemini"].request}},
        {"totalTokens": 7},
    ),
}


@pytest.mark.parametrize("wire", COUNTS)
def test_a_count_of_tokens_is_no_model_call(tmp_path: Path, wire: Wire) -> None:
    path, request, answer = COUNTS[wire]

    async def run() -> None:
        handler = in_turn(json_reply(answer), json_reply(answer), reply(PLAIN[wire]))
        async with rig(tmp_path, handler, wire=wire, max_calls=1) as gateway:
            for _ in range(2):
                status, body, _ = await ask(gateway, path, request)
                assert (status, json.loads(body)) == (200, answer)
            assert json.dumps(MODEL).strip('"') in gateway.seen[0].body.decode() + gateway.seen[0].path
            assert b"models/m" not in gateway.seen[0].body
            # The one call that the cell may make is still free.
            assert (await ask(gateway, PLAIN[wire].path, PLAIN[wire].request))[0] == 200
            assert (await ask(gateway, PLAIN[wire].path, PLAIN[wire].request))[0] == 403
            await gateway.close()
            assert [call.error for call in calls(gateway.route)] == [None, "limit"]
            assert [body.response for body in gateway.wire()][:2] == [answer] * 2
            assert [call.index for call in counted(gateway)] == [2, 3]

    asyncio.run(run())


@pytest.mark.parametrize("wire", WIRES)
def test_flushes_of_a_stream_are_kept(tmp_path: Path, wire: Wire) -> None:
    """A gateway that collects chunks would wait for ever: each is sent only after the last one was seen."""
    exchange = next(exchange for exchange in STREAMED if exchange.wire == wire and exchange.usage)

    async def run() -> None:
        gates = [asyncio.Event() for _ in exchange.pieces]
        async with rig(tmp_path, stream_reply(exchange.pieces, gates), wire=wire) as gateway:
            gates[0].set()
            url = f"http://cell{exchange.path}"
            async with gateway.client.post(url, json=exchange.request, headers=AUTH) as response:
                for gate, piece in zip(gates, exchange.pieces, strict=True):
                    gate.set()
                    assert await asyncio.wait_for(response.content.readchunk(), 60) == (piece, True)

    asyncio.run(run())
