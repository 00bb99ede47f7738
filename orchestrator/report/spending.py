"""What a sweep has spent of its budget, in words and as data."""

from __future__ import annotations

from typing import Any

from orchestrator.plan.spec import Spending
from orchestrator.report.text import count, dollars
from orchestrator.run.budget import Budget, started_with
from orchestrator.store.cells import CellStore
from orchestrator.store.record import SweepRecord


def budget_of(sweep: SweepRecord, store: CellStore) -> Budget | None:
    """The budget that a sweep was started with, less what its stored cells and their tries spent; None where
    it has none.
    """
    limit = started_with(sweep)
    return None if limit == Spending() else Budget.of(limit, store)


def changes(sweep: SweepRecord) -> list[str]:
    """Under which other budgets calls ran cells: `budget from 2026-11-27 12:00 UTC: 500 tokens`."""
    found = []
    for one in sweep.budgets:
        tokens = [] if one.tokens is None else [f"{count(one.tokens)} tokens"]
        parts = [*tokens, *([] if one.usd is None else [dollars(one.usd)])]
        found.append(f"budget from {one.at:%Y-%m-%d %H:%M} UTC: {' and '.join(parts) or 'none'}")
    return found


def spent(budget: Budget) -> str:
    """`200 of 500 tokens and $0.1000 of $2.00 used`; nothing where there is no limit."""
    limit, parts = budget.limit, []
    if limit.tokens is not None:
        parts.append(f"{count(budget.tokens)} of {count(limit.tokens)} tokens")
    if limit.usd is not None:
        parts.append(f"{dollars(budget.usd)} of {dollars(limit.usd)}")
    return f"{' and '.join(parts)} used" if parts else ""


def more(budget: Budget) -> list[str]:
    """The options that raise what is used up of a budget, for the command that goes on with its sweep."""
    return [word for name in budget.limits_reached for word in (f"--budget-{name}", "MORE")]


def as_data(budget: Budget, not_finished: int) -> dict[str, Any]:
    """`sweep_budget` is the number of cells that were not run since the budget was used up before. `spent` is
    what was stated: a call without usage, or without a price, adds nothing to it.
    """
    limit = budget.limit
    return {
        "limit": limit.model_dump(),
        "spent": {
            "tokens": budget.tokens,
            "usd": None if limit.usd is None else budget.usd,
        },
        "used_up": budget.used_up,
        "sweep_budget": not_finished if budget.used_up else 0,
    }
