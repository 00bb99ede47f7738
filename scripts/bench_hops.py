"""The processes between which calls are measured: the endpoint, and what can stand before it.

Part of scripts/bench_gateway.py. LiteLLM's proxy and mitmdump run as their users run them: one process,
reverse, streams passed on as they come; scripts/bench-peers.sh installs them.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from orchestrator.gateway.client import Gateway
from orchestrator.gateway.contract import CellRoute, Endpoint

CREDENTIAL = "sk-bench-credential"
EVENTS = 20
PAUSE_S = 0.02
PAUSE = b"pause after the first event"
"""A request whose text holds this is answered with so long a pause after the first event of its stream."""

PEERS = Path(__file__).parent.parent / "build" / "bench-venv"
READY_S = 90.0

Address = str | Path
"""`host:port`, or a Unix socket."""


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
    first, *others = flushes

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        # LiteLLM writes its own JSON, without spaces.
        if b'"stream":true' not in body.replace(b'": true', b'":true'):
            return web.json_response(plain)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        # The text of the first event says when it was sent; all processes share that clock.
        await response.write(first.replace(b"word ", b"sent=%d " % time.monotonic_ns()))
        if PAUSE in body:
            await asyncio.sleep(PAUSE_S)
        for flush in others:
            await response.write(flush)
        await response.write_eof()
        return response

    host, port = address.split(":")
    server = web.Server(handle, access_log=None)
    await asyncio.get_running_loop().create_server(server, host, int(port), backlog=1024)


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


@contextlib.contextmanager
def role(*arguments: str) -> Iterator[int]:
    """A process of this script that plays one part; yields its id."""
    process = subprocess.Popen([sys.executable, __file__, *arguments], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
    finally:
        process.terminate()
        process.communicate()


@contextlib.contextmanager
def gateway_hop(address: str, folder: Path) -> Iterator[tuple[Address, int]]:
    """The gateway in its own process, over its Unix socket, recording."""
    with Gateway.start(
        [Endpoint(name="up", base_url=f"http://{address}/v1", key="bench-upstream-key")]
    ) as gateway:
        route = CellRoute(
            cell_id="bench",
            socket=folder / "gateway.sock",
            socket_owner=(os.geteuid(), os.getegid()),
            credential=CREDENTIAL,
            model="m",
            endpoint="up",
            calls_path=folder / "calls.jsonl",
            wire_path=folder / "wire.jsonl.gz",
        )
        gateway.open_cell(route)
        yield route.socket, gateway.pid


@contextlib.contextmanager
def peer_hop(name: str, address: str, folder: Path) -> Iterator[tuple[Address, int]]:
    """LiteLLM's proxy or mitmdump, once it listens. Neither is let ask anything of the outside."""
    port = str(free_port())
    environment = {**os.environ, "LITELLM_MASTER_KEY": CREDENTIAL, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    environment |= {"LITELLM_LOG": "ERROR", "LITELLM_TELEMETRY": "False", "NO_DOCS": "True"}
    environment.pop("PYTHONPATH", None)
    if name == "LiteLLM":
        config = folder / "litellm.yaml"
        model = {"model": "openai/m", "api_base": f"http://{address}/v1", "api_key": "bench-upstream-key"}
        settings = {
            "model_list": [{"model_name": "m", "litellm_params": model}],
            "general_settings": {"master_key": "os.environ/LITELLM_MASTER_KEY"},
            "litellm_settings": {"telemetry": False, "num_retries": 0},
        }
        config.write_text(json.dumps(settings), "utf-8")  # JSON is YAML
        command = ["litellm/bin/litellm", "--config", str(config), "--host", "127.0.0.1", "--port", port]
        command += ["--telemetry", "False"]
    else:
        command = ["mitmproxy/bin/mitmdump", "--mode", f"reverse:http://{address}", "-q", "-p", port]
        command += ["--listen-host", "127.0.0.1", "--set", "stream_large_bodies=1"]
        command += ["--set", f"confdir={folder / 'mitmproxy'}"]
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [str(PEERS / command[0]), *command[1:]], env=environment, stdout=log, stderr=log
        )
        try:
            _await_port(int(port), process)
            yield f"127.0.0.1:{port}", process.pid
        finally:
            process.terminate()
            process.wait()


def _await_port(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise SystemExit(f"{process.args!r} does not listen")


@contextlib.contextmanager
def hop(name: str, address: str, folder: Path) -> Iterator[tuple[Address, int]]:
    """A running hop before the endpoint at `address`; yields where it listens and its process's id."""
    if name == "gateway":
        with gateway_hop(address, folder) as running:
            yield running
    elif name in ("LiteLLM", "mitmdump"):
        with peer_hop(name, address, folder) as running:
            yield running
    else:
        path = folder / f"{name}.sock"
        with role(name, address, str(path)) as pid:
            yield path, pid


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def play(part: str, address: str, path: str = "") -> None:
    if part == "endpoint":
        await endpoint(address)
    elif part == "byte hop":
        await byte_hop(address, path)
    else:
        await bare_proxy(address, path, part)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(play(*sys.argv[1:4]))
