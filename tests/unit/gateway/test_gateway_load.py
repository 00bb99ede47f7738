"""Many calls leave nothing behind in the gateway, and many connections at once are all accepted."""

from __future__ import annotations

import asyncio
import gc
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from gateway_rig import json_reply, request_body, rig, stream_events, stream_reply

from orchestrator.gateway.record import CallInProgress
from orchestrator.gateway.wires.meters import StreamMeter

CALLS = 20
CONNECTIONS = 256
PER_CALL: tuple[type[Any], ...] = (CallInProgress, StreamMeter)


def kept() -> int:
    gc.collect()
    return sum(isinstance(value, PER_CALL) for value in gc.get_objects())


def test_no_call_is_kept_once_it_is_recorded(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig(tmp_path, stream_reply(stream_events(usage=True))) as gateway:
            before = kept()
            for _ in range(CALLS):
                assert (await gateway.post(request_body(stream=True)))[0] == 200
            while len(gateway.route.calls_path.read_bytes().splitlines()) < CALLS:
                await asyncio.sleep(0.01)
            # The last call's own may live on until the recorder's thread has another.
            assert kept() - before <= len(PER_CALL)

    asyncio.run(run())


def test_many_connections_at_once_are_accepted(tmp_path: Path) -> None:
    """A Unix socket refuses at once, with EAGAIN, what its queue does not hold; no client tries again."""

    async def run() -> None:
        async with rig(tmp_path, json_reply({})) as gateway:
            with ExitStack() as stack:
                for _ in range(CONNECTIONS):
                    client = stack.enter_context(socket.socket(socket.AF_UNIX))
                    client.setblocking(False)
                    client.connect(str(gateway.route.socket))

    asyncio.run(run())
