"""The command that runs a cell again."""

from __future__ import annotations

import json
import re
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from orchestrator.errors import StoreError
from orchestrator.fleet import where_elsewhere
from orchestrator.plan.spec import SweepSpec
from orchestrator.report.called import command
from orchestrator.run.outcome import TABLE
from orchestrator.store.cells import CellStore
from orchestrator.store.record import CellRecord

_MAX_SLUG = 100


def again(record: CellRecord, cell_dir: Path) -> str:
    """How to run a cell again: a resume where its outcome is retried, else a sweep of that cell alone."""
    results = results_of(record, cell_dir)
    if record.isolation is not None and record.isolation.containers != "separate":
        return "run it again: by the command that it was run with"
    if record.imported is not None:
        return "run it again: only its publisher can; to measure the same, start a sweep of your own"
    where = where_elsewhere([record.identity.cli])
    if TABLE[record.outcome.name].retried:
        resume = command("sweep", "resume", record.identity.sweep_id, *where, results=results)
        return f"run it again: {resume}"
    spec = _spec_of_its_sweep(record, results)
    if spec is None:
        return "run it again: by its sweep file; the sweep as stored is not here, or is older than this cab"
    text = json.dumps(alone(record, spec))
    new_id = _new_id(record, datetime.now(UTC))
    run = command("sweep", "run", "/dev/stdin", "--id", new_id, *where, results=results)
    return f"run it again, as a sweep of its own:\n  printf %s {shlex.quote(text)} | {run}"


def _new_id(record: CellRecord, now: datetime) -> str:
    """A sweep id that no other cell, and no other second, gives."""
    name = f"{record.identity.cli}-{record.identity.task}"
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", name)[:_MAX_SLUG]
    return f"again-{slug}-{now:%Y%m%dT%H%M%SZ}"


def alone(record: CellRecord, spec: SweepSpec) -> dict[str, Any]:
    """A sweep file of this one cell. Endpoints stand there as in its sweep: keys by their variables alone."""
    identity = record.identity
    models = tuple(model for model in spec.models if model.id == identity.model)
    one = spec.model_copy(
        update={
            "name": "again",
            "description": "",
            "clis": (identity.cli,),
            "models": models,
            "endpoints": {
                model.endpoint: spec.endpoints[model.endpoint] for model in models if model.endpoint
            },
            "tasks": (identity.task,),
            # An exclusion that matches no cell is refused, and this one cell was not left out.
            "exclude": (),
            "stacks": spec.only_stack(identity.stack),
            "runs": 1,
            "concurrency": 1,
            "seed": 0,
        }
    )
    return one.model_dump(mode="json", exclude_defaults=True, exclude_none=True)


def results_of(record: CellRecord, cell_dir: Path) -> Path | None:
    """The results directory that a cell's directory lies in; None where it was moved away from its sweep."""
    whole = cell_dir.resolve()
    parts = (record.identity.sweep_id, "cells", *record.identity.key.path().parts)
    return whole.parents[len(parts) - 1] if whole.parts[-len(parts) :] == parts else None


def _spec_of_its_sweep(record: CellRecord, results: Path | None) -> SweepSpec | None:
    """The spec of the sweep that a cell belongs to; None where that is not there or is another cab's."""
    if results is None:
        return None
    try:
        return SweepSpec.of_data(CellStore(results, record.identity.sweep_id).sweep().spec)
    except (StoreError, ValidationError):
        return None
