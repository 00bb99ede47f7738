"""Nights of made-up cells: what a results directory holds of them, without one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from analysis_samples import cells, frame
from store_samples import DIGEST, sweep_record

from orchestrator.analysis.nights import Night
from orchestrator.store.cells import SWEEP
from orchestrator.store.index import INDEX, IndexEntry
from orchestrator.store.record import SkippedCell, to_json

FIRST = datetime(2026, 11, 1, 22, 17, tzinfo=UTC)
REFERENCE = "embedded/reference"


def name_of(number: int) -> str:
    return f"nightly-{FIRST + timedelta(days=number):%Y%m%d}"


def night(number: int, *entries: list[IndexEntry], **of_sweep: Any) -> Night:
    """The night of that number, from 0. What is planned is what ended, unless `order` says more."""
    sweep_id = name_of(number)
    flat = [entry for of in entries for entry in of]
    fields: dict[str, Any] = {
        "started_at": FIRST + timedelta(days=number),
        "spec": {"name": "nightly"},
        "pins": {"base": DIGEST, "aider": DIGEST},
        "adapters": {"aider": DIGEST},
        "order": tuple(entry.cell_id for entry in flat),
    }
    sweep = sweep_record(sweep_id=sweep_id, **(fields | of_sweep))
    skipped = {cell.cell_id.removeprefix(f"{sweep_id}/"): cell.reason for cell in sweep.skipped}
    return Night(sweep, frame(flat), skipped)


def of(
    number: int, tasks: Iterable[Iterable[int | None]], model: str = "v/one", **given: Any
) -> list[IndexEntry]:
    """The cells of aider on a night, as `cells` makes them."""
    return cells("aider", tasks, model, sweep_id=name_of(number), **given)


def drawn(rate: float, tasks: int, runs: int, seed: int) -> list[list[int]]:
    """Runs that pass with that probability."""
    return np.random.default_rng(seed).binomial(1, rate, (tasks, runs)).tolist()


def on_disk(results: Path, made: Night) -> Path:
    """A night's sweep record and index, as far as analyses read them."""
    root = results / made.sweep_id
    root.mkdir(parents=True)
    (root / SWEEP).write_bytes(to_json(made.sweep))
    rows = made.frame.drop("started_at", "ended_at").to_dicts()
    times = {"started_at": "2026-11-27T12:00:00.000000Z", "ended_at": "2026-11-27T12:00:03.000000Z"}
    entries = [IndexEntry(**row, **times) for row in rows]
    (root / INDEX).write_bytes(b"".join(entry.line() for entry in entries))
    return root


def skipping(made: Night, *cell_ids: str, reason: str = "CAB_KEY is not set") -> Night:
    """The same night with cells that its plan left out."""
    skipped = tuple(SkippedCell(cell_id=f"{made.sweep_id}/{it}", reason=reason) for it in cell_ids)
    sweep = made.sweep.model_copy(update={"skipped": skipped})
    return replace(made, sweep=sweep, not_run=dict.fromkeys(cell_ids, reason))
