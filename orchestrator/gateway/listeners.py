"""Who is told what of a cell's calls while they are under way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.errors import CellFault


@dataclass(frozen=True)
class Listener:
    """The callbacks of one cell: see `Gateway.open_cell`."""

    on_wait: Callable[[bool], None] | None = None
    on_limit: Callable[[], None] | None = None
    on_fault: Callable[[CellFault], None] | None = None
    on_difference: Callable[[], None] | None = None


class Listeners:
    """Those of all open cells; thread-safe. Callbacks run on the thread that tells."""

    def __init__(self) -> None:
        self._cells: dict[str, Listener] = {}
        self._lock = threading.Lock()

    def add(self, cell_id: str, listener: Listener) -> None:
        with self._lock:
            self._cells[cell_id] = listener

    def remove(self, cell_id: str) -> None:
        with self._lock:
            self._cells.pop(cell_id, None)

    def tell(self, event: str, cell_id: str) -> None:
        """Pass one event of the gateway on; a cell that is closed, or does not listen, is not told."""
        with self._lock:
            cell = self._cells.get(cell_id)
        if cell is None:
            return
        if event == "limit" and cell.on_limit is not None:
            cell.on_limit()
        elif event == "differs" and cell.on_difference is not None:
            cell.on_difference()
        elif event in ("wait_start", "wait_end") and cell.on_wait is not None:
            cell.on_wait(event == "wait_start")

    def end(self, fault: CellFault | None) -> None:
        """Forget all cells; a fault is told to each."""
        with self._lock:
            cells, self._cells = list(self._cells.values()), {}
        for cell in cells:
            if fault is not None and cell.on_fault is not None:
                cell.on_fault(fault)
