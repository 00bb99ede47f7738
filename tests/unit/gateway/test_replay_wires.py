"""Recorded answers come again on every wire: streamed and whole, calls and counts of tokens."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from gateway_rig import in_turn, json_reply, rig
from wire_corpus import PLAIN, STREAMED, ask, counted, reply

from orchestrator.adapter import Wire
from orchestrator.gateway.contract import Replay, ReplayReport
from orchestrator.gateway.wires import WIRES

COUNT: dict[Wire, tuple[str, dict[str, Any]]] = {
    "messages": ("/v1/messages/count_tokens", {"input_tokens": 7}),
    "gemini": ("/v1beta/models/m:countTokens", {"totalTokens": 7}),
}


@pytest.mark.parametrize("wire", WIRES)
def test_every_wire_is_replayed(tmp_path: Path, wire: Wire) -> None:
    """The two calls ask the same in reverse order: on Gemini's wire the path alone tells them apart."""
    plain = PLAIN[wire]
    streamed = next(it for it in STREAMED if it.wire == wire and it.usage and it.calls)
    requests = [(it.path, it.request) for it in (plain, streamed)]
    handlers = [reply(plain), reply(streamed)]
    if wire in COUNT:
        path, answer = COUNT[wire]
        requests.append((path, plain.request))
        handlers.append(json_reply(answer))
    recorded, replayed = tmp_path / "recorded", tmp_path / "replayed"
    report = replayed / "replay.json"

    async def run(folder: Path, order: list[tuple[str, Any]], **changes: Any) -> tuple[list[Any], list[Any]]:
        folder.mkdir()
        async with rig(folder, in_turn(*handlers), wire=wire, **changes) as gateway:
            answers = [await ask(gateway, path, request) for path, request in order]
            await gateway.close()
            return answers, [(call.usage, call.streamed, call.finish_reason) for call in counted(gateway)]

    first, calls = asyncio.run(run(recorded, requests))
    source = Replay(
        cell_id="s/c/m/t#run1",
        calls_path=recorded / "calls.jsonl",
        wire_path=recorded / "wire.jsonl.gz",
        report_path=report,
        wire=wire,
    )
    again, calls_again = asyncio.run(run(replayed, requests[::-1], endpoint=None, replay=source))

    def told(answer: tuple[int, bytes, str]) -> tuple[int, Any, str]:
        status, body, kind = answer
        return status, body if kind == "text/event-stream" else json.loads(body), kind

    assert [told(answer) for answer in again[::-1]] == [told(answer) for answer in first]
    assert calls_again[::-1] == calls
    seen = ReplayReport.model_validate_json(report.read_bytes())
    assert (seen.asked, seen.not_asked, seen.difference) == (len(requests), (), None)
