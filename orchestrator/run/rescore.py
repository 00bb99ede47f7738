"""Scoring stored evidence again: no container, no model, the same numbers or a visible difference."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import scorers
from orchestrator.run.outcome import TABLE
from orchestrator.run.records import scores_of
from orchestrator.store.cells import read_cell
from orchestrator.store.evidence import load_evidence, load_facts
from orchestrator.store.record import CellRecord


@dataclass(frozen=True)
class Rescored:
    """A stored cell, its new scores, and `differences`: `axis.key` -> (stored, new)."""

    record: CellRecord
    scores: dict[str, dict[str, Any]]
    differences: dict[str, tuple[Any, Any]]


def rescore(cell_dir: Path) -> Rescored:
    """Score the evidence of a finished cell again. Raises StoreError where it cannot be read."""
    record = read_cell(cell_dir)
    counts = TABLE[record.outcome.name].counted
    scores = scores_of(scorers.score(load_facts(cell_dir), load_evidence(cell_dir), outcome_counts=counts))
    differences = {
        f"{axis}.{key}": (record.scores.get(axis, {}).get(key), value)
        for axis, values in scores.items()
        for key, value in values.items()
        if record.scores.get(axis, {}).get(key) != value
    }
    return Rescored(record, scores, differences)
