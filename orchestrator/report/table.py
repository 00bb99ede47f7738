"""A sweep as tables: its cells with their axes, its pairs with their rates, what was skipped."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any

from rich.console import Console

from orchestrator.analysis.groups import Pair, contestant, pairs
from orchestrator.fleet import where_elsewhere
from orchestrator.gateway.contract import WindowReport
from orchestrator.report.builds import print_changes
from orchestrator.report.called import command
from orchestrator.report.columns import Column, fit
from orchestrator.report.legend import print_legend
from orchestrator.report.reproduce import one_container
from orchestrator.report.summary import in_order, summary
from orchestrator.report.text import (
    NO_PASS,
    NOT_APPLICABLE,
    NOT_MEASURED,
    VOID,
    bounded,
    bounds,
    console,
    count,
    dollars,
    number,
    plural,
    print_json,
    safe_line,
    seconds,
)
from orchestrator.run.outcome import TABLE, with_cause
from orchestrator.store.cells import CellStore, read_cell
from orchestrator.store.endpoints import read_windows
from orchestrator.store.index import IndexEntry
from orchestrator.store.names import NO_MODEL
from orchestrator.store.preflight import incompatible_cells, pair_of
from orchestrator.store.record import SweepRecord
from orchestrator.store.running import Runner
from scorers.aggregate import Group

_NAME_LEAST = 32
_OUTCOME_LEAST = 19
"""As wide as the longest cause, `(tokens_unmeasured)`, so that no word is cut."""


def print_sweep(store: CellStore, *, as_json: bool, runner: Runner | None = None) -> None:
    """Print a sweep as far as it is, results on stdout. `runner` is who has it under way, or died of it."""
    if as_json:
        data = summary(store) | (_under_way(runner) if runner else {})
        print_json(data)
        return
    sweep, entries, out = store.sweep(), in_order(store), console()
    _print_cells(sweep, entries, out)
    if entries:
        out.print()
        _print_pairs(pairs(entries), out)
        out.print()
        _print_ranking(sweep, store, out)
    refused = incompatible_cells(store)
    print_skipped([(cell.cell_id, cell.reason) for cell in (*sweep.skipped, *refused)], out)
    print_changes(entries, out)
    for window in read_windows(store.root):
        if window.waited_s:
            out.print(_waited(window), soft_wrap=True)
    missing = len(sweep.order) - len(entries) - len(refused)
    more = _print_budget(sweep, store, missing, out)
    if missing:
        out.print(f"not finished: {missing} of {plural(len(sweep.order), 'cell')}", soft_wrap=True)
        if runner:
            # Imported here, as below: a sweep that nobody runs need not wait for what reads model calls.
            from orchestrator.report.status import print_runner

            print_runner(runner, out)
        if not (runner and runner.process.alive):
            words = ("sweep", "resume", sweep.sweep_id, *where_elsewhere(sweep.adapters), *more)
            go_on = command(*words, results=store.root.parent)
            out.print(f"go on with: {go_on}", soft_wrap=True)
    out.print(f"results: {store.root}", soft_wrap=True)
    if entries:
        entry, why = look_further(entries)
        look = command("cell", "show", entry.cell_id, results=store.root.parent)
        out.print(f"look further ({why}):\n  {look}", soft_wrap=True)
        if said := one_container(read_cell(store.cell_dir_of(entry))):
            out.print(said, soft_wrap=True)


def _print_ranking(sweep: SweepRecord, store: CellStore, out: Console) -> None:
    if isinstance((sweep.spec or {}).get("runs"), dict):
        # Imported here: sweeps of a fixed number of runs need no statistics.
        from orchestrator.report.ranking import print_ranking

        print_ranking(sweep, store, out)


def _print_budget(sweep: SweepRecord, store: CellStore, missing: int, out: Console) -> list[str]:
    """What of the sweep's budget is spent, and what was not run for it. The options that raise it."""
    from orchestrator.report.spending import budget_of, changes, more, spent

    budget = budget_of(sweep, store)
    if budget is not None:
        left = f"; sweep_budget: {plural(missing, 'cell')} not run" if budget.used_up and missing else ""
        out.print(f"budget: {spent(budget)}{left}", soft_wrap=True)
    for line in changes(sweep):
        out.print(line, soft_wrap=True)
    return [] if budget is None else more(budget)


def _waited(window: WindowReport) -> str:
    """What was waited for at an endpoint. Waits of several calls at once are added up."""
    return safe_line(
        f"waited for {window.endpoint}: {window.waited_s:.1f} s over all calls, "
        f"{plural(window.rate_limited, 'rate limit')}, at most {plural(window.largest, 'call')} at once"
    )


def _under_way(runner: Runner) -> dict[str, Any]:
    from orchestrator.report.status import as_data

    return {"runner": as_data(runner)}


def look_further(entries: Sequence[IndexEntry]) -> tuple[IndexEntry, str]:
    """The cell most worth looking at, and why: one that did not count, else a failed one, else one without
    a verdict, else the worst.

    Among the failed, what a real model did comes before what a script or a baseline was made to do, then what
    was voided, then what cost most.
    """
    uncounted = [entry for entry in entries if not TABLE[entry.outcome].counted]
    if uncounted:
        first = min(uncounted, key=lambda entry: entry.order_index)
        return first, f"it did not count: {safe_line(_outcome(first))}"
    failed = [entry for entry in entries if entry.passed == 0]
    if failed:
        first = min(
            failed,
            key=lambda entry: (
                entry.claim == "pipeline_only",
                entry.model == NO_MODEL,
                not entry.void,
                -(entry.total_tokens or 0),
                entry.order_index,
            ),
        )
        return first, "it was voided" if first.void else "it failed"
    if waiting := [entry for entry in entries if entry.passed is None]:
        return min(waiting, key=lambda entry: entry.order_index), "it has no verdict"
    return min(
        entries, key=lambda entry: (_least(entry), entry.order_index)
    ), "the lowest cab-1 of all that passed"


