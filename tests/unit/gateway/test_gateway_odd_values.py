"""Values that JSON can write and that agents and endpoints do send, though hardly anybody reckons with them:
no call is lost over one, and no cell's record becomes unreadable.
"""

from __future__ import annotations

import asyncio
import functools
import gzip
import io
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, ParamSpec

import pytest
from aiohttp import web
from gateway_rig import (
    AUTH,
    CREDENTIAL,
    KEY,
    MODEL,
    URL,
    Handler,
    chunk,
    completion,
    event,
    json_reply,
    request_body,
    rig,
    stream_events,
    stream_reply,
)

from orchestrator.gateway import cell, passing
from orchestrator.gateway.evidence import read_calls, read_wire
from orchestrator.gateway.record import Recorder
from orchestrator.gateway.translate.responses_tools import NAME_MAX, flat_name
from orchestrator.gateway.wires.shared import cumulated
from scorers.evidence import ModelCall, Price, Rates, Usage

P = ParamSpec("P")


def run(test: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """A test as pytest calls it."""

    @functools.wraps(test)
    def called(*args: P.args, **kwargs: P.kwargs) -> None:
        async def wait() -> None:
            await test(*args, **kwargs)

        asyncio.run(wait())

    return called


HALF = "\ud83d"
DONE = b"data: [DONE]\n\n"


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


async def one_call(
    folder: Path, handler: Handler, body: dict[str, Any] | None = None, **ch: Any
) -> ModelCall:
    """The call as it is read back from the cell's record."""
    async with rig(folder, handler, max_retries=0, **ch) as gateway:
        await gateway.post(body or request_body())
        await gateway.server.close_cell("cell")
        [call] = read_calls(gateway.route.calls_path, gateway.route.wire_path, 0.0)
        [_] = gateway.wire()
        call.model_dump_json()
        return call


@pytest.mark.parametrize(
    "changes",
    [
        {"model": f"m{HALF}"},
        {"stop": [HALF]},
        {"stop": nested(300)},
        {"x": nested(900)},
        {"stop": nested(900)},
    ],
    ids=["half in the model", "half in a setting", "deep setting", "deep request", "deeper setting"],
)
@run
async def test_an_agent_cannot_spoil_its_record(tmp_path: Path, changes: dict[str, Any]) -> None:
    call = await one_call(tmp_path, json_reply(completion()), request_body(**changes))
    assert call.usage == Usage(input=12, output=3)
    assert call.error is None


@pytest.mark.parametrize(
    "changes",
    [{"model": HALF}, {"system_fingerprint": HALF}, {"x": nested(900)}],
    ids=["half in the model", "half in the fingerprint", "deep answer"],
)
@run
async def test_an_endpoint_cannot_spoil_a_record(tmp_path: Path, changes: dict[str, Any]) -> None:
    call = await one_call(tmp_path, json_reply(completion(**changes)))
    assert call.usage == Usage(input=12, output=3)


@run
async def test_deep_usage_is_recorded_without_what_is_deep(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 12, "completion_tokens": 3, "more": nested(300)}
    call = await one_call(tmp_path, json_reply(completion(usage=usage)))
    assert call.usage == Usage(input=12, output=3)


@run
async def test_a_count_beyond_all_numbers_is_none(tmp_path: Path) -> None:
    """It cannot be multiplied with a price either: the call was lost."""
    price = Price(rates=[Rates(input=1.0, output=1.0)], source="test")
    usage = {"prompt_tokens": 10**400, "completion_tokens": 1}
    call = await one_call(tmp_path, json_reply(completion(usage=usage)), price=price, max_usd=1.0)
    assert call.usage is None


@run
async def test_whole_numbers_are_counts_however_they_are_written(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 12.0, "completion_tokens": 3.0}
    call = await one_call(tmp_path, json_reply(completion(usage=usage)))
    assert call.usage == Usage(input=12, output=3)


def test_a_detail_of_usage_that_falls_to_0_is_not_stated() -> None:
    first = {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 8, "audio_tokens": 0}}
    last = {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 1}}
    joined = {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 8, "audio_tokens": 1}}
    assert cumulated(cumulated(None, first), last) == joined


