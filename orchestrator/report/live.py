"""Watching a sweep: a live view in a terminal, plain lines elsewhere; both on stderr, results go to stdout.

Ctrl-C once lets the cells under way come to their end, twice stops them.
"""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import TYPE_CHECKING, Protocol

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from orchestrator.plan.expand import PlannedCell
from orchestrator.report.called import command
from orchestrator.report.forecast import Forecast
from orchestrator.report.text import (
    clock,
    console,
    count,
    dollars,
    number,
    plural,
    safe_line,
    stage_in_words,
)
from orchestrator.run.outcome import TABLE, Outcome, with_cause
from orchestrator.store.index import IndexEntry
from orchestrator.store.names import NO_MODEL, NO_STACK

if TYPE_CHECKING:
    from orchestrator.run.start import Ready

HINT = "Ctrl-C finishes the cells under way; twice stops them"
FINISHING = "finishing the cells under way; Ctrl-C again stops them"
STOPPING = "stopping the cells under way"


def watch(ready: Ready) -> bool:
    """Run what is not finished of a sweep and show it; whether the user stopped it before its end."""
    err = console(stderr=True)
    done = len(ready.chosen) - len(ready.todo) - len(ready.incompatible) - len(ready.held)
    left_out = len(ready.matrix.plan.cells) - len(ready.chosen)
    only = f"; {left_out} left out by --only" if left_out else ""
    if ready.bench is None or not ready.todo:
        err.print(f"{ready.matrix.sweep_id}: {plural(done, 'cell')} finished, nothing to do{only}")
        return False
    # Imported here: a sweep with nothing to do need not wait for the tracing SDK.
    from orchestrator.report.spending import more, spent
    from orchestrator.run.budget import Budget
    from orchestrator.run.sweep import Sweep

    total = len(ready.todo)
    at_once = min(ready.bench.concurrency, total)
    spec = ready.matrix.spec
    budget = Budget.of(spec.budget, ready.store)

    def used() -> str:
        return spent(budget)

    view = (
        LiveView(ready.todo, at_once, used=used)
        if err.is_terminal
        else PlainView(err, ready.todo, at_once, used=used)
    )
    sweep = Sweep(ready.bench, ready.store, ready.todo, spec.retries, view, budget)
    finished = f"{done} finished, " if done else ""
    err.print(f"{ready.matrix.sweep_id}: {finished}{plural(total, 'cell')} to run, {at_once} at once{only}")
    begin = time.monotonic()
    with interruptible(sweep, view), view.shown(err):
        sweep.run()
    took = clock(time.monotonic() - begin)
    if sweep.interrupted:
        err.print(f"stopped after {took}; go on with: {go_on(ready)}", soft_wrap=True)
    elif left := sweep.over_budget:
        err.print(
            f"sweep_budget: {used()} after {took}, {plural(left, 'cell')} not run; "
            f"go on with: {go_on(ready, *more(budget))}",
            soft_wrap=True,
        )
    else:
        err.print(f"{plural(total, 'cell')} in {took}")
    return sweep.interrupted


def go_on(ready: Ready, *options: str) -> str:
    """The command that goes on with what this call was about, and with nothing else of its sweep; a replay
    begins anew.
    """
    if elsewhere := ready.matrix.fleet.elsewhere:
        options = ("--images-dir", str(elsewhere), *options)
    if ready.chosen and (replayed := ready.chosen[0].recorded) is not None:
        return command("cell", "replay", str(replayed.cell_dir), *options)
    limited = [word for glob in ready.only for word in ("--only", glob)]
    words = ("sweep", "resume", ready.matrix.sweep_id, *limited, *options)
    return command(*words, results=ready.store.root.parent)


def _no_budget() -> str:
    return ""


class Stoppable(Protocol):
    """What Ctrl-C stops: once to start nothing more, twice at once."""

    @property
    def stopping(self) -> bool: ...

    def stop(self) -> None: ...

    def cancel(self) -> None: ...


