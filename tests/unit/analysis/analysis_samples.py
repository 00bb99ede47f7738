"""Frames of made-up cells, for the tests of analyses."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import Any

import polars as pl
from report_samples import entry

from orchestrator.store.frame import SCHEMA
from orchestrator.store.index import IndexEntry
from orchestrator.store.names import CellKey

SWEEP = "free-20261127"
LOST = {"outcome": "infra_error", "cause": "engine", "passed": None, "composite": None, "total_tokens": None}


def cell(
    cli: str = "aider", model: str = "v/one", task: str = "polyglot/t1", run: int = 1, **given: Any
) -> IndexEntry:
    """One finished cell. With `sweep_id`, `stack` or `condition` its id says so."""
    sweep_id = given.get("sweep_id", SWEEP)
    key = CellKey(cli, model, task, run, given.get("stack", "none"), given.get("condition"))
    cell_id = key.cell_id(sweep_id)
    digest = sha256(f"{cell_id} {sorted(given.items())}".encode()).hexdigest()
    return entry(cli, model, task, run, **({"cell_id": cell_id, "record_sha256": digest} | given))


def cells(
    cli: str, tasks: Iterable[Iterable[int | None]], model: str = "v/one", **given: Any
) -> list[IndexEntry]:
    """One cell for each run of the tasks t1, t2, …: 1 passed, 0 failed, None lost to an infra error."""
    return [
        cell(
            cli,
            model,
            f"polyglot/t{number}",
            run,
            **(LOST if passed is None else {"passed": passed}),
            **given,
        )
        for number, runs in enumerate(tasks, start=1)
        for run, passed in enumerate(runs, start=1)
    ]


def frame(*entries: IndexEntry | list[IndexEntry]) -> pl.DataFrame:
    """The frame that `load_frame` would give for them."""
    flat = [it for given in entries for it in (given if isinstance(given, list) else [given])]
    rows = [it.model_dump(exclude={"v", "started_at", "ended_at"}) for it in flat]
    return pl.DataFrame(rows, schema=SCHEMA)