@run
async def test_a_choice_with_an_index_of_null_is_the_first(tmp_path: Path) -> None:
    choice = {"index": None, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
    call = await one_call(tmp_path, json_reply(completion(choices=[choice])))
    assert (call.error, call.finish_reason) == (None, "stop")


@run
async def test_half_a_character_as_bytes_of_a_stream_passes(tmp_path: Path) -> None:
    """It can be read leniently, and be no UTF-8."""
    odd = event(chunk({"content": "Q"}, usage=None)).replace(b"Q", b"\xed\xa0\xbd")
    pieces = [odd, *stream_events(usage=True)[1:]]
    async with rig(tmp_path, stream_reply(pieces)) as gateway:
        _, body = await gateway.post(request_body(stream=True))
        [call] = await gateway.close()
    assert b"\xed\xa0\xbd" in body
    assert call.error is None
    assert call.usage_raw == {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}


@run
async def test_an_error_beside_usage_reaches_the_cli(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 2}
    last = event({"choices": [], "usage": usage, "error": {"message": "overloaded", "code": 503}})
    async with rig(tmp_path, stream_reply([*stream_events(usage=False)[:2], last])) as gateway:
        _, body = await gateway.post(request_body(stream=True))
    assert b"overloaded" in body


@pytest.mark.parametrize("content_type", ["Text/Event-Stream", "text/plain"])
@run
async def test_a_stream_of_another_type_ends_as_it_says(tmp_path: Path, content_type: str) -> None:
    async def cut_short(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": content_type})
        await response.prepare(request)
        await response.write(b"".join(stream_events(usage=True)[:3]))
        return response

    call = await one_call(tmp_path, cut_short, request_body(stream=True))
    assert call.error == "stream_cut"


@run
async def test_a_date_beyond_all_zones_states_no_wait(tmp_path: Path) -> None:
    headers = {"Retry-After": "Mon, 01 Jan 2024 00:00:00 +99999999999999"}
    call = await one_call(tmp_path, json_reply({"error": {"message": "x"}}, 429, headers))
    assert call.error == "rate_limited"


@run
async def test_a_compressed_request_goes_up_as_what_it_is(tmp_path: Path) -> None:
    body = gzip.compress(json.dumps(request_body()).encode())
    async with rig(tmp_path, json_reply(completion())) as gateway:
        headers = {**AUTH, "Content-Encoding": "gzip"}
        async with gateway.client.post(URL, data=io.BytesIO(body), headers=headers) as response:
            assert response.status == 200
        assert gateway.seen[0].json["model"] == MODEL
        assert "Content-Encoding" not in gateway.seen[0].headers


@run
async def test_a_request_that_cannot_be_unpacked_is_the_agents_fault(tmp_path: Path) -> None:
    async with rig(tmp_path, json_reply(completion())) as gateway:
        headers = {**AUTH, "Content-Encoding": "gzip"}
        async with gateway.client.post(URL, data=io.BytesIO(b"no gzip"), headers=headers) as response:
            assert response.status == 400
        [call] = await gateway.close()
    assert call.error == "bad_request"


def messages_request(**changes: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "go"}], **changes}


async def translated(folder: Path, handler: Handler, body: dict[str, Any]) -> tuple[int, bytes, str | None]:
    """Status, body and the error of a call from messages to chat."""
    async with rig(folder, handler, cli_wire="messages", max_retries=0) as gateway:
        headers = {"x-api-key": CREDENTIAL}
        async with gateway.client.post("http://cell/v1/messages", json=body, headers=headers) as response:
            status, said = response.status, await response.read()
        [call] = await gateway.close()
    return status, said, call.error


@run
async def test_half_a_character_can_be_asked_and_answered_in_translation(tmp_path: Path) -> None:
    """Tools' results cut in the middle of an emoji, and emoji whose halves come in two chunks."""
    pieces = [
        event(chunk({"content": HALF})),
        event(chunk({"content": "\ude00"})),
        event(chunk({}, "stop")),
        DONE,
    ]
    asked = messages_request(stream=True, messages=[{"role": "user", "content": f"cut {HALF}"}])
    status, said, error = await translated(tmp_path, stream_reply(pieces), asked)
    assert (status, error) == (200, None)
    parts = [json.loads(line[6:]) for line in said.decode().splitlines() if line.startswith("data: ")]
    text = "".join(part["delta"]["text"] for part in parts if part["type"] == "content_block_delta")
    assert text.encode("utf-16", "surrogatepass").decode("utf-16") == "\U0001f600"


