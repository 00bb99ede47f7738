"""A recorded cell answers again: whatever order requests come in, and no request that was not recorded."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from gateway_rig import (
    CREDENTIAL,
    Handler,
    Rig,
    completion,
    in_turn,
    json_reply,
    request_body,
    rig,
    stream_events,
    stream_reply,
)

from orchestrator.errors import InputError
from orchestrator.gateway.contract import Replay, ReplayReport, ValueDifference
from orchestrator.gateway.evidence import read_raw_calls, read_wire
from orchestrator.gateway.record import CHUNKS_MAX, CallInProgress
from orchestrator.gateway.replay import load_recording

Talk = Callable[[Rig], Awaitable[None]]


def tool_result(text: str) -> dict[str, Any]:
    call = {"id": "c9", "type": "function", "function": {"name": "bash", "arguments": '{"command":"ls"}'}}
    return request_body(
        messages=[
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c9", "content": text},
        ]
    )


def record(folder: Path, handler: Handler, talk: Talk) -> Path:
    async def run() -> None:
        async with rig(folder, handler) as gateway:
            await talk(gateway)
            await gateway.close()

    folder.mkdir()
    asyncio.run(run())
    return folder


def replay(recorded: Path, folder: Path, talk: Talk, **changes: Any) -> ReplayReport:
    """Talk to the recording in `recorded`; the endpoint is there, and must not be asked."""
    report = folder / "replay.json"
    asked = Replay(
        cell_id="s/c/m/t#run1",
        calls_path=recorded / "calls.jsonl",
        wire_path=recorded / "wire.jsonl.gz",
        report_path=report,
        **changes,
    )

    async def run() -> None:
        async with rig(folder, json_reply(completion("asked")), endpoint=None, replay=asked) as gateway:
            await talk(gateway)
            await gateway.close()
            assert gateway.seen == []

    folder.mkdir()
    asyncio.run(run())
    return ReplayReport.model_validate_json(report.read_bytes())


def posts(*bodies: dict[str, Any], into: list[tuple[int, bytes]] | None = None) -> Talk:
    async def talk(gateway: Rig) -> None:
        for body in bodies:
            answer = await gateway.post(body)
            if into is not None:
                into.append(answer)

    return talk


@pytest.mark.parametrize("asks_usage", [True, False])
def test_a_stream_comes_again_in_its_pieces(tmp_path: Path, asks_usage: bool) -> None:
    options = {"stream_options": {"include_usage": True}} if asks_usage else {}
    body, first, again = request_body(stream=True, **options), [], []
    pieces = [b"".join(stream_events(usage=True))[at : at + 50] for at in range(0, 900, 50)]
    recorded = record(
        tmp_path / "a", stream_reply([piece for piece in pieces if piece]), posts(body, into=first)
    )
    report = replay(recorded, tmp_path / "b", posts(body, into=again))
    assert again == first
    assert (report.asked, report.not_asked, report.difference) == (1, (), None)
    old, new = (read_raw_calls(folder / "calls.jsonl")[0] for folder in (tmp_path / "a", tmp_path / "b"))
    assert new.usage_raw == old.usage_raw
    assert new.usage_raw
    [old_wire], [new_wire] = (list(read_wire(tmp_path / name / "wire.jsonl.gz")) for name in "ab")
    assert new_wire.response == old_wire.response
    assert sum(size for _, size in old_wire.chunks) == len(str(old_wire.response).encode())
    assert [size for _, size in new_wire.chunks] == [size for _, size in old_wire.chunks]
    assert old_wire.headers == new_wire.headers == {"content-type": "text/event-stream"}


def test_requests_are_matched_by_what_they_say_and_equal_ones_in_order(tmp_path: Path) -> None:
    title, main = request_body(messages=[{"role": "user", "content": "title?"}]), request_body()
    handler = in_turn(*(json_reply(completion(text)) for text in ("first", "title", "second")))
    recorded = record(tmp_path / "a", handler, posts(main, title, main))
    answers: list[tuple[int, bytes]] = []
    report = replay(recorded, tmp_path / "b", posts(title, main, main, into=answers))
    said = [json.loads(body)["choices"][0]["message"]["content"] for _, body in answers]
    assert said == ["title", "first", "second"]
    assert report.difference is None


def test_an_altered_tool_result_is_all_that_is_shown(tmp_path: Path) -> None:
    main, later = request_body(), request_body(messages=[{"role": "user", "content": "x" * 500}])
    listing = "total 2\nREADME.md\nsrc\n"
    recorded = record(
        tmp_path / "a", json_reply(completion()), posts(main, tool_result(listing + "tests"), later)
    )
    answers: list[tuple[int, bytes]] = []
    events: list[str] = []

    async def talk(gateway: Rig) -> None:
        await posts(main, tool_result(listing + "test"), later, into=answers)(gateway)
        events.extend(gateway.events)

    report = replay(recorded, tmp_path / "b", talk)
    assert report.difference is not None
    assert (report.difference.index, report.difference.recorded_index) == (1, 1)
    assert report.difference.places == (
        ValueDifference(path="$.messages[2].content", recorded="tests", sent="test"),
    )
    assert report.difference.more == 0
    assert report.not_asked == (1, 2)
    # Nothing is answered after it, and the runner is told once.
    assert [status for status, _ in answers] == [200, 400, 400]
    assert events == ["differs"]
    calls = read_raw_calls(tmp_path / "b" / "calls.jsonl")
    assert [call.error for call in calls] == [None, "replay_differs", "replay_differs"]
    assert {call.error_detail for call in calls[1:]} == {"request 1 is not as recorded in call 1"}


@pytest.mark.parametrize(
    ("bodies", "how"),
    [
        ([request_body(), request_body(messages=[]), request_body()], "sent after the last recorded one"),
        ([request_body(), request_body()], "sent once more than it was recorded"),
    ],
)
def test_a_request_too_many(tmp_path: Path, bodies: list[dict[str, Any]], how: str) -> None:
    recorded = record(
        tmp_path / "a", json_reply(completion()), posts(request_body(), request_body(messages=[]))
    )
    report = replay(recorded, tmp_path / "b", posts(*bodies))
    assert report.difference is not None
    assert (report.difference.how, report.difference.places) == (how, ())


def test_what_only_ids_times_and_the_credential_differ_in_is_the_same(tmp_path: Path) -> None:
    def body(credential: str, day: str, took: str, call_id: str) -> dict[str, Any]:
        text = f"Today's date: {day}; key {credential}; Ran 4 tests in {took}s"
        call = {"id": call_id, "type": "function", "function": {"name": "bash", "arguments": "{}"}}
        reply = {"role": "tool", "tool_call_id": call_id, "content": text}
        return request_body(messages=[{"role": "assistant", "tool_calls": [call]}, reply])

    first = body(CREDENTIAL, "Sat Nov 28 2026", "0.001", "call_1")
    recorded = record(tmp_path / "a", json_reply(completion()), posts(first))
    assert CREDENTIAL not in gzip.decompress((recorded / "wire.jsonl.gz").read_bytes()).decode()
    again = body(CREDENTIAL, "Mon Jan 4 2027", "0.013", "call_x")
    assert replay(recorded, tmp_path / "b", posts(again)).difference is None


def test_failures_come_again(tmp_path: Path) -> None:
    refused = {"error": {"message": "no such tool", "type": "invalid_request_error"}}
    cut = stream_reply(stream_events(usage=True)[:2], cut=True)
    limited = json_reply({"error": {"message": "slow down"}}, 429, {"Retry-After": "99999"})
    handler = in_turn(json_reply(refused, 400), limited, cut)
    bodies = [request_body(seed=1), request_body(seed=2), request_body(seed=3, stream=True)]

    async def talk(gateway: Rig) -> None:
        assert (await gateway.post(bodies[0]))[0] == 400
        assert (await gateway.post(bodies[1]))[0] == 429
        with pytest.raises(aiohttp.ClientError):
            await gateway.post(bodies[2])

    recorded = record(tmp_path / "a", handler, talk)
    assert replay(recorded, tmp_path / "b", talk).difference is None
    before, after = (read_raw_calls(tmp_path / name / "calls.jsonl") for name in "ab")
    assert [call.error for call in before] == ["bad_request", "rate_limited", "stream_cut"]
    assert [(it.error, it.error_detail, it.status) for it in after] == [
        (it.error, it.error_detail, it.status) for it in before
    ]
    [*_, wire] = read_wire(tmp_path / "b" / "wire.jsonl.gz")
    assert wire.end == "cut"
    assert dict(list(read_wire(tmp_path / "b" / "wire.jsonl.gz"))[1].headers)["retry-after"] == "99999"


def test_an_answer_that_the_client_did_not_wait_for_is_not_given_to_its_end(tmp_path: Path) -> None:
    gates = [asyncio.Event(), asyncio.Event()]
    gates[0].set()

    async def talk(gateway: Rig) -> None:
        body = json.dumps(request_body(stream=True))
        headers = {"Authorization": f"Bearer {CREDENTIAL}"}
        async with gateway.client.post(
            "http://cell/v1/chat/completions", data=body, headers=headers
        ) as response:
            assert await response.content.readany() == stream_events(usage=False)[0]
            assert not response.content.at_eof()
            response.close()

    recorded = record(tmp_path / "a", stream_reply(stream_events(usage=False), gates), talk)
    replay(recorded, tmp_path / "b", talk)
    for name in "ab":
        [call] = read_raw_calls(tmp_path / name / "calls.jsonl")
        assert call.error == "client_gone"
        [wire] = read_wire(tmp_path / name / "wire.jsonl.gz")
        assert (wire.end, wire.response) == ("left", stream_events(usage=False)[0].decode())


def test_paced_answers_take_as_long_as_they_did(tmp_path: Path) -> None:
    recorded = record(tmp_path / "a", json_reply(completion()), posts(request_body()))
    wire = recorded / "wire.jsonl.gz"
    line = json.loads(gzip.decompress(wire.read_bytes()))
    wire.write_bytes(gzip.compress(json.dumps(line | {"chunks": [[2_500_000, 1]]}).encode() + b"\n"))
    slept: list[list[float]] = []

    async def talk(gateway: Rig) -> None:
        await gateway.post(request_body())
        slept.append(gateway.clock.slept)

    replay(recorded, tmp_path / "b", talk, paced=True)
    replay(recorded, tmp_path / "c", talk)
    assert slept == [[2.5], []]


def test_a_record_of_an_earlier_cab_is_replayed_whole(tmp_path: Path) -> None:
    recorded = record(tmp_path / "a", json_reply(completion()), posts(request_body()))
    wire = recorded / "wire.jsonl.gz"
    line = json.loads(gzip.decompress(wire.read_bytes()))
    old = {name: line[name] for name in ("index", "request", "response")}
    wire.write_bytes(gzip.compress(json.dumps(old).encode() + b"\n"))
    answers: list[tuple[int, bytes]] = []
    replay(recorded, tmp_path / "b", posts(request_body(), into=answers))
    assert [(status, json.loads(body)) for status, body in answers] == [(200, completion())]


def test_what_is_stored_in_part_is_not_replayed(tmp_path: Path) -> None:
    recorded = record(tmp_path / "a", json_reply(completion()), posts(request_body()))
    wire = recorded / "wire.jsonl.gz"
    line = json.loads(gzip.decompress(wire.read_bytes()))
    for change in ({"end": "truncated"}, {"request": "{"}):
        wire.write_bytes(gzip.compress(json.dumps(line | change).encode() + b"\n"))
        with pytest.raises(InputError, match="call 0 is longer than what is stored"):
            load_recording(recorded / "calls.jsonl", wire, "chat")


def test_the_times_of_a_long_stream_are_bounded() -> None:
    call = CallInProgress(0, "chat", "/v1/chat/completions", lambda: 1.0, lambda _: None)
    for _ in range(CHUNKS_MAX + 5):
        call.received(b"ab")
    assert len(call.chunks) == CHUNKS_MAX
    assert sum(size for _, size in call.chunks) == 2 * (CHUNKS_MAX + 5)
