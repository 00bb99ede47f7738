"""The gateway as a thread of the runner's own process, for a cell in place: nobody forwards there, so it
listens on loopback itself.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from types import TracebackType
from typing import Any, TypeVar

from aiohttp import web

from orchestrator.adapter import GATEWAY_PORT
from orchestrator.errors import CabError, CellFault, EnvironmentFault
from orchestrator.gateway.client import ANSWER_S, gateway_fault
from orchestrator.gateway.contract import CellRoute, Endpoint, WindowReport
from orchestrator.gateway.listeners import Listener, Listeners
from orchestrator.gateway.server import BACKLOG, GatewayServer

T = TypeVar("T")

LOOPBACK = "127.0.0.1"


class InsideGateway:
    """A `ModelGateway` that listens on `port` of loopback while a cell is open, one cell at a time. A context
    manager that ends it.

    Port 0 is a free one, kept from the start on. Raises EnvironmentFault where the port is taken.
    """

    def __init__(self, endpoints: Iterable[Endpoint] = (), *, port: int = GATEWAY_PORT) -> None:
        self._bound: socket.socket | None = _bound(port)
        self.port: int = self._bound.getsockname()[1]
        self._listeners = Listeners()
        self._stopping = False
        # The HTTP server's own messages quote what a client sent; faults of ours are logged by the cell.
        logging.getLogger("aiohttp.server").disabled = True
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="gateway", daemon=True)
        self._server = GatewayServer(self._listeners.tell, listen=self._listen)
        for endpoint in endpoints:
            self._server.add_endpoint(endpoint)
        self._thread.start()

    @property
    def base_url(self) -> str:
        """Where a CLI finds it."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def alive(self) -> bool:
        return self._thread.is_alive() and not self._stopping

    def open_cell(
        self,
        route: CellRoute,
        on_wait: Callable[[bool], None] | None = None,
        on_limit: Callable[[], None] | None = None,
        on_fault: Callable[[CellFault], None] | None = None,
        on_difference: Callable[[], None] | None = None,
    ) -> None:
        """Listen for the cell; `route.socket` is not used. Raises CellFault("gateway")."""
        self._listeners.add(route.cell_id, Listener(on_wait, on_limit, on_fault, on_difference))
        try:
            self._ask(self._server.open_cell(route), "open_cell")
        except CellFault:
            self._listeners.remove(route.cell_id)
            raise

    def close_cell(self, cell_id: str) -> dict[str, Any]:
        """Close the cell's connections and finish its files: {"calls", "refused", "limit_reached"}.

        Raises CellFault("gateway").
        """
        self._listeners.remove(cell_id)
        return self._ask(self._server.close_cell(cell_id), "close_cell")

    def windows(self) -> list[WindowReport]:
        """What came of the windows of the endpoints that were asked. Raises CellFault("gateway")."""
        return self._ask(self._windows(), "windows")

    def stop(self) -> None:
        """End it; cells still open end with it. May be called twice."""
        if not self._stopping:
            self._stopping = True
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def __enter__(self) -> InsideGateway:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _serve(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            with suppress(OSError):  # of files of a cell that nobody closed
                self._loop.run_until_complete(self._server.close())
            self._loop.close()
            if self._bound is not None:
                self._bound.close()
            self._listeners.end(None if self._stopping else gateway_fault("died"))

    async def _windows(self) -> list[WindowReport]:
        return self._server.windows()

    async def _listen(self, http: web.Server, route: CellRoute) -> asyncio.AbstractServer:
        del route
        listener, self._bound = self._bound or _bound(self.port, again=True), None
        # For the next cell: else the port stays closed for a minute after this one's connections.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return await self._loop.create_server(http, sock=listener, backlog=BACKLOG)

    def _ask(self, asked: Coroutine[Any, Any, T], operation: str) -> T:
        """What the gateway's thread answers. Raises CellFault("gateway")."""
        if not self.alive:
            asked.close()
            raise gateway_fault("is dead")
        try:
            return asyncio.run_coroutine_threadsafe(asked, self._loop).result(ANSWER_S)
        except FutureTimeout:
            raise gateway_fault(f"does not answer {operation}") from None
        except (CabError, OSError) as error:
            raise gateway_fault(str(error)) from error


def _bound(port: int, *, again: bool = False) -> socket.socket:
    """A socket at the port, which nobody else can then bind; `again` where one of ours was there before."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, again)
    try:
        made.bind((LOOPBACK, port))
    except OSError as error:
        made.close()
        mend = "end what listens there"
        raise EnvironmentFault(str(error.strerror), place=f"{LOOPBACK}:{port}", mend=mend) from error
    return made
