"""Published cells as records of a results directory, beside cab's own.

Each sweep of the file becomes a sweep of its published id, made whole in a hidden directory and then renamed
into place: it is there as a whole or not at all. What is there already is never changed unasked.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from orchestrator.errors import InputError, StoreError
from orchestrator.run.provenance import Provenance
from orchestrator.run.published_record import digest_of, record_of, sweep_of
from orchestrator.store.cells import SWEEP, CellStore
from orchestrator.store.files import make_dirs, store_errors, sync_dir
from orchestrator.store.published import ROW_FILE, Row, read_row, row_bytes
from orchestrator.store.record import Cab, CellRecord
from orchestrator.store.running import LOCK, lock_holder
from orchestrator.store.whole import write_whole

HIDDEN = ".import"
"""Where sweeps are made, below the results directory; gone when an import ends."""
_REPLACED = "replaced"

State = Literal["stored", "same as stored", "replaced"]


@dataclass(frozen=True)
class ImportedSweepOf:
    """One sweep of the file, and what became of it."""

    sweep_id: str
    records: Sequence[CellRecord]
    state: State


def import_published(
    rows: Sequence[Row], source: Path, results: Path, *, replace: bool
) -> list[ImportedSweepOf]:
    """Store published cells below `results`, one sweep for each sweep id among them.

    Raises InputError where a row cannot be stored, and StoreError where a sweep of that id is there that is
    not the same: cab's own always, an imported one unless `replace` is given. Nothing is then written.
    """
    if (results / SWEEP).exists():
        raise InputError(
            "is one sweep, not a directory of sweeps", place=str(results), mend=f"give {results.parent}"
        )
    of_sweep: dict[str, list[Row]] = {}
    for row in rows:
        of_sweep.setdefault(row.cell.sweep_id, []).append(row)
    provenance = Provenance.read()
    cab = Cab(version=provenance.version, commit=provenance.commit, dirty=provenance.dirty)
    places = {row.cell_id: f"{source}: element {index}" for index, row in enumerate(rows)}
    records = {
        sweep_id: [record_of(row, index, cab, places[row.cell_id]) for index, row in enumerate(its)]
        for sweep_id, its in of_sweep.items()
    }
    with store_errors(results):
        make_dirs(results)
        with _hidden(results) as hidden:
            states = {
                sweep_id: _state(CellStore(results, sweep_id), its, replace)
                for sweep_id, its in of_sweep.items()
            }
            new = [sweep_id for sweep_id, state in states.items() if state != "same as stored"]
            for sweep_id in new:
                _write(hidden, sweep_id, of_sweep[sweep_id], records[sweep_id], cab)
            for sweep_id in new:
                _place(hidden, results, sweep_id)
    return [ImportedSweepOf(sweep_id, records[sweep_id], state) for sweep_id, state in states.items()]


def _state(there: CellStore, rows: Sequence[Row], replace: bool) -> State:
    """What is to become of one sweep. Raises StoreError where it may not be stored."""
    if not there.root.exists():
        return "stored"
    place = str(there.root)
    if not there.exists():
        raise StoreError(
            "is in the way: it is no sweep", place=place, mend="import into another results directory"
        )
    stored = there.sweep()
    if stored.imported is None:
        runner = lock_holder(there.root / LOCK)
        running = runner is not None and runner.alive
        whose = f"being run, by process {runner.pid}" if runner and running else "cab's own"
        raise StoreError(
            f"this sweep is {whose}, and is not replaced",
            place=place,
            mend="import into another results directory",
        )
    if replace:
        return "replaced"
    if stored.imported.rows_digest == digest_of(rows):
        return "same as stored"
    raise StoreError(
        f"is not what the file holds: {_difference(there, rows)}",
        place=place,
        mend="replace it with --replace",
    )


def _difference(there: CellStore, rows: Sequence[Row]) -> str:
    """How a stored sweep and the file differ, by the first cell of each kind."""
    stored = {cell_id: read_row(there.cell_dir_of(entry)) for cell_id, entry in there.finished().items()}
    now: Mapping[str, dict[str, Any]] = {row.cell_id: row.source for row in rows}
    kinds = {
        "other": [cell_id for cell_id in now if cell_id in stored and now[cell_id] != stored[cell_id]],
        "new": [cell_id for cell_id in now if cell_id not in stored],
        "not there": [cell_id for cell_id in stored if cell_id not in now],
    }
    return ", ".join(f"{len(cells)} {kind} (first {cells[0]})" for kind, cells in kinds.items() if cells)


def _write(hidden: Path, sweep_id: str, rows: Sequence[Row], records: Sequence[CellRecord], cab: Cab) -> None:
    sweep = sweep_of(sweep_id, rows, cab)
    root = hidden / sweep_id
    write_whole(
        root,
        sweep,
        [(record, {ROW_FILE: row_bytes(row.source)}) for row, record in zip(rows, records, strict=True)],
    )
    # The newest sweep is the one that was started last, not the one that was copied here last.
    started = sweep.started_at.timestamp()
    os.utime(root / SWEEP, (started, started))


def _place(hidden: Path, results: Path, sweep_id: str) -> None:
    """Rename a finished sweep into place; one that it replaces is moved aside first, and back on failure."""
    final, aside = results / sweep_id, hidden / _REPLACED / sweep_id
    replaced = final.exists()
    if replaced:
        make_dirs(aside.parent)
        final.rename(aside)
    try:
        (hidden / sweep_id).rename(final)
    except OSError:
        if replaced:
            aside.rename(final)
        raise
    sync_dir(results)


@contextmanager
def _hidden(results: Path) -> Iterator[Path]:
    """The hidden directory of the one import that may be at work here. What a killed one left is mended."""
    fd = os.open(results, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(
                "another import is at work here", place=str(results), mend="wait for it"
            ) from None
        hidden = results / HIDDEN
        _mend(hidden, results)
        hidden.mkdir()
        try:
            yield hidden
        finally:
            shutil.rmtree(hidden)
    finally:
        os.close(fd)


def _mend(hidden: Path, results: Path) -> None:
    """Undo what a killed import had begun: a sweep that it had moved aside goes back."""
    for aside in (hidden / _REPLACED).glob("*"):
        if not (results / aside.name).exists():
            aside.rename(results / aside.name)
    if hidden.exists():
        shutil.rmtree(hidden)
