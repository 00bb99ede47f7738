"""Watching a sweep: a live view in a terminal, plain lines elsewhere; both on stderr, results go to stdout.

Ctrl-C once lets the cells under way come to their end, twice stops them.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.table import Table
from rich.text import Text

from orchestrator.plan.expand import PlannedCell
from orchestrator.report.text import count, number
from orchestrator.run.outcome import Outcome
from orchestrator.run.start import Ready
from orchestrator.run.sweep import Sweep
from orchestrator.store.index import IndexEntry


def watch(ready: Ready) -> bool:
    """Run what is not finished of a sweep and show it; whether the user stopped it before its end."""
    console = Console(stderr=True, highlight=False)
    done = len(ready.matrix.plan.cells) - len(ready.todo)
    if ready.bench is None:
        console.print(f"{ready.matrix.sweep_id}: all {done} cells are finished, nothing to do")
        return False
    view = LiveView(len(ready.todo)) if console.is_terminal else PlainView(console, len(ready.todo))
    sweep = Sweep(ready.bench, ready.store, ready.todo, ready.matrix.spec.retries, view)
    finished = f"{done} finished, " if done else ""
    at_once = min(ready.bench.concurrency, len(ready.todo))
    console.print(f"{ready.matrix.sweep_id}: {finished}{len(ready.todo)} cells to run, {at_once} at once")
    with _interruptible(sweep, console), view.shown(console):
        sweep.run()
    return sweep.interrupted


@contextmanager
def _interruptible(sweep: Sweep, console: Console) -> Iterator[None]:
    def on_signal(number: int, frame: FrameType | None) -> None:
        del number, frame
        if sweep.stopping:
            sweep.cancel()
        else:
            sweep.stop()
            console.print("finishing the cells under way; Ctrl-C again stops them")

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _name(cell: PlannedCell) -> str:
    return f"{cell.key.cli} {cell.key.model} {cell.key.task}" + (
        f" #{cell.key.run}" if cell.key.run > 1 else ""
    )


@dataclass
class PlainView:
    """One line for each event, for logs and pipes."""

    console: Console
    total: int
    _ended: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def shown(self, console: Console) -> Iterator[None]:
        del console
        yield

    def started(self, cell: PlannedCell) -> None:
        pass

    def stage(self, cell: PlannedCell, stage: str) -> None:
        pass

    def retrying(self, cell: PlannedCell, outcome: Outcome) -> None:
        self._line(f"again later: {_name(cell)}: {outcome} {outcome.detail or ''}")

    def cancelled(self, cell: PlannedCell) -> None:
        self._line(f"stopped: {_name(cell)}")

    def ended(self, cell: PlannedCell, entry: IndexEntry) -> None:
        with self._lock:
            self._ended += 1
            self._print(f"[{self._ended}/{self.total}] {_name(cell)}: {_result(entry)}")

    def _line(self, text: str) -> None:
        with self._lock:
            self._print(text)

    def _print(self, text: str) -> None:
        self.console.print(text, markup=False, soft_wrap=True)


def _result(entry: IndexEntry) -> str:
    cause = f"({entry.cause})" if entry.cause else ""
    return (
        f"{entry.outcome}{cause}, pass {number(entry.passed)}, {count(entry.total_tokens)} tokens, "
        f"{entry.duration_s:.1f} s"
    )


@dataclass
class LiveView:
    """Cells under way with their stages, cells by outcome, tokens, time left: one line a worker, never one a cell."""

    total: int
    _stages: dict[str, tuple[PlannedCell, str, float]] = field(default_factory=dict)
    _outcomes: Counter[str] = field(default_factory=Counter)
    _passed: int = 0
    _tokens: int = 0
    _retries: int = 0
    _begin: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def shown(self, console: Console) -> Iterator[None]:
        with Live(self, console=console, refresh_per_second=4):
            yield

    def started(self, cell: PlannedCell) -> None:
        with self._lock:
            self._stages[cell.cell_id] = (cell, "starting", time.monotonic())

    def stage(self, cell: PlannedCell, stage: str) -> None:
        with self._lock:
            began = self._stages[cell.cell_id][2]
            self._stages[cell.cell_id] = (cell, stage, began)

    def retrying(self, cell: PlannedCell, outcome: Outcome) -> None:
        with self._lock:
            self._retries += 1
            del self._stages[cell.cell_id]

    def cancelled(self, cell: PlannedCell) -> None:
        with self._lock:
            self._stages.pop(cell.cell_id, None)

    def ended(self, cell: PlannedCell, entry: IndexEntry) -> None:
        with self._lock:
            del self._stages[cell.cell_id]
            self._outcomes[entry.outcome] += 1
            self._passed += entry.passed == 1
            self._tokens += entry.total_tokens or 0

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        with self._lock:
            ended = sum(self._outcomes.values())
            elapsed = time.monotonic() - self._begin
            left = f", about {_clock(elapsed / ended * (self.total - ended))} left" if ended else ""
            again = f", {self._retries} tries made again" if self._retries else ""
            yield Text(
                f"{ended}/{self.total} cells, {self._passed} passed, {count(self._tokens)} tokens{again}, "
                f"{_clock(elapsed)}{left}"
            )
            if self._outcomes:
                yield Text("  ".join(f"{name} {number}" for name, number in sorted(self._outcomes.items())))
            table = Table.grid(padding=(0, 2))
            for cell, stage, began in self._stages.values():
                table.add_row(
                    stage, f"{time.monotonic() - began:.0f} s", Text(_name(cell), overflow="ellipsis")
                )
            yield table


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
