"""What a CLI sends and sees is what it would send to and see from the endpoint itself."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from gateway_rig import (
    AUTH,
    CREDENTIAL,
    KEY,
    MODEL,
    URL,
    completion,
    event,
    json_reply,
    request_body,
    rig,
    stream_events,
    stream_reply,
)

from orchestrator.gateway.sse import split_events


def test_plain_call_passes_byte_for_byte_and_is_metered(tmp_path: Path) -> None:
    answer = (
        b'{ "model":"build7",  "choices":[{"index":0,"finish_reason":"stop",'
        b'"message":{"content":"h\\u00e9"}}],\n'
        b' "usage":{"prompt_tokens":5,"completion_tokens":2}}\n'
    )
    sent = b'{"temperature": 0.10, "model" : "alias","messages":[ ],"x-unknown":1e2,"max_tokens":7}'

    async def run() -> None:
        async with rig(tmp_path, json_reply(answer)) as gateway:
            status, body = await gateway.post(sent, {**AUTH, "X-Custom": "kept", "User-Agent": "cli/1"})
            assert (status, body) == (200, answer)
            (up,) = gateway.seen
            assert up.body == sent.replace(b'"alias"', json.dumps(MODEL).encode())
            assert up.path == "/v1/chat/completions"
            assert up.headers["Authorization"] == f"Bearer {KEY}"
            assert up.headers["X-Custom"] == "kept"
            assert up.headers["User-Agent"] == "cli/1"
            assert up.headers["Accept-Encoding"] == "identity"
            (call,) = await gateway.close()
            assert call.usage_raw == {"prompt_tokens": 5, "completion_tokens": 2}
            assert (call.reported_model, call.request_model) == ("build7", "alias")
            assert (call.finish_reason, call.error, call.status, call.streamed) == ("stop", None, 200, False)
            assert call.settings == {"temperature": 0.1, "max_tokens": 7}
            canonical = json.dumps(json.loads(sent), sort_keys=True, separators=(",", ":"))
            assert call.request_hash == hashlib.sha256(canonical.encode()).hexdigest()
            (wire,) = gateway.wire()
            assert wire.request == json.loads(sent)
            assert wire.response == json.loads(answer)

    asyncio.run(run())


@pytest.mark.parametrize("prefix", ["", "/r/run-7", "/v1/deep"])
def test_any_prefix_before_v1_is_accepted(tmp_path: Path, prefix: str) -> None:
    async def run() -> None:
        async with rig(tmp_path, json_reply(completion())) as gateway:
            url = f"http://cell{prefix}/v1/chat/completions?a=1&key={CREDENTIAL}"
            async with gateway.client.post(url, json=request_body()) as response:
                assert response.status == 200
            assert gateway.seen[0].path == "/v1/chat/completions?a=1"

    asyncio.run(run())


def test_models_are_the_cells_own_and_other_paths_are_not_found(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, json_reply(completion())) as gateway:
            async with gateway.client.get("http://cell/v1/models", headers=AUTH) as response:
                assert [entry["id"] for entry in (await response.json())["data"]] == [MODEL]
            for method, path in (("POST", "/v1/embeddings"), ("GET", "/v1/chat/completions"), ("GET", "/")):
                url = f"http://cell{path}"
                async with gateway.client.request(method, url, headers=AUTH) as response:
                    assert response.status == 404
                    assert (await response.json())["error"]["type"] == "not_found"
            assert gateway.seen == []

    asyncio.run(run())


def test_stream_with_usage_asked_passes_byte_for_byte(tmp_path: Path) -> None:
    events = stream_events(usage=True)

    async def run() -> None:
        async with rig(tmp_path, stream_reply(events)) as gateway:
            body = request_body(model=MODEL, stream=True, stream_options={"include_usage": True})
            status, seen = await gateway.post(body)
            assert (status, seen) == (200, b"".join(events))
            assert gateway.seen[0].body == json.dumps(body).encode()
            (call,) = await gateway.close()
            assert call.streamed
            assert call.usage_raw == {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
            assert (call.finish_reason, call.error) == ("stop", None)
            assert gateway.wire()[0].response == b"".join(events).decode()

    asyncio.run(run())


@pytest.mark.parametrize("options", [{}, {"stream_options": {"include_usage": False, "x": 1}}])
def test_usage_is_asked_for_and_taken_out_again(tmp_path: Path, options: dict[str, Any]) -> None:
    """Else a CLI that does not ask for usage would have unmeasured tokens."""

    async def run() -> None:
        async with rig(tmp_path, stream_reply(stream_events(usage=True))) as gateway:
            status, seen = await gateway.post(request_body(stream=True, **options))
            assert status == 200
            assert split_events(seen) == stream_events(usage=False)
            asked = gateway.seen[0].json["stream_options"]
            assert asked == {**options.get("stream_options", {}), "include_usage": True}
            (call,) = await gateway.close()
            assert call.usage_raw == {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}

    asyncio.run(run())


@pytest.mark.parametrize(
    "body", [request_body(stream=True), request_body(stream=True, stream_options={"x": 1})]
)
def test_an_endpoint_that_cannot_be_asked_for_usage_gets_what_the_cli_sent(
    tmp_path: Path, body: dict[str, Any]
) -> None:
    """As preflight learnt of it; its tokens are then unknown, not 0."""

    async def run() -> None:
        async def picky(request: web.Request) -> web.StreamResponse:
            asked = (await request.json()).get("stream_options", {}).get("include_usage")
            answer = json_reply({"error": {"message": "no such field"}}, 400) if asked else plain
            return await answer(request)

        plain = stream_reply(stream_events(usage=False))
        for ask_usage, expected in ((True, 400), (False, 200)):
            folder = tmp_path / str(ask_usage)
            folder.mkdir()
            async with rig(folder, picky, model="alias", ask_usage=ask_usage) as gateway:
                status, seen = await gateway.post(body)
                assert status == expected
                (call,) = await gateway.close()
                assert call.usage_raw is None
                assert call.error == ("bad_request" if ask_usage else None)
        assert gateway.seen[0].json == body
        assert split_events(seen) == stream_events(usage=False)

    asyncio.run(run())


def test_usage_beside_the_last_choice_is_cut_without_the_choice(tmp_path: Path) -> None:
    last = event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": {"a": 1}})

    async def run() -> None:
        async with rig(tmp_path, stream_reply([last, b": comment\n\n", b"data: [DONE]\n\n"])) as gateway:
            _, seen = await gateway.post(request_body(stream=True))
            assert seen == (
                b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n'
                b": comment\n\ndata: [DONE]\n\n"
            )

    asyncio.run(run())


@pytest.mark.parametrize("asks", [True, False])
def test_every_flush_arrives_before_the_next_is_sent(tmp_path: Path, asks: bool) -> None:
    """A gateway that collects chunks would deadlock here: each is sent only after the last one was seen."""
    events = stream_events(usage=False)

    async def run() -> None:
        gates = [asyncio.Event() for _ in events]
        async with rig(tmp_path, stream_reply(events, gates)) as gateway:
            body = request_body(stream=True, **({"stream_options": {"include_usage": True}} if asks else {}))
            gates[0].set()
            async with gateway.client.post(URL, json=body, headers=AUTH) as response:
                for number, expected in enumerate(events):
                    gates[number].set()
                    got = await asyncio.wait_for(response.content.readchunk(), 60)
                    assert got == (expected, True)

    asyncio.run(run())


def test_half_events_pass_at_once_when_usage_was_asked_for(tmp_path: Path) -> None:
    pieces = [b'data: {"cho', b'ices":[]}\n', b"\ndata: [DONE]\n\n"]

    async def run() -> None:
        gates = [asyncio.Event() for _ in pieces]
        async with rig(tmp_path, stream_reply(pieces, gates)) as gateway:
            gates[0].set()
            body = request_body(stream=True, stream_options={"include_usage": True})
            async with gateway.client.post(URL, json=body, headers=AUTH) as response:
                for number, expected in enumerate(pieces):
                    gates[number].set()
                    assert await asyncio.wait_for(response.content.readchunk(), 60) == (expected, True)

    asyncio.run(run())


def test_compressed_answer_is_unpacked_and_metered(tmp_path: Path) -> None:
    packed = gzip.compress(json.dumps(completion()).encode())

    async def run() -> None:
        async with rig(tmp_path, json_reply(packed, headers={"Content-Encoding": "gzip"})) as gateway:
            status, body = await gateway.post(request_body())
            assert status == 200
            assert json.loads(body) == completion()
            (call,) = await gateway.close()
            assert call.usage_raw is not None

    asyncio.run(run())


def test_large_bodies_pass_whole(tmp_path: Path) -> None:
    text = "x" * (3 << 20)

    async def run() -> None:
        async with rig(tmp_path, json_reply(completion(text))) as gateway:
            _, body = await gateway.post(request_body(messages=[{"role": "user", "content": text}]))
            assert json.loads(body) == completion(text)
            assert gateway.seen[0].json["messages"][0]["content"] == text

    asyncio.run(run())


def test_refusal_is_kept(tmp_path: Path) -> None:
    choice = {"index": 0, "message": {"content": None, "refusal": "No."}, "finish_reason": "stop"}
    filtered = {"index": 0, "message": {"content": ""}, "finish_reason": "content_filter"}

    async def run() -> None:
        for number, given in enumerate((choice, filtered)):
            folder = tmp_path / str(number)
            folder.mkdir()
            async with rig(folder, json_reply(completion(choices=[given]))) as gateway:
                await gateway.post(request_body())
                (call,) = await gateway.close()
                assert call.refusal == ("No.", "content_filter")[number]

    asyncio.run(run())
