"""What goes wrong on each wire: errors before and inside a response, streams that end early, nonsense."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from gateway_rig import (
    AUTH,
    KEY,
    MODEL,
    json_reply,
    rig,
    stream_reply,
)
from hypothesis import given
from hypothesis import strategies as st
from wire_corpus import PLAIN, STREAMED, Exchange, ask, counted, label

from orchestrator.adapter import Wire
from orchestrator.gateway.joined import JoinedScrubber, KeySentError
from orchestrator.gateway.scrub import Scrubber
from orchestrator.gateway.wire import Reading
from orchestrator.gateway.wires import WIRES


@pytest.mark.parametrize("exchange", STREAMED, ids=label)
def test_stream_that_stops_early_is_a_cut_and_its_usage_is_not_counted(
    tmp_path: Path, exchange: Exchange
) -> None:
    ends = {"chat": "finish_reason", "responses": "response.completed", "messages": "message_delta"}
    word = ends.get(exchange.wire, "finishReason").encode()
    last = max(
        number
        for number, piece in enumerate(exchange.pieces)
        if word in piece and b'_reason": null' not in piece
    )

    async def run() -> None:
        for kept in {1, last // 2 + 1, last}:
            folder = tmp_path / str(kept)
            folder.mkdir()
            handler = stream_reply(exchange.pieces[:kept])
            async with rig(folder, handler, wire=exchange.wire) as gateway:
                await ask(gateway, exchange.path, exchange.request)
                await gateway.close()
                (call,) = counted(gateway)
                assert (call.error, call.finish_reason, call.usage) == ("stream_cut", None, None)

    asyncio.run(run())


UPSTREAM_ERRORS: list[tuple[Wire, int, Any, str, int]] = [
    ("responses", 429, {"error": {"code": "rate_limit_exceeded", "message": "slow"}}, "rate_limited", 3),
    ("responses", 429, {"error": {"code": "insufficient_quota", "message": "empty"}}, "rate_limited", 1),
    ("responses", 400, {"error": {"code": "context_length_exceeded", "message": "x"}}, "context_overflow", 1),
    ("messages", 429, {"error": {"type": "rate_limit_error", "message": "slow"}}, "rate_limited", 3),
    ("messages", 529, {"error": {"type": "overloaded_error", "message": "Overloaded"}}, "upstream_5xx", 3),
    (
        "messages",
        400,
        {"error": {"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8 maximum"}},
        "context_overflow",
        1,
    ),
    (
        "messages",
        400,
        {
            "error": {
                "type": "invalid_request_error",
                "message": "input length and `max_tokens` exceed context limit",
            }
        },
        "context_overflow",
        1,
    ),
    (
        "messages",
        400,
        {"error": {"type": "invalid_request_error", "message": "Your credit balance is too low"}},
        "key_refused",
        1,
    ),
    ("messages", 404, {"error": {"type": "not_found_error", "message": "model: x"}}, "endpoint_down", 1),
    ("messages", 400, {"error": {"type": "invalid_request_error", "message": "bad"}}, "bad_request", 1),
    ("gemini", 503, {"error": {"code": 503, "status": "UNAVAILABLE", "message": "x"}}, "upstream_5xx", 3),
    (
        "gemini",
        403,
        {"error": {"code": 403, "status": "PERMISSION_DENIED", "message": "x"}},
        "key_refused",
        1,
    ),
    (
        "gemini",
        400,
        {
            "error": {
                "status": "INVALID_ARGUMENT",
                "message": "API key not valid. Please pass a valid API key.",
            }
        },
        "key_refused",
        1,
    ),
    (
        "gemini",
        400,
        [
            {
                "error": {
                    "message": "The input token count (9) exceeds the maximum number of tokens allowed (8)."
                }
            }
        ],
        "context_overflow",
        1,
    ),
    ("gemini", 400, {"error": {"status": "INVALID_ARGUMENT", "message": "bad"}}, "bad_request", 1),
]


@pytest.mark.parametrize(("wire", "status", "error", "category", "attempts"), UPSTREAM_ERRORS)
def test_upstream_errors_pass_and_are_told_apart(
    tmp_path: Path, wire: Wire, status: int, error: Any, category: str, attempts: int
) -> None:
    async def run() -> None:
        async with rig(tmp_path, json_reply(error, status), wire=wire, max_retries=2) as gateway:
            got, body, _ = await ask(gateway, PLAIN[wire].path, PLAIN[wire].request)
            assert (got, json.loads(body)) == (status, error)
            (call,) = await gateway.close()
            assert (call.error, call.attempts) == (category, attempts)

    asyncio.run(run())


def test_wait_that_the_body_states_is_waited_for(tmp_path: Path) -> None:
    """Gemini has no header for it."""
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}]
    error = {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "quota", "details": details}

    async def run() -> None:
        limited = json_reply({"error": error}, 429)
        async with rig(tmp_path, limited, wire="gemini", max_retries=1) as gateway:
            await ask(gateway, PLAIN["gemini"].path, PLAIN["gemini"].request)
            assert gateway.clock.slept == [34.5]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("wire", "event", "category"),
    [
        ("chat", {"error": {"code": 429, "message": "x"}}, "rate_limited"),
        ("responses", {"type": "error", "code": "rate_limit_exceeded", "message": "x"}, "rate_limited"),
        ("responses", {"type": "error", "code": None, "message": "x"}, "upstream_5xx"),
        (
            "responses",
            {"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error"}}},
            "upstream_5xx",
        ),
        (
            "messages",
            {"type": "error", "error": {"type": "overloaded_error", "message": "x"}},
            "upstream_5xx",
        ),
        (
            "messages",
            {"type": "error", "error": {"type": "rate_limit_error", "message": "x"}},
            "rate_limited",
        ),
        ("gemini", {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}, "rate_limited"),
        ("gemini", {"error": {"code": 500, "status": "INTERNAL"}}, "upstream_5xx"),
    ],
)
def test_error_event_inside_a_good_stream(
    tmp_path: Path, wire: Wire, event: dict[str, Any], category: str
) -> None:
    exchange = next(exchange for exchange in STREAMED if exchange.wire == wire and exchange.usage)
    pieces = [*exchange.pieces[:2], b"data: " + json.dumps(event).encode() + b"\n\n"]

    async def run() -> None:
        async with rig(tmp_path, stream_reply(pieces), wire=wire) as gateway:
            _, body, _ = await ask(gateway, exchange.path, exchange.request)
            assert body == b"".join(pieces)
            await gateway.close()
            (call,) = counted(gateway)
            assert (call.error, call.usage) == (category, None)

    asyncio.run(run())


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("body", [b"[]", b'"x"', b'{"type": "x", "content": 1, "output": {}}'])
def test_a_success_without_any_answer_is_the_endpoints_failure(
    tmp_path: Path, wire: Wire, body: bytes
) -> None:
    async def run() -> None:
        async with rig(tmp_path, json_reply(body), wire=wire) as gateway:
            assert (await ask(gateway, PLAIN[wire].path, PLAIN[wire].request))[:2] == (200, body)
            (call,) = await gateway.close()
            assert call.error == "endpoint_down"

    asyncio.run(run())


@pytest.mark.parametrize(
    ("wire", "method", "path"),
    [
        ("chat", "POST", "/v1/messages"),
        ("responses", "POST", "/v1/chat/completions"),
        ("responses", "GET", "/v1/responses"),
        ("responses", "GET", "/v1/models/other"),
        ("messages", "POST", "/v1/messages/batches"),
        ("messages", "GET", "/v1/messages"),
        ("gemini", "POST", "/v1beta/models/m:embedContent"),
        ("gemini", "POST", "/v1beta/models"),
        ("gemini", "GET", f"/v1beta/models/{MODEL}:generateContent"),
    ],
)
def test_what_a_wire_lacks_is_not_found(tmp_path: Path, wire: Wire, method: str, path: str) -> None:
    async def run() -> None:
        async with rig(tmp_path, json_reply({}), wire=wire) as gateway:
            async with gateway.client.request(method, f"http://cell{path}", headers=AUTH) as response:
                assert response.status == 404
                assert (await response.json())["error"]["message"]
            assert gateway.seen == []
            assert await gateway.close() if gateway.route.calls_path.exists() else True

    asyncio.run(run())


def test_a_count_that_fails_is_not_retried(tmp_path: Path) -> None:
    async def run() -> None:
        handler = json_reply({"type": "error", "error": {"type": "overloaded_error"}}, 529)
        async with rig(tmp_path, handler, wire="messages") as gateway:
            assert (await ask(gateway, "/v1/messages/count_tokens", PLAIN["messages"].request))[0] == 529
            assert (len(gateway.seen), gateway.events) == (1, [])

    asyncio.run(run())


PIECES: dict[Wire, Any] = {
    "responses": lambda part: {"type": "response.output_text.delta", "output_index": 0, "delta": part},
    "messages": lambda part: {"type": "content_block_delta", "index": 0, "delta": {"text": part}},
    "gemini": lambda part: {"candidates": [{"content": {"parts": [{"text": part}]}}]},
}


@pytest.mark.parametrize("wire", PIECES)
def test_key_in_pieces_does_not_arrive(wire: Wire) -> None:
    scrub = JoinedScrubber(Scrubber([KEY]), WIRES[wire].texts)
    events = [json.dumps(PIECES[wire](KEY[at : at + 3])) for at in range(0, len(KEY), 3)]
    passed: list[bytes] = []
    with pytest.raises(KeySentError):
        passed.extend(scrub.feed(f"data: {event}\n\n".encode()) for event in events)
    assert len(b"".join(passed).split(b"data:")) * 3 < len(KEY)


@pytest.mark.parametrize("wire", WIRES)
@given(
    body=st.recursive(
        st.none() | st.booleans() | st.integers(-1, 9) | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "type",
                        "index",
                        "output_index",
                        "item",
                        "output",
                        "content",
                        "delta",
                        "message",
                        "messages",
                        "input",
                        "contents",
                        "parts",
                        "functionCall",
                        "functionResponse",
                        "candidates",
                        "choices",
                        "content_block",
                        "tool_calls",
                        "function",
                        "response",
                        "usage",
                        "usageMetadata",
                        "error",
                        "text",
                        "tools",
                        "system",
                        "systemInstruction",
                        "instructions",
                        "details",
                        "promptFeedback",
                        "model",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_readers_take_anything(wire: Wire, body: Any) -> None:
    """What an agent or an endpoint sends is no reason for the gateway or a cell to fail."""
    form = WIRES[wire]
    form.answer(body)
    form.answer("data: " + json.dumps(body) + "\n\n")
    form.classify(400, json.dumps(body).encode())
    if isinstance(body, dict):
        form.read(Reading(), body)
        list(form.texts(body))
        form.conversation(body)
        form.usage(body)
