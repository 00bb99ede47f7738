"""What a hop between CLI and endpoint costs: added milliseconds a call, p50 and p95, against a direct call.

    python scripts/bench_gateway.py [--calls 160] [--rounds 5] [--json]

A small endpoint on loopback answers at once: plain with 1 kB, streamed with 20 events. Every hop runs in a
process of its own and is called over keep-alive connections, with 1 and 16 of them at once: the gateway
itself, a bare proxy (aiohttp's server) with aiohttp's client and with httpx, and a byte hop, which is the
floor. Direct calls and calls through the hop take turns, round by round; what is shown is the least disturbed
round of each (lowest p50, lowest p95), since other work on the machine only ever adds. The processor time of
the hop's process a call hardly depends on other work at all.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from orchestrator.gateway.client import Gateway
from orchestrator.gateway.contract import CellRoute, Endpoint

CREDENTIAL = "bench-credential"
EVENTS = 20
HOPS = ("byte hop", "aiohttp", "httpx", "gateway")


async def endpoint(address: str) -> None:
    """The endpoint: answers at once."""
    text = "x" * 800
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30}
    plain: dict[str, Any] = {
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": usage,
    }
    delta = {"index": 0, "delta": {"content": "word "}, "finish_reason": None}
    events = [{"model": "m", "choices": [delta]}] * EVENTS
    last: list[dict[str, Any]] = [
        {"model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    ]
    last.append({"model": "m", "choices": [], "usage": usage})
    flushes = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in events + last]
    flushes.append(b"data: [DONE]\n\n")

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        if b'"stream": true' not in await request.read():
            return web.json_response(plain)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for flush in flushes:
            await response.write(flush)
        await response.write_eof()
        return response

    host, port = address.split(":")
    await asyncio.get_running_loop().create_server(web.Server(handle, access_log=None), host, int(port))


async def byte_hop(address: str, path: str) -> None:
    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection(*address.split(":"))
        await asyncio.gather(copy(reader, up_writer), copy(up_reader, writer))

    await asyncio.start_unix_server(handle, path)


async def bare_proxy(address: str, path: str, client: str) -> None:
    """aiohttp's server in front of a client library: nothing is read, only passed."""
    url = f"http://{address}/v1/chat/completions"

    async def aiohttp_chunks(body: bytes) -> AsyncIterator[bytes]:
        async with session.post(url, data=body) as response:
            async for data in response.content.iter_any():
                yield data

    async def httpx_chunks(body: bytes) -> AsyncIterator[bytes]:
        async with httpx_client.stream("POST", url, content=body) as response:
            async for data in response.aiter_raw():
                yield data

    if client == "httpx":
        import httpx

        httpx_client = httpx.AsyncClient(timeout=None, limits=httpx.Limits(max_connections=None))
    else:
        session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
    chunks = httpx_chunks if client == "httpx" else aiohttp_chunks

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        body = await request.read()
        await response.prepare(request)
        async for data in chunks(body):
            await response.write(data)
        await response.write_eof()
        return response

    await asyncio.get_running_loop().create_unix_server(web.Server(handle, access_log=None), path)


