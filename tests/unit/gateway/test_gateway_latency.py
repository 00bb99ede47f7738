"""The times of one call: its connection, first byte, first token and last byte."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from gateway_rig import AUTH, URL, in_turn, json_reply, request_body, rig, stream_events, stream_reply
from wire_corpus import STREAMED, Exchange, counted, label

from orchestrator.gateway.sse import event_data, split_events
from orchestrator.gateway.wires import WIRES
from orchestrator.gateway.wires.meters import StreamMeter

RATE_LIMITED = {"error": {"message": "slow down"}}
FIRST = {
    "chat": ("choices", "delta", "content"),
    "responses": ("response.reasoning", "delta", "_call"),
    "messages": ("thinking_delta", "text_delta", "input_json_delta"),
    "gemini": ("candidates",),
}
"""Words of which an event with output holds at least one, by wire."""


@pytest.mark.parametrize("exchange", STREAMED, ids=label)
def test_the_first_token_is_that_of_the_first_event_with_output(exchange: Exchange) -> None:
    """Not a role, an empty text, a response that was created or a ping."""
    meter = StreamMeter(WIRES[exchange.wire].read)
    silent: list[bytes] = []
    for piece in exchange.pieces:
        meter.feed(piece)
        if meter.reading.spoke:
            break
        silent.append(piece)
    assert meter.reading.spoke
    assert any(word in piece.decode() for word in FIRST[exchange.wire])
    data = [event_data(event) for event in split_events(b"".join(silent))]
    for event in map(json.loads, filter(None, data)):
        assert not WIRES[exchange.wire].answer(event).text
        assert not WIRES[exchange.wire].answer(event).calls


def test_times_of_a_stream_are_told_apart(tmp_path: Path) -> None:
    """A second passes before each event; the first of them holds a role alone."""
    events = stream_events(usage=True)
    gates = [asyncio.Event() for _ in events]

    async def run() -> None:
        limited = json_reply(RATE_LIMITED, 429, {"Retry-After": "7"})
        async with rig(tmp_path, in_turn(limited, stream_reply(events, gates))) as gateway:
            body = request_body(stream=True, stream_options={"include_usage": True})
            sending = asyncio.create_task(gateway.client.post(URL, json=body, headers=AUTH))
            while len(gateway.seen) < 2:
                await asyncio.sleep(0.005)
            # The response's head comes at once, its bytes when the gates open.
            async with await sending as response:
                for event, gate in zip(events, gates, strict=True):
                    gateway.clock.now += 1
                    gate.set()
                    assert (await response.content.readexactly(len(event))) == event
            await gateway.close()
            [call] = counted(gateway)
        assert (call.start, call.sent) == (100, 107)
        assert [(wait.start, wait.end) for wait in call.waits] == [(100, 107)]
        assert (call.first_byte, call.first_token, call.last_byte) == (108, 109, 107 + len(events))
        assert call.after_sent(call.first_token) == 2

    asyncio.run(run())


def test_a_connection_is_made_once_and_used_again(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, json_reply({"choices": [{}]})) as gateway:
            await gateway.post(request_body())
            await gateway.post(request_body())
            made, used = await gateway.close()
        assert (made.connection_reused, used.connection_reused) == (False, True)
        assert made.connect_s is not None
        assert used.connect_s is None
        # One body, read whole: no first token is known of it.
        assert made.first_token is None
        assert made.last_byte is not None

    asyncio.run(run())
