"""The line between runner and gateway: one JSON object a line, over the gateway's stdin and stdout.

Requests    {"id": n, "op": "add_endpoint" | "open_cell" | "close_cell" | "windows", "value": …}
Answers     {"id": n, "result": …} or {"id": n, "error": "…"}
Events      {"event": "ready" | "wait_start" | "wait_end" | "limit" | "differs", "cell_id": …}

Keys travel on this line only. When it ends, the process ends at once: the sockets of all cells close, and
with them the containers whose PID 1 holds a connection.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from io import FileIO
from typing import IO, Any

from pydantic import ValidationError

from orchestrator.errors import CabError
from orchestrator.gateway.contract import CellRoute, Endpoint
from orchestrator.gateway.server import GatewayServer

LINE_MAX = 1 << 30
"""Bytes of one line: a route carries a script with the whole content of a task's files."""


async def serve(requests: IO[bytes], answers: FileIO | IO[bytes]) -> None:
    """Answer the runner until the line ends; then end the process, whatever is under way."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LINE_MAX)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), requests)
    writer, _ = await loop.connect_write_pipe(asyncio.Protocol, answers)

    def send(message: dict[str, Any]) -> None:
        writer.write(json.dumps(message).encode() + b"\n")

    server = GatewayServer(lambda event, cell_id: send({"event": event, "cell_id": cell_id}))
    send({"event": "ready", "cell_id": ""})
    under_way: set[asyncio.Task[None]] = set()
    while line := await reader.readline():
        task = asyncio.create_task(_answer(server, json.loads(line), send))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
    os._exit(0)


async def _answer(
    server: GatewayServer, message: dict[str, Any], send: Callable[[dict[str, Any]], None]
) -> None:
    try:
        send({"id": message["id"], "result": await _run(server, message["op"], message["value"])})
    except ValidationError as error:
        # The default text quotes the input, which holds keys and credentials.
        faults = error.errors(include_input=False, include_url=False)
        send({"id": message["id"], "error": "; ".join(f"{fault['loc']}: {fault['msg']}" for fault in faults)})
    except (CabError, OSError) as error:
        send({"id": message["id"], "error": str(error)})


async def _run(server: GatewayServer, operation: str, value: Any) -> Any:
    if operation == "add_endpoint":
        return server.add_endpoint(Endpoint.model_validate(value))
    if operation == "open_cell":
        return await server.open_cell(CellRoute.model_validate(value))
    if operation == "close_cell":
        return await server.close_cell(value)
    if operation == "windows":
        return [report.model_dump(mode="json") for report in server.windows()]
    raise CabError(f"unknown operation {operation!r}")
