"""A sweep as data: its cells, and the rates and composites of each CLI, model and pair.

Everything here is derived from the index and `endpoints.jsonl`, and can be made again at any time;
`summary.json` beside them is what other programs read.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import scorers
from orchestrator.analysis.cells import KINDS, Kind, kind_of, versions
from orchestrator.analysis.groups import contestant, pairs, rows_of
from orchestrator.report.builds import changes
from orchestrator.store.cells import SWEEP, CellStore
from orchestrator.store.endpoints import ENDPOINTS, read_windows
from orchestrator.store.files import store_errors, write_durably
from orchestrator.store.index import IndexEntry
from orchestrator.store.preflight import PREFLIGHT, incompatible_cells
from orchestrator.store.record import SweepRecord
from scorers.aggregate import By, Row, aggregate

SUMMARY = "summary.json"
_MARGINALS: Mapping[str, By] = {"clis": "cli", "models": "model"}


def in_order(store: CellStore) -> list[IndexEntry]:
    """Finished cells by name."""
    return sorted(
        store.finished().values(),
        key=lambda entry: (contestant(entry), entry.model, entry.task, entry.run),
    )


def summary(store: CellStore) -> dict[str, Any]:
    """A sweep as far as it is. Its composites are means over tasks of the mean over runs."""
    # Imported here: tables need no weights, and the composites import every axis and its rules.
    from orchestrator.report.spending import as_data, budget_of
    from scorers.composite import CAB_1, CAB_1_WEIGHTS, PUBLISHED, PUBLISHED_WEIGHTS

    sweep, entries = store.sweep(), in_order(store)
    budget, refused = budget_of(sweep, store), incompatible_cells(store)
    return {
        "sweep_id": sweep.sweep_id,
        "methodology_version": ", ".join(versions(entry.methodology_version for entry in entries))
        or (PUBLISHED if sweep.imported else scorers.METHODOLOGY_VERSION),
        "composites": {CAB_1: CAB_1_WEIGHTS, PUBLISHED: PUBLISHED_WEIGHTS},
        "planned": len(sweep.order),
        "finished": len(entries),
        "cells": [entry.model_dump(mode="json") for entry in entries],
        "pairs": [{**pair.group.model_dump(mode="json"), "claim": pair.claim} for pair in pairs(entries)],
        **_marginals(entries),
        "model_changes": {
            model: [asdict(build) for build in builds] for model, builds in changes(entries).items()
        },
        "ranking": _ranking(sweep, store),
        "budget": as_data(budget, len(sweep.order) - len(entries) - len(refused)) if budget else None,
        "budgets": [one.model_dump(mode="json") for one in sweep.budgets],
        "endpoints": [window.model_dump(mode="json") for window in read_windows(store.root)],
        "skipped": [cell.model_dump(mode="json") for cell in (*sweep.skipped, *refused)],
    }


def _ranking(sweep: SweepRecord, store: CellStore) -> dict[str, Any] | None:
    """Of a sweep of adaptive runs: what they tell, and why they ended."""
    if not isinstance((sweep.spec or {}).get("runs"), dict):
        return None
    # Imported here: sweeps of a fixed number of runs need no statistics.
    from orchestrator.report.ranking import as_data

    return as_data(sweep, store)


def write_summary(store: CellStore) -> None:
    """Write `summary.json`, whole or not at all; one that is newer than what it is made of stays.

    Raises StoreError.
    """
    path = store.root / SUMMARY
    with store_errors(path):
        made_of = [store.root / SWEEP, store.index_path, store.root / PREFLIGHT, store.root / ENDPOINTS]
        sources = [it.stat().st_mtime_ns for it in made_of if it.exists()]
        if path.exists() and path.stat().st_mtime_ns > max(sources, default=0):
            return
        write_durably(path, json.dumps(summary(store), indent=1).encode() + b"\n")


def _marginals(entries: Sequence[IndexEntry]) -> dict[str, list[dict[str, Any]]]:
    """One CLI over models and one model over CLIs, only over what all compared share: a table for each kind
    of cells and version of the methodology, as in `analysis.summary`.
    """
    tables: dict[tuple[Kind, str], list[Row]] = defaultdict(list)
    for entry, row in zip(entries, rows_of(entries), strict=True):
        tables[kind_of(entry.model, entry.claim), entry.methodology_version].append(row)
    order = sorted(tables, key=lambda table: (KINDS.index(table[0]), table[1]))
    return {
        name: [
            {
                "kind": kind,
                "methodology": methodology,
                **aggregate(tables[kind, methodology], by).model_dump(mode="json"),
            }
            for kind, methodology in order
        ]
        for name, by in _MARGINALS.items()
    }
