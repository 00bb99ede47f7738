"""`evidence.json`: what the scorers read of a cell, kept so that it can be scored again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ValidationError

from orchestrator.errors import StoreError
from orchestrator.store.files import store_errors, write_durably
from orchestrator.store.record import VERSION, Model, parse
from scorers.evidence import Evidence, TaskFacts

EVIDENCE = "evidence.json"
FACTS = "task.json"


class _Stored(Model):
    """What the file holds."""

    schema_version: Annotated[Literal[1], VERSION] = 1
    evidence: Evidence


def save_evidence(cell_dir: Path, evidence: Evidence) -> None:
    """Write the evidence of a cell, whole or not at all."""
    path = cell_dir / EVIDENCE
    # ASCII, because an agent's text may hold half a surrogate pair, which UTF-8 cannot say and an escape can.
    body = json.dumps(_Stored(evidence=evidence).model_dump(mode="json"))
    with store_errors(path):
        write_durably(path, f"{body}\n".encode("ascii"))


def save_facts(cell_dir: Path, facts: TaskFacts) -> None:
    """Write what the scorers knew of the task, so that a cell can be scored when the task is gone."""
    path = cell_dir / FACTS
    with store_errors(path):
        write_durably(path, f"{facts.model_dump_json(indent=1)}\n".encode())


def load_facts(cell_dir: Path) -> TaskFacts:
    """Read what the scorers knew of the task. Raises StoreError that names the file."""
    path = cell_dir / FACTS
    with store_errors(path):
        raw = path.read_bytes()
    try:
        return TaskFacts.model_validate_json(raw)
    except ValidationError as error:
        raise StoreError(error.errors()[0]["msg"], place=str(path), mend="restore the file") from None


def load_evidence(cell_dir: Path) -> Evidence:
    """Read the evidence of a cell. Raises StoreError that names the file and the field."""
    path = cell_dir / EVIDENCE
    with store_errors(path):
        raw = path.read_bytes()
    return parse(_Stored, raw, place=str(path)).evidence