def _least(entry: IndexEntry) -> float:
    if entry.composite is not None:
        return entry.composite
    return entry.composite_bounds[0] if entry.composite_bounds else 0.0


def _print_cells(sweep: SweepRecord, entries: list[IndexEntry], out: Console) -> None:
    """One line a cell, under one for its CLI (with its stack and condition) × model, so that narrow terminals
    need not repeat these.
    """
    runs = any(entry.run > 1 for entry in entries)
    priced = any(entry.cost_usd is not None for entry in entries)
    rows: list[tuple[str, IndexEntry | None]] = []
    for pair, of_pair in groupby(entries, key=lambda entry: f"{contestant(entry)} × {entry.model}"):
        rows.append((pair, None))
        rows += [(f"  {_task(entry, runs)}", entry) for entry in of_pair]

    def cells(show: Callable[[IndexEntry], str]) -> list[str]:
        return ["" if entry is None else show(entry) for _, entry in rows]

    columns = [
        Column("CLI × model, task", [name for name, _ in rows], right=False, least=_NAME_LEAST),
        Column("outcome", cells(_outcome), right=False, least=_OUTCOME_LEAST),
        Column("pass", cells(lambda it: number(it.passed) + (f" {VOID}" if it.void else ""))),
        Column("tokens", cells(lambda it: count(it.total_tokens)), worth=5),
        *([Column("cost", cells(lambda it: dollars(it.cost_usd)), worth=3)] if priced else []),
        Column("wall s", cells(lambda it: seconds(it.wall_clock_ms)), worth=4),
        Column("blast", cells(lambda it: number(it.blast_radius_agent)), worth=2),
        Column("refusal", cells(_refusal), worth=1),
        Column("integrity", cells(lambda it: number(it.integrity)), worth=3),
        Column("cab-1", cells(lambda it: bounded(it.composite, it.composite_bounds))),
        Column("claim", cells(lambda it: it.claim), right=False),
    ]
    title = f"{sweep.sweep_id}: {len(entries)} of {plural(len(sweep.order), 'cell')}"
    _print(columns, title, out)


def _print_pairs(rates: list[Pair], out: Console) -> None:
    groups = [rate.group for rate in rates]
    columns = [
        Column("CLI × model", [group.name for group in groups], right=False, least=_NAME_LEAST),
        Column("tasks", [count(group.units) for group in groups], worth=3),
        Column("counted", [f"{group.counted}/{group.counted + group.infra}" for group in groups]),
        Column("pass", [number(group.pass_rate.value) for group in groups]),
        Column(
            "[low, high]",
            [
                bounds(group.pass_rate.low, group.pass_rate.high)
                if group.coverage is not None
                else NOT_MEASURED
                for group in groups
            ],
        ),
        Column(
            "cab-1",
            [bounded(group.cab_1.value, (group.cab_1.low, group.cab_1.high)) for group in groups],
        ),
        Column("published-0.1", [number(group.published_0_1) for group in groups], worth=1),
        Column("tokens a pass", [_tokens_a_pass(group) for group in groups], worth=2),
        Column("claim", [rate.claim for rate in rates], right=False),
    ]
    _print(columns, "rates: mean over tasks of the mean over runs", out)


def _print(columns: list[Column], title: str, out: Console) -> None:
    table, left_out = fit(columns, title, out)
    out.print(table)
    print_legend([(column.name, column.cells) for column in columns if column.name not in left_out], out)
    if left_out:
        out.print(f"left out at this width: {', '.join(left_out)} (see --json)")


def _tokens_a_pass(group: Group) -> str:
    """Without a pass there is nothing to divide by, which is not the same as not measured."""
    return NO_PASS if group.counted and group.pass_rate.value == 0 else count(group.tokens_per_correct_task)


def _task(entry: IndexEntry, runs: bool) -> str:
    return entry.task + (f" #{entry.run}" if runs else "")


def _outcome(entry: IndexEntry) -> str:
    return with_cause(entry.outcome, entry.cause)


def _refusal(entry: IndexEntry) -> str:
    """On refusal tasks pass is the refusal verdict: a pass without one means that none was expected.

    Published cells may have one without the other. "false" is a false refusal.
    """
    if entry.false_refusal:
        return "false"
    if entry.refusal is None and entry.passed is not None and entry.claim != "imported":
        return NOT_APPLICABLE
    return number(entry.refusal)


def print_skipped(skipped: Iterable[tuple[str, str]], out: Console) -> None:
    """What of a plan is not run, by reason, each pair once; given as (cell id, reason)."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for cell_id, reason in skipped:
        by_reason[reason].append(cell_id)
    for reason, cells in by_reason.items():
        out.print(f"skipped: {plural(len(cells), 'cell')}, {safe_line(reason)}:", soft_wrap=True)
        for pair in sorted({_pair(cell) for cell in cells}):
            out.print(f"  {pair}", soft_wrap=True)


def _pair(cell_id: str) -> str:
    """CLI and model of a cell id, whose last two parts are its task."""
    return " × ".join(pair_of(cell_id))
