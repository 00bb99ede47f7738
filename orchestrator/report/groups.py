"""From index entries to the rows that rates are made of, and what may be said of the rates."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orchestrator.run.outcome import TABLE
from orchestrator.store.index import IndexEntry
from orchestrator.store.names import NO_STACK
from scorers.aggregate import MIN_COVERAGE, Group, Row, aggregate

MIN_RUNS = 3
"""Runs of every task from which on a rate is citable."""
UNRANKED = "unranked"

_WEAKEST_FIRST = ("pipeline_only", "imported", "provisional", "citable")


@dataclass(frozen=True)
class Pair:
    """The rates of one CLI × model; a CLI with a stack stands beside the one without.

    `claim` is the weakest of its cells', or `unranked` where each cell is citable and the rate is not: fewer
    than 3 runs of a task, or coverage below 95 %.
    """

    group: Group
    claim: str


def contestant(entry: IndexEntry) -> str:
    """Whose rates a cell belongs to: its CLI's, or with a stack those of the two together."""
    return entry.cli if entry.stack == NO_STACK else f"{entry.cli}+{entry.stack}"


def row_of(entry: IndexEntry) -> Row:
    """One finished cell as a row; whether it counts is the outcome table's word of today."""
    rule = TABLE[entry.outcome]
    counted = rule.counted and entry.passed is not None
    return Row(
        cli=contestant(entry),
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


def pairs(entries: Iterable[IndexEntry]) -> list[Pair]:
    """The rates of each CLI × model, with the claim that they allow."""
    rows: list[Row] = []
    cells: dict[str, list[IndexEntry]] = defaultdict(list)
    for entry in entries:
        rows.append(row_of(entry))
        cells[f"{contestant(entry)} × {entry.model}"].append(entry)
    groups = aggregate(rows, "pair").groups
    return [Pair(group, _claim(group, cells[group.name])) for group in groups]


def _claim(group: Group, cells: Sequence[IndexEntry]) -> str:
    weakest = min((cell.claim for cell in cells), key=_WEAKEST_FIRST.index)
    if weakest != "citable":
        return weakest
    runs = Counter(cell.task for cell in cells)
    enough = min(runs.values()) >= MIN_RUNS and (group.coverage or 0) >= MIN_COVERAGE
    return weakest if enough else UNRANKED
