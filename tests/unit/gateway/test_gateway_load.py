"""Many calls leave nothing behind in the gateway, and many connections at once are all accepted."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from gateway_rig import completion, json_reply, request_body, rig, stream_events, stream_reply

from orchestrator.gateway import record
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


def test_calls_wait_while_too_much_is_left_to_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a CLI that is faster than the disk would fill the memory with what it said."""
    monkeypatch.setattr(record, "BACKLOG_MAX", 3 * record.CALL_WEIGHT)
    disk = threading.Event()

    async def run() -> None:
        async with rig(tmp_path, json_reply(completion())) as gateway:
            gateway.server._writer.submit(disk.wait)
            for _ in range(3):
                assert (await gateway.post(request_body()))[0] == 200
            waiting = asyncio.create_task(gateway.post(request_body()))
            try:
                done, _ = await asyncio.wait([waiting], timeout=0.2)
                assert not done
                assert len(gateway.seen) == 3
            finally:
                disk.set()
            assert (await waiting)[0] == 200

    asyncio.run(run())
