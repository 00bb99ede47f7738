"""The cells of chosen sweeps, one after the other, as exports read them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from orchestrator.errors import StoreError
from orchestrator.store.cells import CELL, CellStore
from orchestrator.store.column import Column, cell_data
from orchestrator.store.evidence import FACTS
from orchestrator.store.files import store_errors
from orchestrator.store.index import IndexEntry
from orchestrator.store.names import CellKey
from orchestrator.store.record import CellRecord, data_of, validated


@dataclass(frozen=True)
class Cell:
    """One finished cell: its directory, what the index says of it, and its record's bytes."""

    directory: Path
    entry: IndexEntry
    raw: bytes

    @property
    def key(self) -> CellKey:
        one = self.entry
        return CellKey(one.cli, one.model, one.task, one.run, one.stack, one.condition)

    @cached_property
    def record(self) -> CellRecord:
        """Raises StoreError that names the file and the field."""
        return validated(CellRecord, self._data, place=str(self.directory / CELL))

    @cached_property
    def head(self) -> CellRecord:
        """The record without its scores, which are most of it. Raises StoreError."""
        return validated(CellRecord, {**self._data, "scores": {}}, place=str(self.directory / CELL))

    @cached_property
    def _data(self) -> dict[str, Any]:
        return data_of(CellRecord, self.raw, place=str(self.directory / CELL))

    def row(self, columns: Sequence[Column]) -> dict[str, Any]:
        """The cell's value of each column, as JSON has it: times are texts, `json` columns are objects."""
        # The digest says that the scores are what cab wrote: they are read as they stand.
        scores = self._data.get("scores", {})
        record = {**self.head.model_dump(mode="json"), "scores": scores}
        cell = cell_data(record, self.entry.record_sha256, self._task())
        return {column.name: column.of(cell) for column in columns}

    def _task(self) -> dict[str, Any] | None:
        """What the scorers knew of the task; None of an imported cell, which has no such file."""
        path = self.directory / FACTS
        if not path.exists():
            return None
        with store_errors(path):
            raw = path.read_bytes()
        try:
            facts = json.loads(raw)
        except ValueError as error:
            raise StoreError(f"is no JSON: {error}", place=str(path), mend="restore the file") from None
        return facts if isinstance(facts, dict) else None


def every(entry: IndexEntry) -> bool:
    del entry
    return True


def cells_of(stores: Sequence[CellStore], keep: Callable[[IndexEntry], bool] = every) -> Iterator[Cell]:
    """Every finished cell that `keep` keeps, by sweep and by its place in the sweep's order; one is in memory
    at a time.

    Raises StoreError where a record is not the one that the index names: it was changed since.
    """
    for store in stores:
        entries = sorted(store.finished().values(), key=lambda entry: (entry.order_index, entry.cell_id))
        for entry in filter(keep, entries):
            directory = store.cell_dir_of(entry)
            path = directory / CELL
            with store_errors(path):
                raw = path.read_bytes()
            if hashlib.sha256(raw).hexdigest() != entry.record_sha256:
                raise StoreError(
                    "is not the record that the index names: it was changed since",
                    place=str(path),
                    mend="restore it, or remove the index: the sweep's next `cab sweep resume` makes it anew",
                )
            yield Cell(directory, entry, raw)


class Seen:
    """Counts the cells that pass through, for the line that says what was exported.

    `tell` is called with their number after each.
    """

    def __init__(self, tell: Callable[[int], None] = lambda _: None) -> None:
        self._tell = tell
        self._claims: Counter[str] = Counter()
        self._versions: set[str] = set()

    def through(self, cells: Iterable[Cell]) -> Iterator[Cell]:
        for cell in cells:
            self._claims[cell.entry.claim] += 1
            self._versions.add(cell.entry.methodology_version)
            yield cell
            self._tell(self.cells)

    @property
    def cells(self) -> int:
        return self._claims.total()

    def __str__(self) -> str:
        claims = ", ".join(f"{count} {claim}" for claim, count in sorted(self._claims.items()))
        versions = " and ".join(sorted(self._versions))
        line = f"{self.cells} cell{'' if self.cells == 1 else 's'}"
        if not self.cells:
            return line
        line += f" ({claims}; methodology {versions})"
        apart = [
            word for word, many in (("claims", self._claims), ("versions", self._versions)) if len(many) > 1
        ]
        return f"{line}; keep {' and '.join(apart)} apart, each row says its own" if apart else line
