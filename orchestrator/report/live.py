"""Watching a sweep: a live view in a terminal, plain lines elsewhere; both on stderr, results go to stdout.

Ctrl-C once lets the cells under way come to their end, twice stops them.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from orchestrator.plan.expand import PlannedCell
from orchestrator.report.called import command
from orchestrator.report.text import clock, console, count, number, plural, safe_line
from orchestrator.run.outcome import TABLE, Outcome
from orchestrator.store.index import IndexEntry

if TYPE_CHECKING:
    from orchestrator.run.start import Ready
    from orchestrator.run.sweep import Sweep

HINT = "Ctrl-C finishes the cells under way; twice stops them"
STAGES = {"task_setup": "setup", "adapter_run": "agent"}
"""Stages by the names that tables and documents have for them, where these are not the trace's."""
FINISHING = "finishing the cells under way; Ctrl-C again stops them"


def watch(ready: Ready) -> bool:
    """Run what is not finished of a sweep and show it; whether the user stopped it before its end."""
    err = console(stderr=True)
    done = len(ready.matrix.plan.cells) - len(ready.todo)
    if ready.bench is None:
        err.print(f"{ready.matrix.sweep_id}: {plural(done, 'cell')} finished, nothing to do")
        return False
    # Imported here: a sweep with nothing to do need not wait for the tracing SDK.
    from orchestrator.run.sweep import Sweep

    total = len(ready.todo)
    view = LiveView(total) if err.is_terminal else PlainView(err, total)
    sweep = Sweep(ready.bench, ready.store, ready.todo, ready.matrix.spec.retries, view)
    finished = f"{done} finished, " if done else ""
    at_once = min(ready.bench.concurrency, total)
    err.print(f"{ready.matrix.sweep_id}: {finished}{plural(total, 'cell')} to run, {at_once} at once")
    begin = time.monotonic()
    with _interruptible(sweep, view), view.shown(err):
        sweep.run()
    took = clock(time.monotonic() - begin)
    if sweep.interrupted:
        go_on = command("sweep", "resume", ready.matrix.sweep_id, results=ready.store.root.parent)
        err.print(f"stopped after {took}; go on with: {go_on}", soft_wrap=True)
    else:
        err.print(f"{plural(total, 'cell')} in {took}")
    return sweep.interrupted


@contextmanager
def _interruptible(sweep: Sweep, view: LiveView | PlainView) -> Iterator[None]:
    def on_signal(number: int, frame: FrameType | None) -> None:
        del number, frame
        if sweep.stopping:
            sweep.cancel()
        else:
            sweep.stop()
            view.finishing()

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


def _left(elapsed: float, ended: int, total: int) -> str:
    """The time left if the rest takes as long as what has ended."""
    return f"about {clock(elapsed / ended * (total - ended))} left" if 0 < ended < total else ""


@dataclass
class PlainView:
    """One line for each event, for logs and pipes."""

    out: Console
    total: int
    now: Callable[[], float] = time.monotonic
    _ended: int = 0
    _begin: float = 0.0
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self._begin = self.now()

    @contextmanager
    def shown(self, out: Console) -> Iterator[None]:
        del out
        yield

    def started(self, cell: PlannedCell) -> None:
        pass

    def stage(self, cell: PlannedCell, stage: str) -> None:
        pass

    def finishing(self) -> None:
        """The user asked for no further cells."""
        self._line(FINISHING)

    def retrying(self, cell: PlannedCell, outcome: Outcome) -> None:
        self._line(f"again later: {_name(cell)}: {outcome} {outcome.detail or ''}".rstrip())

    def cancelled(self, cell: PlannedCell) -> None:
        self._line(f"stopped: {_name(cell)}")

    def ended(self, cell: PlannedCell, entry: IndexEntry) -> None:
        with self._lock:
            self._ended += 1
            left = _left(self.now() - self._begin, self._ended, self.total)
            self._line(f"[{self._ended}/{self.total}] {_name(cell)}: {_result(entry)}{left and f'; {left}'}")

    def _line(self, text: str) -> None:
        with self._lock:
            self.out.print(safe_line(text), soft_wrap=True)


