"""From index entries to the rows that rates are made of, and what may be said of the rates."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from orchestrator.run.outcome import TABLE
from orchestrator.store.index import IndexEntry
from orchestrator.store.names import NO_STACK
from orchestrator.store.record import ClaimLevel
from scorers.aggregate import MIN_COVERAGE, Group, Row, State, aggregate

MIN_RUNS = 3
"""Runs of every task from which on a rate is citable."""
UNRANKED: Literal["unranked"] = "unranked"
RateClaim = ClaimLevel | Literal["unranked"]

_WEAKEST_FIRST: tuple[ClaimLevel, ...] = ("pipeline_only", "imported", "provisional", "citable")


@dataclass(frozen=True)
class Pair:
    """The rates of one CLI × model; a CLI with a stack stands beside the one without.

    `claim` is the weakest of its cells', or `unranked` where each cell is citable and the rate is not: fewer
    than 3 runs of a task, or coverage below 95 %.
    """

    group: Group
    claim: RateClaim


def contestant(entry: IndexEntry) -> str:
    """Whose rates a cell belongs to: its CLI's, or with a stack or condition those of all together."""
    return contestant_of(entry.cli, entry.stack, entry.condition)


def contestant_of(cli: str, stack: str, condition: str | None) -> str:
    """`cli`, `cli+stack`, `cli@condition` or `cli+stack@condition`."""
    with_stack = cli if stack == NO_STACK else f"{cli}+{stack}"
    return with_stack if condition is None else f"{with_stack}@{condition}"


def unjudged(condition: str | None, outcome: str, passed: float | None) -> bool:
    """Whether a cell waits for the verdict of somebody else than cab: cells under conditions do."""
    return condition is not None and passed is None and TABLE[outcome].counted


def rows_of(entries: Iterable[IndexEntry]) -> list[Row]:
    """The finished cells of one sweep as rows; whether one counts is the outcome table's word of today.

    While one under a condition is unjudged, no verdict under any condition counts: a part has no rate.
    """
    given = list(entries)
    partial = any(unjudged(it.condition, it.outcome, it.passed) for it in given)
    return [_row(it, without_verdict=partial and it.condition is not None) for it in given]


def _row(entry: IndexEntry, *, without_verdict: bool) -> Row:
    passed = None if without_verdict else entry.passed
    row = Row(
        cli=contestant(entry),
        model=entry.model,
        task=entry.task,
        run=entry.run,
        state=state_of(entry.outcome, passed),
        passed=None if passed is None else int(passed),
        composite=entry.composite,
        composite_bounds=entry.composite_bounds,
        published=entry.composite_published,
        total_tokens=entry.total_tokens,
    )
    return row.model_copy(update=NO_VERDICT) if without_verdict else row


NO_VERDICT: Mapping[str, None] = dict.fromkeys(("passed", "composite", "composite_bounds", "published"))
"""What a row does not hold whose verdict does not count."""


def state_of(outcome: str, passed: float | None) -> State:
    """What a cell is to a rate, by the outcome table; one without a verdict counts no more than an infra
    error.
    """
    rule = TABLE[outcome]
    if rule.counted and passed is not None:
        return "counted"
    return "infra" if rule.ran else "not_run"


def pairs(entries: Iterable[IndexEntry]) -> list[Pair]:
    """The rates of each CLI × model, with the claim that they allow."""
    given = list(entries)
    rows = rows_of(given)
    cells: dict[str, list[IndexEntry]] = defaultdict(list)
    for entry in given:
        cells[f"{contestant(entry)} × {entry.model}"].append(entry)
    found = []
    for group in aggregate(rows, "pair").groups:
        of = cells[group.name]
        runs = Counter(cell.task for cell in of if state_of(cell.outcome, cell.passed) != "not_run")
        fewest = min(runs.values(), default=0)
        found.append(Pair(group, claim_of_rate({cell.claim for cell in of}, fewest, group.coverage)))
    return found


def claim_of_rate(claims: Collection[ClaimLevel], runs: int, coverage: float | None) -> RateClaim:
    """What may be said of a rate: no more than of the weakest of its cells, given by their `claims`.

    `runs` is the number of attempted runs of the task that has the fewest.
    """
    weakest = min(claims, key=_WEAKEST_FIRST.index)
    if weakest != "citable":
        return weakest
    return weakest if runs >= MIN_RUNS and (coverage or 0) >= MIN_COVERAGE else UNRANKED
