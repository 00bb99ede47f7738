"""The gateway's heart: endpoints, and one listening Unix socket for each open cell."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from orchestrator.errors import CabError, InputError
from orchestrator.gateway.cell import Cell
from orchestrator.gateway.contract import CellRoute, Endpoint, WindowReport
from orchestrator.gateway.embedded import ScriptedModel
from orchestrator.gateway.record import Recorder
from orchestrator.gateway.replay import ReplayedModel
from orchestrator.gateway.scripts import SCRIPTED_WIRE
from orchestrator.gateway.scrub import Scrubber
from orchestrator.gateway.translate import reaches
from orchestrator.gateway.translate.table import TRANSLATIONS
from orchestrator.gateway.upstream import Source, SystemClock, Upstream, new_session
from orchestrator.gateway.window import Clock, Window
from orchestrator.gateway.wire import WireFormat
from orchestrator.gateway.wires import UNASKED_WIRES, WIRES
from orchestrator.unix_socket import bound

KEEPALIVE_S = 3600.0
"""A CLI may think for long between two calls of one connection; the cell's end closes what is left."""

CLOSE_GRACE_S = 0.05
"""Seconds for the handlers of a closed cell to end: its container is gone, so nobody reads their answers."""

BACKLOG = 1024
"""Connections that may wait to be accepted. One more is refused at once: a Unix socket does not try again."""

Notify = Callable[[str, str], None]
"""Called with (event, cell_id)."""


@dataclass
class OpenCell:
    cell: Cell
    http: web.Server
    listener: asyncio.AbstractServer


async def listen_on_socket(http: web.Server, route: CellRoute) -> asyncio.AbstractServer:
    """Bind the route's socket so that only its owner, the container's user, can connect.

    The process's umask is 077, so it is never open to others, not even between the calls. Raises CabError.
    """
    place = f"socket of cell {route.cell_id}"
    try:
        listener = await asyncio.get_running_loop().create_unix_server(
            http, sock=bound(Path(route.socket)), backlog=BACKLOG
        )
        Path(route.socket).chmod(0o600)
        if route.socket_owner != (os.geteuid(), os.getegid()):
            os.chown(route.socket, *route.socket_owner)
    except OSError as error:
        raise CabError(
            error.strerror or str(error), place=place, mend="see the path and its owner"
        ) from error
    return listener


Listen = Callable[[web.Server, CellRoute], Awaitable[asyncio.AbstractServer]]
"""Opens what the CLI of a cell connects to. Raises CabError or OSError."""


@dataclass
class GatewayServer:
    """Serves cells until it is closed. `notify` takes the events for the runner."""

    notify: Notify
    clock: Clock = field(default_factory=SystemClock)
    listen: Listen = listen_on_socket
    _endpoints: dict[str, Endpoint] = field(default_factory=dict, init=False)
    _windows: dict[str, Window] = field(default_factory=dict, init=False)
    _cells: dict[str, OpenCell] = field(default_factory=dict, init=False)
    _session: aiohttp.ClientSession | None = field(default=None, init=False)
    _writer: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="recorder"), init=False
    )

    def add_endpoint(self, endpoint: Endpoint) -> None:
        """Make an endpoint known; one of the same name is replaced for cells opened later."""
        self._endpoints[endpoint.name] = endpoint
        self._windows[endpoint.name] = Window(endpoint.name, self.clock, endpoint.concurrency)

    def windows(self) -> list[WindowReport]:
        """What came of the windows of the endpoints that were asked."""
        return [report for window in self._windows.values() if (report := window.report()).largest]

    async def open_cell(self, route: CellRoute) -> None:
        """Listen on the cell's socket. Raises CabError when it cannot, or when the route makes no sense."""
        if route.cell_id in self._cells:
            raise InputError("is already open", place=f"cell {route.cell_id}")
        key = self._endpoint(route).key if route.endpoint is not None else ""
        wire = self._wire(route)
        # The same wire is the same object: what its endpoint is not asked for stands in it.
        cli_wire = wire if route.cli_wire in (None, wire.name) else WIRES[route.cli_wire]
        if not reaches(cli_wire.name, wire.name):
            thing = f"the CLI speaks {cli_wire.name}, its endpoint {wire.name}"
            raise InputError(thing, place=f"cell {route.cell_id}", mend="no translation joins them")
        cell = Cell(
            route=route,
            wire=wire,
            cli_wire=cli_wire,
            translation=TRANSLATIONS.get((cli_wire.name, wire.name)),
            source=self._source(route),
            recorder=Recorder(
                route.calls_path, route.wire_path, Scrubber([key, route.credential]), self._writer
            ),
            clock=self.clock,
            notify=lambda event: self.notify(event, route.cell_id),
        )
        http = web.Server(
            cell.handle, handler_cancellation=True, access_log=None, keepalive_timeout=KEEPALIVE_S
        )
        listener = await self.listen(http, route)
        self._cells[route.cell_id] = OpenCell(cell, http, listener)

    async def close_cell(self, cell_id: str) -> dict[str, Any]:
        """Close the cell's socket and connections, write what is left to write, and say what it did.

        Raises InputError for an unknown cell and OSError when its files could not be written.
        """
        if cell_id not in self._cells:
            raise InputError("is not open", place=f"cell {cell_id}")
        opened = self._cells.pop(cell_id)
        opened.listener.close()
        opened.cell.route.socket.unlink(missing_ok=True)
        for connection in opened.http.connections:
            connection.force_close()
        await opened.http.shutdown(CLOSE_GRACE_S)
        await opened.cell.recorder.drain()
        cell = opened.cell
        if isinstance(cell.source, ReplayedModel) and cell.route.replay is not None:
            cell.route.replay.report_path.write_text(cell.source.report().model_dump_json() + "\n", "utf-8")
        return {"calls": cell.calls, "refused": cell.refused, "limit_reached": cell.limit_reached}

    async def close(self) -> None:
        """Close all cells and connections."""
        for cell_id in list(self._cells):
            await self.close_cell(cell_id)
        for window in self._windows.values():
            window.close()
        if self._session is not None:
            await self._session.close()
        self._writer.shutdown()

    def _endpoint(self, route: CellRoute) -> Endpoint:
        if route.endpoint is None or route.endpoint not in self._endpoints:
            raise InputError(f"unknown endpoint {route.endpoint!r}", place=f"cell {route.cell_id}")
        return self._endpoints[route.endpoint]

    def _wire(self, route: CellRoute) -> WireFormat:
        if route.replay is not None:
            return WIRES[route.replay.wire]
        wire = SCRIPTED_WIRE if route.script is not None else self._endpoint(route).wire
        return (WIRES if route.ask_usage else UNASKED_WIRES)[wire]

    def _source(self, route: CellRoute) -> Source:
        if [route.script, route.endpoint, route.replay].count(None) != 2:
            raise InputError("needs an endpoint, a script or a recording", place=f"cell {route.cell_id}")
        if route.script is not None:
            return ScriptedModel(route.script, route.model, route.workdir)
        if route.replay is not None:
            scrubber = Scrubber([route.credential])
            return ReplayedModel(
                route.replay, self.clock, scrubber, lambda: self.notify("differs", route.cell_id)
            )
        endpoint = self._endpoint(route)
        if self._session is None:
            self._session = new_session(self.clock)
        scrubber, window = Scrubber([endpoint.key]), self._windows[endpoint.name]
        return Upstream(endpoint, self._session, self.clock, scrubber, route.max_retries, window)
