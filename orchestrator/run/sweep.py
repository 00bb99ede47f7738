"""The loop of a sweep: workers take cells in their recorded order until none is left.

A cell's end is stored before its worker takes the next one. A cell that the outcome table says to retry goes
back to the end of the queue, and what its try cost is kept with the record of its last one. A budget that is
used up ends the launching; cells under way come to their end.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from orchestrator.errors import CellFault, EnvironmentFault
from orchestrator.plan.expand import PlannedCell
from orchestrator.run.bench import Bench
from orchestrator.run.budget import Budget
from orchestrator.run.cell import Cancelled, CellResult, CellRun
from orchestrator.run.events import Observer
from orchestrator.run.ground import check_ground
from orchestrator.run.records import attempt_of, record_of
from orchestrator.run.workers import work_together
from orchestrator.store.cells import CellStore
from orchestrator.store.endpoints import note_windows
from orchestrator.store.evidence import save_evidence, save_facts
from orchestrator.store.record import Attempt


@dataclass
class _Job:
    cell: PlannedCell
    attempts: list[Attempt] = field(default_factory=list)


@dataclass
class Sweep:
    """Runs `cells` with as many workers as the bench has places. `stop` and `cancel` may come from a signal
    handler.
    """

    bench: Bench
    store: CellStore
    cells: Sequence[PlannedCell]
    retries: int
    observer: Observer
    budget: Budget = field(default_factory=Budget)
    _queue: deque[_Job] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _under_way: dict[str, CellRun] = field(default_factory=dict)
    _failure: Exception | None = None
    _stopping: threading.Event = field(default_factory=threading.Event)
    _cancelling: threading.Event = field(default_factory=threading.Event)

    @property
    def interrupted(self) -> bool:
        """Whether the user stopped it before its end."""
        return self._stopping.is_set() and self._failure is None

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    @property
    def over_budget(self) -> int:
        """Once it has run: how many cells were not, since the budget was used up before (`sweep_budget`)."""
        return len(self._queue) if self.budget.used_up and not self._stopping.is_set() else 0

    def stop(self) -> None:
        """Start no further cell; those under way come to their end."""
        self._stopping.set()

    def cancel(self) -> None:
        """Stop the cells under way as well; nothing of them is stored."""
        self._cancelling.set()
        self._stopping.set()
        for run in list(self._under_way.values()):
            run.cancel()

    def run(self) -> None:
        """Run to the end or to a stop. Raises what made going on pointless: a full disk, a dead gateway."""
        self._queue.extend(_Job(cell) for cell in self.cells)
        work_together(self._work, min(self.bench.concurrency, len(self._queue)), "cell-worker")
        if self._failure is not None:
            raise self._failure
        # A gateway that died after the last cell takes with it what was waited for, and no result.
        with suppress(CellFault):
            note_windows(self.store.root, self.bench.gateway.windows())

    def _work(self) -> None:
        while not self._stopping.is_set():
            with self._lock:
                if not self._queue or self.budget.used_up:
                    return
                job = self._queue.popleft()
            try:
                self._run(job)
            except Cancelled:
                self.observer.cancelled(job.cell)
            except Exception as error:  # noqa: BLE001 - raised again by `run`, in the main thread
                # The store, the machine or cab itself failed, not the cell: further cells would fail alike.
                self._fail(error)

    def _fail(self, error: Exception) -> None:
        """End the sweep for this reason, unless it ends for another already."""
        self._failure = self._failure or error
        self.stop()

    def _run(self, job: _Job) -> None:
        """One try of one cell, to its stored end or back into the queue."""
        cell = job.cell
        self.observer.started(cell)
        staging = self.store.staging(cell.key)

        def on_stage(stage: str) -> None:
            self.store.note_stage(staging, stage)
            self.observer.stage(cell, stage)

        run = CellRun(self.bench, cell, staging.path, on_stage)
        self._under_way[cell.cell_id] = run
        try:
            if self._cancelling.is_set():
                run.cancel()
            result = run.run()
        except BaseException:
            self.store.discard(staging)
            raise
        finally:
            del self._under_way[cell.cell_id]
        known = result.scores.tokens.known
        self.budget.add(known.total_tokens if known else None, result.scores.tokens.cost_usd)
        try:
            check_ground(self.bench, self.store, result.outcome)
        except EnvironmentFault as fault:
            self._fail(fault)
        if self._again(job, result):
            self.store.discard(staging)
            return
        record = record_of(self.bench, cell, result, job.attempts)
        save_evidence(staging.path, result.evidence)
        save_facts(staging.path, result.facts)
        entry = self.store.commit(staging, record, replace=True)
        self.observer.ended(cell, entry)

    def _again(self, job: _Job, result: CellResult) -> bool:
        ends = self._stopping.is_set() or self.budget.used_up
        if ends or not result.outcome.worth_a_retry or len(job.attempts) >= self.retries:
            return False
        job.attempts.append(attempt_of(result))
        self.observer.retrying(job.cell, result.outcome)
        with self._lock:
            self._queue.append(job)
        return True