@pytest.mark.parametrize("streamed", [True, False])
@run
async def test_a_stream_of_another_type_is_translated(tmp_path: Path, streamed: bool) -> None:
    async def untyped(request: web.Request) -> web.StreamResponse:
        return web.Response(body=b"".join(stream_events(usage=True)), content_type="text/plain")

    status, said, error = await translated(tmp_path, untyped, messages_request(stream=streamed))
    assert (status, error) == (200, None)
    assert b"llo" in said


@run
async def test_an_answer_that_cannot_be_translated_is_the_endpoints_fault(tmp_path: Path) -> None:
    answer = completion(choices=[{"index": 0, "finish_reason": "stop"}])
    status, _, error = await translated(tmp_path, json_reply(answer), messages_request())
    assert (status, error) == (502, "endpoint_down")


@run
async def test_a_message_repeated_at_the_end_of_a_stream_is_said_once(tmp_path: Path) -> None:
    last = chunk({}, "stop")
    last["choices"][0]["message"] = {"role": "assistant", "content": "once"}
    pieces = [event(chunk({"content": "once"})), event(last), DONE]
    _, said, _ = await translated(tmp_path, stream_reply(pieces), messages_request(stream=True))
    assert said.count(b"once") == 1


@pytest.mark.parametrize(
    "pieces",
    [
        [(0, "a", "read", '{"p":1}'), (0, "b", "list", '{"q":2}')],
        [(None, "a", "read", '{"p":1}'), (None, "b", "list", '{"q":2}')],
        [(None, None, "read", '{"p":1}'), (None, None, "list", '{"q":2}')],
        [(0, "a", "read", ""), (0, None, None, '{"p":1}'), (0, "b", "list", '{"q":'), (0, None, None, "2}")],
        [(0, "a", None, ""), (0, None, "read", '{"p":1}'), (1, "b", "list", '{"q":2}')],
        [(0, "a", "read", '{"p"'), (0, "c", "read", ":1}"), (1, "b", "list", '{"q":2}')],
    ],
    ids=["index 0", "no index", "no index nor id", "index 0, in pieces", "name late", "id changes"],
)
@run
async def test_calls_are_told_apart_by_what_endpoints_give(
    tmp_path: Path, pieces: list[tuple[int | None, str | None, str | None, str]]
) -> None:
    """In what is told the CLI, and in what is read of the record."""
    deltas = []
    for index, call_id, name, arguments in pieces:
        given = {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}
        deltas.append(event(chunk({"tool_calls": [given]})))
    handler = stream_reply([*deltas, event(chunk({}, "tool_calls")), DONE])
    _, said, _ = await translated(tmp_path, handler, messages_request(stream=True))
    parts = [json.loads(line[6:]) for line in said.decode().splitlines() if line.startswith("data: ")]
    names = [part["content_block"]["name"] for part in parts if part["type"] == "content_block_start"]
    texts = ["", ""]
    for part in parts:
        if part["type"] == "content_block_delta":
            texts[part["index"]] += part["delta"]["partial_json"]
    [wire] = read_wire(tmp_path / "wire.jsonl.gz")
    recorded = [(call.name, call.arguments) for call in wire.answer().calls]
    assert list(zip(names, texts, strict=True)) == [("read", '{"p":1}'), ("list", '{"q":2}')]
    assert recorded == [("read", '{"p":1}'), ("list", '{"q":2}')]


@run
async def test_evidence_holds_no_half_of_a_character(tmp_path: Path) -> None:
    """A tool's result that was cut in an emoji, and an emoji in two chunks, are texts that can be stored."""
    pieces = [event(chunk({"content": half})) for half in (HALF, "\ude00")]
    asked = {"id": "a", "type": "function", "function": {"name": "read", "arguments": f"{{}}{HALF}"}}
    messages = [
        {"role": "assistant", "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": "a", "content": f"cut {HALF}"},
    ]
    handler = stream_reply([*pieces, event(chunk({}, "stop")), DONE])
    async with rig(tmp_path, handler) as gateway:
        await gateway.post(request_body(stream=True, messages=messages))
        await gateway.close()
        [wire] = gateway.wire()
    told = wire.conversation()
    assert wire.answer().text == "\U0001f600"
    assert (told.results, told.calls[0].arguments) == ({"a": "cut \ufffd"}, "{}\ufffd")


def test_long_names_of_a_namespace_stay_apart() -> None:
    names = {flat_name("n" * 40, f"create_a_comment_with_a_long_name_{end}") for end in ("one", "two")}
    assert len(names) == 2
    assert all(len(name) <= NAME_MAX for name in names)


