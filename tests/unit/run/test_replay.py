"""Which cells can be replayed, what of their scores is compared, and what is said of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from orchestrator.adapter import load_adapter
from orchestrator.cli.cell_cmd import cell as command
from orchestrator.errors import InputError, PinMismatch
from orchestrator.gateway.contract import ReplayReport, RequestDifference, ValueDifference
from orchestrator.paths import IMAGES, TASKS
from orchestrator.plan.task import load_task
from orchestrator.report.replay import as_data, lines
from orchestrator.run import start
from orchestrator.run.replay import TIME_NAMES, Comparison, Prepared, differing, prepare
from orchestrator.store.cells import CellStore
from orchestrator.store.names import CellKey
from tests.unit.report.report_samples import DIGEST, FACTS, SWEEP, evidence, record, store

TASK = "polyglot/python-reverse-string"
FACTS_OF_TASK = FACTS.model_copy(update={"task": TASK})
SPEC: dict[str, Any] = {
    "name": "free",
    "clis": ["opencode", "aider"],
    "models": ["embedded/reference", {"id": "m", "endpoint": "hosted"}],
    "endpoints": {"hosted": {"base_url": "http://127.0.0.1:1/v1", "key": {"env": "CAB_KEY"}}},
    "tasks": ["polyglot/*"],
    "limits": {"memory": "2GiB"},
    "timeout_s": 60.0,
    "retries": 2,
}


def stored(results: Path, key: CellKey, of_sweep: dict[str, Any] | None = None, **given: Any) -> Path:
    """A finished cell of a stored sweep; its directory."""
    found = evidence()
    cell = record(found, key=key, facts=FACTS_OF_TASK, **given)
    digests = {
        "tasks": {TASK: load_task(TASKS, TASK).content_hash},
        "adapters": dict(start.Matrix.adapter_digests.func(_Adapters)),  # type: ignore[attr-defined, arg-type]
        "spec": SPEC,
    }
    made = store(results, (cell, found), facts=FACTS_OF_TASK, **(digests | (of_sweep or {})))
    return made.cell_dir(key)
