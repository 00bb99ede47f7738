"""What a sweep tells whoever watches it. Called from the workers' threads."""

from __future__ import annotations

from typing import Protocol

from orchestrator.plan.expand import PlannedCell
from orchestrator.run.outcome import Outcome
from orchestrator.store.index import IndexEntry


class Observer(Protocol):
    """A watcher of a sweep; every method must be quick and safe to call from several threads."""

    def started(self, cell: PlannedCell) -> None: ...

    def stage(self, cell: PlannedCell, stage: str) -> None: ...

    def retrying(self, cell: PlannedCell, outcome: Outcome) -> None: ...

    def ended(self, cell: PlannedCell, entry: IndexEntry) -> None: ...

    def cancelled(self, cell: PlannedCell) -> None: ...
