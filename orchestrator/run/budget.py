"""What a sweep has spent, against what it may: over its handshakes, all its cells and
their tries, from its first call on."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from orchestrator.plan.spec import Spending
from orchestrator.store.cells import CellStore, read_cell
from orchestrator.store.preflight import read_preflight
from orchestrator.store.record import BudgetSet, SweepRecord


def started_with(sweep: SweepRecord) -> Spending:
    """The budget of a sweep's spec."""
    return Spending.model_validate((sweep.spec or {}).get("budget") or {})


def with_budget(sweep: SweepRecord, limit: Spending, at: datetime) -> SweepRecord:
    """A sweep's record that tells of the budget of a call from `at` on, where the call before had another."""
    last = sweep.budgets[-1] if sweep.budgets else started_with(sweep)
    if (last.tokens, last.usd) == (limit.tokens, limit.usd):
        return sweep
    now = BudgetSet(at=at, tokens=limit.tokens, usd=limit.usd)
    return sweep.model_copy(update={"budgets": (*sweep.budgets, now)})


@dataclass
class Budget:
    """Counts what was stated: a call without usage, or without a price, adds nothing. For any thread."""

    limit: Spending = field(default_factory=Spending)
    tokens: int = 0
    usd: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, limit: Spending, store: CellStore) -> Budget:
        """A budget less what the handshakes, the stored cells and their earlier tries spent."""
        budget = cls(limit)
        if limit == Spending():
            return budget
        preflight = read_preflight(store.root)
        budget.add(preflight.known_tokens, preflight.known_usd)
        for entry in store.finished().values():
            record = read_cell(store.cell_dir_of(entry))
            known: Any = record.scores.get("tokens", {}).get("known") or {}
            budget.add(known.get("total_tokens"), entry.cost_usd)
            for attempt in record.attempts:
                budget.add((attempt.input_tokens or 0) + (attempt.output_tokens or 0), attempt.cost_usd)
        return budget

    def add(self, tokens: int | None, usd: float | None) -> None:
        with self._lock:
            self.tokens += tokens or 0
            self.usd += usd or 0.0

    @property
    def used_up(self) -> bool:
        return bool(self.limits_reached)

    @property
    def limits_reached(self) -> tuple[str, ...]:
        """Which of its limits are used up: `tokens`, `usd`."""
        spent = {"tokens": self.tokens, "usd": self.usd}
        limits = self.limit.model_dump(exclude_none=True)
        return tuple(name for name, limit in limits.items() if spent[name] >= limit)
