"""A finished sweep written at once, where nobody looks yet; renaming its directory then makes it a sweep."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from orchestrator.store.cells import CELL, CELLS, SWEEP
from orchestrator.store.files import store_errors, sync_tree
from orchestrator.store.index import INDEX, entry_of
from orchestrator.store.record import CellRecord, SweepRecord, to_json


def write_whole(
    root: Path, sweep: SweepRecord, cells: Iterable[tuple[CellRecord, Mapping[str, bytes]]]
) -> None:
    """Write a sweep with its cells, given with their further files by name, to the new directory `root`.

    All of it is on the disk when this returns. A crash leaves a part of it, which is no sweep yet.
    Raises StoreError.
    """
    lines = []
    with store_errors(root):
        root.mkdir()
        for record, files in cells:
            cell_dir = root / CELLS / record.identity.key.path()
            cell_dir.mkdir(parents=True)
            raw = to_json(record)
            for name, content in {**files, CELL: raw}.items():
                (cell_dir / name).write_bytes(content)
            lines.append(entry_of(record, raw).line())
        (root / INDEX).write_bytes(b"".join(lines))
        (root / SWEEP).write_bytes(to_json(sweep))
        sync_tree(root)
