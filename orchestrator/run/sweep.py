"""The loop of a sweep: workers take cells in their recorded order until none is left.

A cell's end is stored before its worker takes the next one. A cell that the outcome table says to retry goes
back to the end of the queue, and what its try cost is kept with the record of its last one. A budget that is
used up ends the launching; cells under way come to their end.
"""

from __future__ import annotations

import threading
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
from orchestrator.run.workers import Workers
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
    _under_way: dict[str, CellRun] = field(default_factory=dict)
    _cancelling: threading.Event = field(default_factory=threading.Event)
    _workers: Workers[_Job] = field(init=False)

    def __post_init__(self) -> None:
        self._workers = Workers(self._try, "cell-worker", lambda: not self.budget.used_up)

    @property
    def interrupted(self) -> bool:
        """Whether the user stopped it before its end."""
        return self._workers.interrupted

    @property
    def stopping(self) -> bool:
        return self._workers.stopping.is_set()

    @property
    def over_budget(self) -> int:
        """Once it has run: how many cells were not, since the budget was used up before (`sweep_budget`)."""
        return len(self._workers.left) if self.budget.used_up and not self.stopping else 0

    def stop(self) -> None:
        """Start no further cell; those under way come to their end."""
        self._workers.stop()

    def cancel(self) -> None:
        """Stop the cells under way as well; nothing of them is stored."""
        self._cancelling.set()
        self.stop()
        for run in list(self._under_way.values()):
            run.cancel()

    def run(self) -> None:
        """Run to the end or to a stop. Raises what made going on pointless: a full disk, a dead gateway."""
        # Whatever a try raises is the store, the machine or cab itself: further cells would fail alike.
        self._workers.run([_Job(cell) for cell in self.cells], self.bench.concurrency)
        # A gateway that died after the last cell takes with it what was waited for, and no result.
        with suppress(CellFault):
            note_windows(self.store.root, self.bench.gateway.windows())

    def _try(self, job: _Job) -> None:
        try:
            self._run(job)
        except Cancelled:
            self.observer.cancelled(job.cell)

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
            self._workers.fail(fault)
        if self._again(job, result):
            self.store.discard(staging)
            return
        record = record_of(self.bench, cell, result, job.attempts)
        save_evidence(staging.path, result.evidence)
        save_facts(staging.path, result.facts)
        entry = self.store.commit(staging, record, replace=True)
        self.observer.ended(cell, entry)

    def _again(self, job: _Job, result: CellResult) -> bool:
        ends = self.stopping or self.budget.used_up
        if ends or not result.outcome.worth_a_retry or len(job.attempts) >= self.retries:
            return False
        job.attempts.append(attempt_of(result))
        self.observer.retrying(job.cell, result.outcome)
        self._workers.again(job)
        return True
