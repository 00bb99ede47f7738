"""From index entries to the rows that rates are made of."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.run.outcome import TABLE
from orchestrator.store.index import IndexEntry
from scorers.aggregate import Group, Row, aggregate


def row_of(entry: IndexEntry) -> Row:
    """One finished cell as a row; whether it counts is the outcome table's word of today."""
    rule = TABLE[entry.outcome]
    counted = rule.counted and entry.passed is not None
    return Row(
        cli=entry.cli,
        model=entry.model,
        task=entry.task,
        run=entry.run,
        state="counted" if counted else "infra" if rule.ran else "not_run",
        passed=None if entry.passed is None else int(entry.passed),
        composite=entry.composite,
        composite_bounds=entry.composite_bounds,
        published=entry.composite_published,
        total_tokens=entry.total_tokens,
    )


def pairs(entries: Iterable[IndexEntry]) -> list[Group]:
    """The rates of each CLI × model."""
    return aggregate([row_of(entry) for entry in entries], "pair").groups