class StopView(Protocol):
    """Where it is said that it stops."""

    def finishing(self) -> None: ...

    def stopping(self) -> None: ...


@contextmanager
def interruptible(sweep: Stoppable, view: StopView) -> Iterator[None]:
    """Have SIGINT and SIGTERM stop what runs inside."""

    def on_signal(number: int, frame: FrameType | None) -> None:
        del number, frame
        if sweep.stopping:
            view.stopping()
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
    key = cell.key
    stack = "" if key.stack == NO_STACK else f" +{key.stack}"
    stack += f" @{key.condition}" if key.condition else ""
    return f"{key.cli} {key.model} {key.task}{stack}" + (f" #{key.run}" if key.run > 1 else "")


def _left(forecast: Forecast) -> str:
    left = forecast.left()
    return "" if left is None else f"about {clock(left)} left"


@dataclass
class PlainView:
    """One line for each event, for logs and pipes. `used` says what of the sweep's budget is used."""

    out: Console
    cells: Sequence[PlannedCell]
    at_once: int = 1
    now: Callable[[], float] = time.monotonic
    used: Callable[[], str] = _no_budget
    _ended: int = 0
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self._forecast = Forecast(self.cells, self.at_once, self.now)

    @contextmanager
    def shown(self, out: Console) -> Iterator[None]:
        del out
        yield

    def started(self, cell: PlannedCell) -> None:
        with self._lock:
            self._forecast.started(cell)

    def stage(self, cell: PlannedCell, stage: str) -> None:
        pass

    def finishing(self) -> None:
        """The user asked for no further cells."""
        self._line(FINISHING)

    def stopping(self) -> None:
        """The user asked for an end at once."""
        self._line(STOPPING)

    def retrying(self, cell: PlannedCell, outcome: Outcome) -> None:
        with self._lock:
            self._forecast.again(cell)
        said = with_cause(outcome.name, outcome.cause)
        self._line(f"again later: {_name(cell)}: {said} {outcome.detail or ''}".rstrip())

    def cancelled(self, cell: PlannedCell) -> None:
        with self._lock:
            self._forecast.stopped(cell)
        self._line(f"stopped: {_name(cell)}")

    def ended(self, cell: PlannedCell, entry: IndexEntry) -> None:
        with self._lock:
            self._ended += 1
            self._forecast.ended(cell)
            said = [_result(entry), self.used(), _left(self._forecast)]
            self._line(f"[{self._ended}/{len(self.cells)}] {_name(cell)}: {'; '.join(filter(None, said))}")

    def _line(self, text: str) -> None:
        with self._lock:
            self.out.print(safe_line(text), soft_wrap=True)


def _result(entry: IndexEntry) -> str:
    return (
        f"{with_cause(entry.outcome, entry.cause)}, pass {number(entry.passed)}, "
        f"{count(entry.total_tokens)} tokens, {entry.duration_s:.1f} s"
    )


