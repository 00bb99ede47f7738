"""Scoring stored evidence again: no container, no model, the same numbers or a visible difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.errors import StoreError
from orchestrator.run.outcome import TABLE
from orchestrator.store.cells import CellStore, read_cell
from orchestrator.store.evidence import load_evidence, load_facts, save_evidence, save_facts
from orchestrator.store.names import CellKey
from orchestrator.store.record import CellRecord
from scorers.evidence import Verification
from scorers.score import score

Scores = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Rescored:
    """A stored cell, its new scores, and `differences`: `axis.key` -> (stored, new)."""

    record: CellRecord
    scores: dict[str, dict[str, Any]]
    differences: dict[str, tuple[Any, Any]]


def rescore(cell_dir: Path) -> Rescored:
    """Score the evidence of a finished cell again. Raises StoreError where it is missing or unreadable."""
    record = read_cell(cell_dir)
    if record.imported is not None:
        raise StoreError(
            "no evidence is stored of an imported cell",
            place=str(cell_dir),
            mend="`cab import published` computes its composite again",
        )
    counts = TABLE[record.outcome.name].counted
    scores = score(load_facts(cell_dir), load_evidence(cell_dir), outcome_counts=counts).by_axis()
    return Rescored(record, scores, _differences(record.scores, scores))


def judged(
    store: CellStore,
    key: CellKey,
    verification: Verification,
    fail_to_pass: Sequence[str],
    pass_to_pass: Sequence[str],
) -> None:
    """Give a finished cell of a task that cab does not grade the verdict of whoever does, and its scores by
    it. The lists name those of the verification's tests that decide. The store is open; doing it twice is
    doing it once, so that a crash in between costs nothing.

    Raises StoreError where the cell's evidence is missing or unreadable.
    """
    cell_dir, record = store.cell_dir(key), store.record(key)
    facts, evidence = load_facts(cell_dir), load_evidence(cell_dir)
    listed = {"fail_to_pass": list(fail_to_pass), "pass_to_pass": list(pass_to_pass)}
    new_facts = facts.model_copy(update=listed)
    new_evidence = evidence.model_copy(update={"verification": verification})
    scores = score(new_facts, new_evidence, outcome_counts=TABLE[record.outcome.name].counted).by_axis()
    if (new_facts, new_evidence, scores) == (facts, evidence, record.scores):
        return
    save_facts(cell_dir, new_facts)
    save_evidence(cell_dir, new_evidence)
    store.rewrite(record.model_copy(update={"scores": scores}))


def _differences(stored: Scores, now: Scores) -> dict[str, tuple[Any, Any]]:
    """What is not the same, also where one of the two lacks it."""
    return {
        f"{axis}.{key}": (old.get(key), new.get(key))
        for axis in sorted(stored.keys() | now.keys())
        for old, new in [(stored.get(axis, {}), now.get(axis, {}))]
        for key in sorted(old.keys() | new.keys())
        if (key in old) != (key in new) or old.get(key) != new.get(key)
    }
