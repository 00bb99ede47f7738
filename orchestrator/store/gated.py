"""`gate.json`: what the gate said of a sweep, kept beside its cells where it was asked to; a sweep that
passed is what `last-good` means.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from orchestrator.store.files import store_errors, write_durably
from orchestrator.store.record import VERSION, Model, parse, to_json

GATE = "gate.json"


class Gated(Model):
    """The verdict on a sweep, and the sweeps that it was compared with; none on a first night."""

    schema_version: Annotated[Literal[1], VERSION] = 1
    sweep_id: str
    passed: bool
    baseline: tuple[str, ...]
    reasons: tuple[str, ...]


def read_gated(root: Path) -> Gated | None:
    """What is kept of the sweep whose directory is `root`. Raises StoreError."""
    path = root / GATE
    with store_errors(path):
        try:
            raw = path.read_bytes()
        except FileNotFoundError:
            return None
    return parse(Gated, raw, place=str(path))


def write_gated(root: Path, gated: Gated) -> None:
    """Write it whole or not at all. Raises StoreError."""
    path = root / GATE
    with store_errors(path):
        write_durably(path, to_json(gated))