async def call_many(address: str | Path, calls: int, at_once: int, *, stream: bool) -> list[float]:
    """Seconds of each call, over `at_once` keep-alive connections."""
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "y" * 2000}], "stream": stream})
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {CREDENTIAL}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    request = (head + body).encode()
    times: list[float] = []

    async def connection(share: int) -> None:
        if isinstance(address, Path):
            reader, writer = await asyncio.open_unix_connection(address)
        else:
            reader, writer = await asyncio.open_connection(*address.split(":"))
        for _ in range(share):
            start = time.perf_counter()
            writer.write(request)
            await read_response(reader)
            times.append(time.perf_counter() - start)
        writer.close()

    await asyncio.gather(*(connection(calls // at_once) for _ in range(at_once)))
    return times


async def read_response(reader: asyncio.StreamReader) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if not head.startswith(b"http/1.1 200"):
        raise SystemExit(f"unexpected answer: {head!r}")
    if b"transfer-encoding: chunked" in head:
        while (size := int(await reader.readline(), 16)) or await reader.readline() != b"\r\n":
            await reader.readexactly(size + 2)
        return
    await reader.readexactly(int(head.split(b"content-length:")[1].split(b"\r\n")[0]))


@contextlib.contextmanager
def role(*arguments: str) -> Iterator[int]:
    """A process of this script that plays one part; yields its id."""
    process = subprocess.Popen([sys.executable, __file__, "--role", *arguments], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
    finally:
        process.terminate()
        process.communicate()


@contextlib.contextmanager
def hop(name: str, address: str, folder: Path) -> Iterator[tuple[Path, int]]:
    """A running hop; yields its socket and its process's id."""
    socket = folder / "hop.sock"
    socket.unlink(missing_ok=True)
    if name != "gateway":
        with role(name, address, str(socket)) as pid:
            yield socket, pid
        return
    with Gateway.start(
        [Endpoint(name="up", base_url=f"http://{address}/v1", key="bench-upstream-key")]
    ) as gateway:
        gateway.open_cell(
            CellRoute(
                cell_id="bench",
                socket=socket,
                socket_owner=(os.geteuid(), os.getegid()),
                credential=CREDENTIAL,
                model="m",
                endpoint="up",
                calls_path=folder / "calls.jsonl",
                wire_path=folder / "wire.jsonl.gz",
            )
        )
        yield socket, gateway.pid


def percentiles(times: list[float]) -> tuple[float, float]:
    """p50 and p95 in milliseconds."""
    return statistics.median(times) * 1000, statistics.quantiles(times, n=20)[18] * 1000


def measure(address: str | Path, calls: int, at_once: int, *, stream: bool) -> tuple[float, float]:
    return percentiles(asyncio.run(call_many(address, calls, at_once, stream=stream)))


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def least(rounds: list[tuple[float, float]]) -> tuple[float, float]:
    return min(p50 for p50, _ in rounds), min(p95 for _, p95 in rounds)


def bench(calls: int, rounds: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    address = f"127.0.0.1:{free_port()}"
    modes = [(stream, at_once) for stream in (False, True) for at_once in (1, 16)]
    with tempfile.TemporaryDirectory() as folder, role("endpoint", address):
        for name in HOPS:
            with hop(name, address, Path(folder)) as (socket, pid):
                for stream, at_once in modes:
                    measure(socket, at_once * 2, at_once, stream=stream)
                    direct, through, cpu = [], [], 0.0
                    for _ in range(rounds):
                        direct.append(measure(address, calls, at_once, stream=stream))
                        cpu -= cpu_seconds(pid)
                        through.append(measure(socket, calls, at_once, stream=stream))
                        cpu += cpu_seconds(pid)
                    rows.append(_row(name, stream, at_once, least(direct), least(through)))
                    rows[-1]["cpu_ms"] = cpu * 1000 / (calls * rounds)
    return rows


def _row(
    name: str, stream: bool, at_once: int, direct: tuple[float, float], through: tuple[float, float]
) -> dict[str, Any]:
    return {
        "hop": name,
        "streamed": stream,
        "at_once": at_once,
        "direct_p50_ms": direct[0],
        "direct_p95_ms": direct[1],
        "added_p50_ms": through[0] - direct[0],
        "added_p95_ms": through[1] - direct[1],
    }


def start_up() -> float:
    """Median seconds from starting the gateway's process to its `ready`."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        with Gateway.start():
            times.append(time.perf_counter() - start)
    return statistics.median(times)


def free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def play(part: str, address: str, path: str) -> None:
    if part == "endpoint":
        await endpoint(address)
    elif part == "byte hop":
        await byte_hop(address, path)
    else:
        await bare_proxy(address, path, part)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, default=160, help="calls of each round (default 160)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each measurement (default 5)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--write", type=Path, help="write the figures into this Markdown file as well")
    parser.add_argument("--role", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.role:
        asyncio.run(play(arguments.role[0], arguments.role[1], arguments.role[-1]))
        return
    rows, ready = bench(arguments.calls, arguments.rounds), start_up()
    if arguments.json:
        sys.stdout.write(json.dumps({"start_up_s": ready, "rows": rows}, indent=1) + "\n")
        return
    if arguments.write:
        arguments.write.write_text(markdown(rows, ready, arguments.rounds, arguments.calls), "utf-8")
    sys.stdout.write("\n".join([*lines_of(rows), f"gateway start-up: {ready:.2f} s"]) + "\n")


HEADS = ("direct p50", "added p50", "added p95", "CPU")
NUMBERS = ("direct_p50_ms", "added_p50_ms", "added_p95_ms", "cpu_ms")


def lines_of(rows: list[dict[str, Any]]) -> list[str]:
    """The figures as a table of milliseconds."""
    lines = [f"{'hop':10}{'mode':10}{'at once':>8}" + "".join(f"{head:>12}" for head in HEADS) + "  (ms)"]
    for row in rows:
        numbers = "".join(f"{row[name]:12.2f}" for name in NUMBERS)
        lines.append(f"{row['hop']:10}{_mode(row):10}{row['at_once']:>8}{numbers}")
    return lines


def markdown(rows: list[dict[str, Any]], ready: float, rounds: int, calls: int) -> str:
    """docs/speed-gateway.md."""
    head = ("hop", "mode", "at once", *HEADS)
    body = [
        (row["hop"], _mode(row), str(row["at_once"]), *(f"{row[name]:.2f}" for name in NUMBERS))
        for row in rows
    ]
    table = ["| " + " | ".join(cells) + " |" for cells in (head, ("---",) * len(head), *body)]
    return (
        "# Speed of the gateway\n\n"
        "Written by `make bench-docs`, not by hand. Milliseconds; *added* is against a direct call to the\n"
        "same endpoint on loopback, *CPU* is processor time of the hop's process a call; least disturbed\n"
        f"of {rounds} rounds of {calls} calls. The byte hop is the floor; *aiohttp* and *httpx* are bare\n"
        "proxies on these libraries, which neither meter nor record.\n\n" + "\n".join(table) + "\n\n"
        f"From start to ready: {ready:.2f} s.\n"
    )


def _mode(row: dict[str, Any]) -> str:
    return "streamed" if row["streamed"] else "plain"


if __name__ == "__main__":
    main()