@run
async def test_a_cli_that_does_not_read_gives_its_place_back(tmp_path: Path) -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        if b"stuck" not in await request.read():
            return web.json_response(completion())
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        while True:
            await response.write(event(chunk({"content": "x" * 5000})))

    stuck = json.dumps(request_body(stream=True, messages=[{"role": "user", "content": "stuck"}])).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: cell\r\nAuthorization: Bearer {CREDENTIAL}\r\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passing, "STALLED_S", 0.2)
        async with rig(tmp_path, endless, concurrency=1) as gateway:
            reader, writer = await asyncio.open_unix_connection(str(gateway.route.socket), limit=1)
            writer.write(f"{head}Content-Length: {len(stuck)}\r\n\r\n".encode() + stuck)
            await reader.readexactly(1)
            async with asyncio.timeout(10):
                status, _ = await gateway.post(request_body())
            writer.close()
            first, second = await gateway.close()
    assert (status, first.error, second.error) == (200, "client_gone", None)


@run
async def test_what_is_not_charged_does_not_fill_the_disk(tmp_path: Path) -> None:
    """A request that cannot be translated costs its CLI nothing, however often it is sent."""
    asked = {"model": "m", "input": "x", "previous_response_id": "r"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cell, "REFUSED_RECORDS_MAX", 3)
        async with rig(tmp_path, json_reply(completion()), cli_wire="responses") as gateway:
            for _ in range(6):
                async with gateway.client.post("http://cell/v1/responses", json=asked, headers=AUTH) as said:
                    assert said.status == 400
            assert len(await gateway.close()) == 3


@run
async def test_counts_of_tokens_do_not_fill_the_disk(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cell, "REFUSED_RECORDS_MAX", 3)
        async with rig(tmp_path, json_reply({"input_tokens": 9}), wire="messages") as gateway:
            url = "http://cell/v1/messages/count_tokens"
            for _ in range(6):
                async with gateway.client.post(url, json=messages_request(), headers=AUTH) as said:
                    assert said.status == 200
            await gateway.server.close_cell("cell")
            assert len(gateway.wire()) == 3


@run
async def test_a_cell_holds_so_many_bytes_of_requests_at_once(tmp_path: Path) -> None:
    hold = asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        await hold.wait()
        return web.json_response(completion())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cell, "HELD_MAX", 3000)
        async with rig(tmp_path, slow) as gateway:
            first = asyncio.create_task(gateway.post(request_body(x="x" * 2000)))
            while not gateway.seen:
                await asyncio.sleep(0.01)
            refused, _ = await gateway.post(request_body(x="x" * 2000))
            hold.set()
            passed, _ = await first
            again, _ = await gateway.post(request_body(x="x" * 2000))
    assert (refused, passed, again) == (413, 200, 200)


@pytest.mark.parametrize("escaped", ["+", KEY], ids=["plus", "all"])
@run
async def test_a_key_in_numbers_of_json_reaches_no_cli(tmp_path: Path, escaped: str) -> None:
    """Not in a plain answer, and not where it is translated."""
    form = "".join(f"\\u{ord(char):04X}" if char in escaped else char for char in KEY).encode()
    handler = json_reply(json.dumps(completion("Q")).encode().replace(b'"Q"', b'"' + form + b'"'))
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    async with rig(tmp_path / "a", handler) as gateway:
        _, same = await gateway.post(request_body())
    _, said, _ = await translated(tmp_path / "b", handler, messages_request())
    assert KEY not in json.loads(same)["choices"][0]["message"]["content"]
    assert KEY.encode() not in said


@run
async def test_a_key_in_mixed_numbers_is_not_told_in_translation(tmp_path: Path) -> None:
    form = (f"\\u{ord(KEY[0]):04x}" + KEY[1:]).encode()
    handler = json_reply(json.dumps(completion("Q")).encode().replace(b'"Q"', b'"' + form + b'"'))
    _, said, _ = await translated(tmp_path, handler, messages_request())
    assert KEY.encode() not in said


@run
async def test_calls_that_wait_for_the_record_do_not_pass_the_limit(tmp_path: Path) -> None:
    async def room(_: Recorder) -> None:
        await asyncio.sleep(0.01)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Recorder, "room", room)
        async with rig(tmp_path, json_reply(completion()), max_calls=2) as gateway:
            answers = await asyncio.gather(*(gateway.post(request_body()) for _ in range(6)))
            assert len(gateway.seen) == 2
    assert sorted(status for status, _ in answers) == [200, 200, 403, 403, 403, 403]
