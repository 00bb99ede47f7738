"""The command that runs a cell again."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from orchestrator.errors import StoreError
from orchestrator.plan.spec import SweepSpec
from orchestrator.run.outcome import TABLE
from orchestrator.store.cells import CellStore
from orchestrator.store.record import CellRecord


def again(record: CellRecord, cell_dir: Path) -> str:
    """How to run a cell again: a resume where its outcome is retried, else a sweep of that cell alone."""
    if TABLE[record.outcome.name].retried:
        return f"run it again: cab sweep resume {shlex.quote(record.identity.sweep_id)}"
    spec = _spec_of_its_sweep(record, cell_dir)
    if spec is None:
        return "run it again: by its sweep file; the sweep as stored is not here, or is older than this cab"
    text = json.dumps(alone(record, spec))
    return f"run it again, as a sweep of its own:\n  printf %s {shlex.quote(text)} | cab sweep run /dev/stdin"


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
            "runs": 1,
            "concurrency": 1,
            "seed": 0,
        }
    )
    return one.model_dump(mode="json", exclude_defaults=True, exclude_none=True)


def _spec_of_its_sweep(record: CellRecord, cell_dir: Path) -> SweepSpec | None:
    """The spec of the sweep that a cell's directory lies in; None where it lies elsewhere."""
    root = cell_dir.resolve().parents[4]
    try:
        return SweepSpec.of_data(CellStore(root.parent, record.identity.sweep_id).sweep().spec)
    except (StoreError, ValidationError):
        return None
