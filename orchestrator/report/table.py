"""A sweep as tables: its cells with their axes, its pairs with their rates, what was skipped."""

from __future__ import annotations

import json
from typing import Any

from rich.table import Table

from orchestrator.report.groups import pairs
from orchestrator.report.text import console, count, number, seconds
from orchestrator.store.cells import CellStore
from orchestrator.store.index import IndexEntry
from orchestrator.store.record import SweepRecord
from scorers.aggregate import Group

CLAIM_MARKS = {
    "pipeline_only": "pipeline",
    "provisional": "provisional",
    "citable": "citable",
    "imported": "imported",
}


def print_sweep(store: CellStore, *, as_json: bool) -> None:
    """Print a sweep as far as it is, results on stdout."""
    sweep, entries = store.sweep(), _in_order(store)
    groups = pairs(entries)
    if as_json:
        print(json.dumps(_as_data(sweep, entries, groups)))  # noqa: T201 - results belong on stdout
        return
    out = console()
    out.print(_cells(sweep, entries))
    out.print(_pairs(groups))
    for reason, cells in _skipped(sweep).items():
        out.print(
            f"skipped: {len(cells)} cells, {reason}: {', '.join(sorted({_pair(cell) for cell in cells}))}"
        )
    missing = len(sweep.order) - len(entries)
    if missing:
        out.print(f"not finished: {missing} of {len(sweep.order)} cells; cab sweep resume {sweep.sweep_id}")
    out.print(f"results: {store.root}")
    if entries:
        worst = min(entries, key=lambda entry: (entry.counted, entry.composite or 0))
        out.print(f"look further: cab cell show '{worst.cell_id}'", soft_wrap=True)


def _in_order(store: CellStore) -> list[IndexEntry]:
    return sorted(
        store.finished().values(), key=lambda entry: (entry.cli, entry.model, entry.task, entry.run)
    )


def _cells(sweep: SweepRecord, entries: list[IndexEntry]) -> Table:
    table = Table(title=f"{sweep.sweep_id}: {len(entries)} of {len(sweep.order)} cells", title_justify="left")
    for name in ("CLI", "model", "task", "outcome"):
        table.add_column(name, overflow="fold")
    for name in ("pass", "tokens", "wall s", "blast", "refusal", "integrity", "cab-1"):
        table.add_column(name, justify="right")
    table.add_column("claim")
    for entry in entries:
        table.add_row(
            entry.cli,
            entry.model,
            entry.task + (f" #{entry.run}" if entry.run > 1 else ""),
            entry.outcome + (f"({entry.cause})" if entry.cause else ""),
            number(entry.passed) + (" void" if entry.void else ""),
            count(entry.total_tokens),
            seconds(entry.wall_clock_ms),
            number(entry.blast_radius_agent),
            number(entry.refusal),
            number(entry.integrity),
            number(entry.composite),
            CLAIM_MARKS[entry.claim],
        )
    return table


def _pairs(groups: list[Group]) -> Table:
    table = Table(title="CLI × model: mean over tasks of the mean over runs", title_justify="left")
    table.add_column("pair", overflow="fold")
    for name in ("tasks", "pass rate", r"\[low, high]", "coverage", "cab-1", "published-0.1", "tokens a pass"):
        table.add_column(name, justify="right")
    for group in groups:
        rate = group.pass_rate
        table.add_row(
            group.name,
            count(group.units),
            number(rate.value),
            rf"\[{number(rate.low)}, {number(rate.high)}]",
            number(group.coverage),
            number(group.cab_1.value),
            number(group.published_0_1),
            count(group.tokens_per_correct_task),
        )
    return table


def _skipped(sweep: SweepRecord) -> dict[str, list[str]]:
    by_reason: dict[str, list[str]] = {}
    for cell in sweep.skipped:
        by_reason.setdefault(cell.reason, []).append(cell.cell_id)
    return by_reason


def _pair(cell_id: str) -> str:
    """CLI and model of a cell id, whose last two parts are its task."""
    return "/".join(cell_id.split("/")[1:-2])


def _as_data(sweep: SweepRecord, entries: list[IndexEntry], groups: list[Group]) -> dict[str, Any]:
    return {
        "sweep_id": sweep.sweep_id,
        "planned": len(sweep.order),
        "finished": len(entries),
        "cells": [entry.model_dump(mode="json") for entry in entries],
        "pairs": [group.model_dump(mode="json") for group in groups],
        "skipped": [cell.model_dump(mode="json") for cell in sweep.skipped],
    }
