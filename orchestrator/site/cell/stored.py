"""A finished cell as it is stored, read once for its page."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from orchestrator.errors import StoreError
from orchestrator.store.cells import CELL, read_cell
from orchestrator.store.evidence import EVIDENCE, load_evidence, load_facts
from orchestrator.store.files import store_errors
from orchestrator.store.published import ROW_FILE
from orchestrator.store.record import CellRecord
from scorers.evidence import Evidence, TaskFacts

SPANS = "spans.jsonl"
PATCH = "diff.patch"
CAST = "recording.cast"

SPANS_SHOWN_WHOLE = 64 << 10
"""Bytes of a trace that a page certainly shows whole: a span takes some 300 at least."""

PUBLISHED_AS = {
    CELL: "record.json",
    EVIDENCE: "evidence.json",
    ROW_FILE: "published.json",
    SPANS: "spans.jsonl",
    PATCH: "diff.txt",
}
"""Which files of a cell a site has a copy of, and their names there.

Not `task.json`, whose canary and literals of hidden tests are to stand nowhere else; not the wire's bodies,
and not HOME, which are large and hold what a CLI knows of the machine. The patch is text for browsers.
"""


@dataclass(frozen=True)
class Stored:
    """`evidence` and `facts` are None where the evidence is not there: of an imported cell nobody but its
    publisher has it.
    """

    directory: Path
    record: CellRecord
    evidence: Evidence | None
    facts: TaskFacts | None

    @classmethod
    def read(cls, directory: Path) -> Stored:
        """Raises StoreError where a file of the cell is not there or damaged."""
        record = read_cell(directory)
        if not (directory / EVIDENCE).is_file():
            return cls(directory, record, None, None)
        return cls(directory, record, load_evidence(directory), load_facts(directory))

    @cached_property
    def spans(self) -> list[dict[str, Any]]:
        """The trace as stored, in the order of its spans' ends. Raises StoreError for a damaged line."""
        path = self.directory / SPANS
        if not path.is_file():
            return []
        with store_errors(path):
            raw = path.read_bytes()
        try:
            spans = [json.loads(line) for line in raw.decode().split("\n") if line]
        except ValueError as error:
            raise StoreError(f"is damaged: {error}", place=str(path), mend="restore the file") from None
        if not all(_is_span(span) for span in spans):
            raise StoreError("holds what is no span", place=str(path), mend="restore the file")
        return spans


def _is_span(found: object) -> bool:
    if not isinstance(found, dict):
        return False
    times = all(isinstance(found.get(name), int) for name in ("start_unix_ns", "end_unix_ns"))
    texts = all(isinstance(found.get(name), str) for name in ("span_id", "kind", "name"))
    return times and texts and isinstance(found.get("attributes", {}), dict)
