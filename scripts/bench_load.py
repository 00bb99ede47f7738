"""The load generator of scripts/bench_gateway.py: keep-alive connections that write ready-made bytes.

It parses no JSON and no more of HTTP than where a response ends, so that it is no bottleneck; what it costs
stands in the direct call.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from dataclasses import dataclass, field
from pathlib import Path

from bench_hops import CREDENTIAL, PAUSE, Address

_SENT = re.compile(rb"sent=(\d+)")


@dataclass
class Times:
    """Seconds of each call, and from the endpoint's sending of the first event to its arrival."""

    calls: list[float] = field(default_factory=list)
    first_events: list[float] = field(default_factory=list)


def request(*, stream: bool, pause: bool) -> bytes:
    text = (PAUSE.decode() if pause else "") + "y" * 2000
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}], "stream": stream})
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {CREDENTIAL}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return (head + body).encode()


async def call_many(
    address: Address, calls: int, at_once: int, *, stream: bool, pause: bool = False
) -> Times:
    """`calls` calls over `at_once` connections, each warmed by one call that is not counted.

    Raises SystemExit for an answer that is not 200.
    """
    sent, times = request(stream=stream, pause=pause), Times()

    async def connection(share: int) -> None:
        reader, writer = await _connect(address)
        for number in range(share + 1):
            start = time.perf_counter()
            writer.write(sent)
            first, closes = await _read_response(reader)
            if number:
                times.calls.append(time.perf_counter() - start)
                if first is not None:
                    times.first_events.append(first)
            if closes:
                writer.close()
                reader, writer = await _connect(address)
        writer.close()

    await asyncio.gather(*(connection(calls // at_once) for _ in range(at_once)))
    return times


async def _connect(address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if isinstance(address, Path):
        return await asyncio.open_unix_connection(address)
    return await asyncio.open_connection(*address.split(":"))


async def _read_response(reader: asyncio.StreamReader) -> tuple[float | None, bool]:
    """Seconds that the first event took from the endpoint, if there is one, and whether the server closes."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if not head.startswith(b"http/1.1 200"):
        raise SystemExit(f"unexpected answer: {head!r}")
    closes, first = b"connection: close" in head, None
    if b"transfer-encoding: chunked" not in head:
        await reader.readexactly(int(head.split(b"content-length:")[1].split(b"\r\n")[0]))
        return None, closes
    while size := int(await reader.readline(), 16):
        data = await reader.readexactly(size + 2)
        if first is None and (stated := _SENT.search(data)):
            first = (time.monotonic_ns() - int(stated[1])) / 1e9
    await reader.readline()
    return first, closes