def _result(entry: IndexEntry) -> str:
    cause = f"({entry.cause})" if entry.cause else ""
    return (
        f"{entry.outcome}{cause}, pass {number(entry.passed)}, {count(entry.total_tokens)} tokens, "
        f"{entry.duration_s:.1f} s"
    )


@dataclass
class LiveView:
    """Cells by outcome, tokens, time left, and the cells under way: never taller than the terminal.

    Its lock is reentrant, since the handler of Ctrl-C may run while the main thread draws.
    """

    total: int
    now: Callable[[], float] = time.monotonic
    _stages: dict[str, tuple[PlannedCell, str, float]] = field(default_factory=dict)
    _outcomes: Counter[str] = field(default_factory=Counter)
    _passed: int = 0
    _failed: int = 0
    _tokens: int | None = None
    _retries: int = 0
    _stopped: int = 0
    _hint: str = HINT
    _begin: float = 0.0
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self._begin = self.now()

    @contextmanager
    def shown(self, out: Console) -> Iterator[None]:
        # Imported here: a sweep with nothing to do shows no live view.
        from rich.live import Live

        # Transient: what it says of cells under way is stale once it ends.
        with Live(self, console=out, refresh_per_second=4, transient=True):
            yield

    def finishing(self) -> None:
        """The user asked for no further cells."""
        with self._lock:
            self._hint = FINISHING

    def started(self, cell: PlannedCell) -> None:
        with self._lock:
            self._stages[cell.cell_id] = (cell, "starting", self.now())

    def stage(self, cell: PlannedCell, stage: str) -> None:
        with self._lock:
            began = self._stages[cell.cell_id][2]
            self._stages[cell.cell_id] = (cell, STAGES.get(stage, stage), began)

    def retrying(self, cell: PlannedCell, outcome: Outcome) -> None:
        del outcome
        with self._lock:
            self._retries += 1
            del self._stages[cell.cell_id]

    def cancelled(self, cell: PlannedCell) -> None:
        with self._lock:
            self._stopped += 1
            self._stages.pop(cell.cell_id, None)

    def ended(self, cell: PlannedCell, entry: IndexEntry) -> None:
        with self._lock:
            del self._stages[cell.cell_id]
            self._outcomes[entry.outcome] += 1
            counted = TABLE[entry.outcome].counted
            self._passed += counted and entry.passed == 1
            self._failed += counted and entry.passed == 0
            if entry.total_tokens is not None:
                self._tokens = (self._tokens or 0) + entry.total_tokens

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        with self._lock:
            head, rows = self._head(), self._rows()
        height = (options.height or console.height) - len(head)
        if len(rows) > height:
            fit = max(0, height - 1)
            rows = [*rows[:fit], f"… {len(rows) - fit} more under way"]
        for line in (*head, *rows):
            yield Text(line, no_wrap=True, overflow="ellipsis")

    def _head(self) -> list[str]:
        ended, elapsed = self._outcomes.total(), self.now() - self._begin
        uncounted = ended - self._passed - self._failed
        waiting = self.total - ended - len(self._stages) - self._stopped
        done = f"{ended}/{self.total} done: {self._passed} passed, {self._failed} failed"
        done += f", {uncounted} not counted" if uncounted else ""
        spent = [f"{count(self._tokens)} tokens", clock(elapsed), _left(elapsed, ended, self.total)]
        again = plural(self._retries, "try", "tries") + " made again" if self._retries else ""
        outcomes = [f"{name} {amount}" for name, amount in sorted(self._outcomes.items())]
        return [
            f"{done}; {len(self._stages)} running, {waiting} waiting",
            ", ".join(part for part in (*spent, again) if part),
            *([", ".join(outcomes)] if set(self._outcomes) - {"completed"} else []),
            self._hint,
        ]

    def _rows(self) -> list[str]:
        """The longest under way first: these are what a watcher asks about."""
        now = self.now()
        under_way = sorted(self._stages.values(), key=lambda item: item[2])
        times = [clock(now - began) for _, _, began in under_way]
        # Columns as narrow as they may be: the width belongs to the task's name.
        wide = max(map(len, times), default=0)
        stages = max((len(stage) for _, stage, _ in under_way), default=0)
        return [
            f"{took:>{wide}}  {stage:<{stages}}  {_name(cell)}"
            for took, (cell, stage, _) in zip(times, under_way, strict=True)
        ]