@dataclass
class LiveView:
    """Cells by outcome, time left, tokens, cost, and the cells under way: never taller than the terminal.

    `used` says what of the sweep's budget is used. The lock is reentrant, since the handler of Ctrl-C may run
    while the main thread draws.
    """

    cells: Sequence[PlannedCell]
    at_once: int = 1
    now: Callable[[], float] = time.monotonic
    used: Callable[[], str] = _no_budget
    _stages: dict[str, tuple[PlannedCell, str, float]] = field(default_factory=dict)
    _outcomes: Counter[str] = field(default_factory=Counter)
    _passed: int = 0
    _failed: int = 0
    _tokens: list[int] = field(default_factory=list)
    _costs: list[float] = field(default_factory=list)
    _asked: int = 0
    _retries: int = 0
    _stopped: int = 0
    _hint: str = HINT
    _begin: float = 0.0
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self._begin = self.now()
        self._forecast = Forecast(self.cells, self.at_once, self.now)

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

    def stopping(self) -> None:
        """The user asked for an end at once."""
        with self._lock:
            self._hint = STOPPING

    def started(self, cell: PlannedCell) -> None:
        with self._lock:
            self._forecast.started(cell)
            self._stages[cell.cell_id] = (cell, "starting", self.now())

    def stage(self, cell: PlannedCell, stage: str) -> None:
        with self._lock:
            began = self._stages[cell.cell_id][2]
            self._stages[cell.cell_id] = (cell, stage_in_words(stage), began)

    def retrying(self, cell: PlannedCell, outcome: Outcome) -> None:
        del outcome
        with self._lock:
            self._retries += 1
            self._forecast.again(cell)
            del self._stages[cell.cell_id]

    def cancelled(self, cell: PlannedCell) -> None:
        with self._lock:
            self._stopped += 1
            self._forecast.stopped(cell)
            self._stages.pop(cell.cell_id, None)

    def ended(self, cell: PlannedCell, entry: IndexEntry) -> None:
        with self._lock:
            del self._stages[cell.cell_id]
            self._forecast.ended(cell)
            self._outcomes[entry.outcome] += 1
            counted = TABLE[entry.outcome].counted
            self._passed += counted and entry.passed == 1
            self._failed += counted and entry.passed == 0
            if entry.total_tokens is not None:
                self._tokens.append(entry.total_tokens)
            if entry.cost_usd is not None:
                self._costs.append(entry.cost_usd)
            self._asked += entry.model != NO_MODEL

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        with self._lock:
            head, rows = self._head(), self._rows()
        height = (options.height or console.height) - len(head)
        if len(rows) > height:
            fit = max(0, height - 1)
            hidden = Counter(stage for _, stage in rows[fit:])
            stages = ", ".join(f"{amount} {stage}" for stage, amount in hidden.most_common())
            rows = [*rows[:fit], (f"… {plural(len(rows) - fit, 'cell')} more under way: {stages}", "")]
        for line in (*head, *(row for row, _ in rows)):
            yield Text(line, no_wrap=True, overflow="ellipsis")

    def _head(self) -> list[str]:
        ended, total = self._outcomes.total(), len(self.cells)
        uncounted = ended - self._passed - self._failed
        waiting = total - ended - len(self._stages) - self._stopped
        done = f"{ended}/{total} done: {self._passed} passed, {self._failed} failed"
        done += f", {uncounted} not counted" if uncounted else ""
        spent = [
            _left(self._forecast),
            f"{clock(self.now() - self._begin)} so far",
            f"{count(sum(self._tokens))} tokens{_of(len(self._tokens), ended)}" if self._tokens else "",
            f"{dollars(sum(self._costs))}{_of(len(self._costs), self._asked)}" if self._costs else "",
            self.used(),
            plural(self._retries, "try", "tries") + " made again" if self._retries else "",
        ]
        outcomes = [f"{name} {amount}" for name, amount in sorted(self._outcomes.items())]
        return [
            f"{done}; {len(self._stages)} running, {waiting} waiting",
            ", ".join(part for part in spent if part),
            *([", ".join(outcomes)] if set(self._outcomes) - {"completed"} else []),
            self._hint,
        ]

    def _rows(self) -> list[tuple[str, str]]:
        """Each cell under way as a line, with its stage; the longest first: watchers ask about these."""
        now = self.now()
        under_way = sorted(self._stages.values(), key=lambda item: item[2])
        times = [clock(now - began) for _, _, began in under_way]
        # Columns as narrow as they may be: the width belongs to the task's name.
        wide = max(map(len, times), default=0)
        stages = max((len(stage) for _, stage, _ in under_way), default=0)
        return [
            (f"{took:>{wide}}  {stage:<{stages}}  {_name(cell)}", stage)
            for took, (cell, stage, _) in zip(times, under_way, strict=True)
        ]


def _of(known: int, cells: int) -> str:
    """Of how many cells a sum is, where it is not of all."""
    return f" ({known} of {cells} known)" if known < cells else ""
