"""The cells of one sweep on disk: written atomically and durably, finished once, found again after any crash.

The life of a cell, and what `open` makes of a crash after each step:

1. `.staging/<token>.json`, the owner file, then `.staging/<token>/`    -> both go, and it runs again
2. evidence is written into it                                          -> the same
3. `cell.json` is renamed into place in it: *the cell is finished*      -> steps 4 to 6 are taken
4. the directory is renamed to `cells/…` (a replaced one moves into it) -> steps 5 and 6 are taken
5. one line is appended to `index.jsonl`                                -> a torn one is written anew
6. the owner file is removed

So whatever a crash interrupted has an owner file left, and opening costs what was under way, not what is
finished. Each step is on the disk before the next begins, so that this holds for a power cut too.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Self

from orchestrator.errors import InputError, NewerThanCab, StoreError
from orchestrator.nearest import nearest
from orchestrator.paths import cab_command, resume_command
from orchestrator.store.files import (
    make_dirs,
    store_errors,
    sync_dir,
    sync_tree,
    temporary_of,
    write_all,
    write_durably,
)
from orchestrator.store.index import INDEX, IndexEntry, entry_of, read_index, whole_lines
from orchestrator.store.names import CellKey, check_name
from orchestrator.store.record import CellRecord, SweepRecord, parse, to_json
from orchestrator.store.running import LOCK, STAGING, Owner, Process, lock_holder

CELL = "cell.json"
SWEEP = "sweep.json"
CELLS = "cells"
_REPLACED = ".replaced"
_SWEEPS_NAMED = 5
_NO_SWEEP = "run `cab sweep run sweeps/free.yaml`"


@dataclass(frozen=True)
class Staging:
    """A cell under way: `path` is its directory, `owner` the file that says whose it is."""

    key: CellKey
    path: Path
    owner: Path


def newest_sweep(results_dir: Path) -> str:
    """The id of the sweep that was started last. Raises StoreError when there is none."""
    started = _sweeps(results_dir)
    if not started:
        raise StoreError(
            "holds no sweep",
            place=str(results_dir),
            mend=f"{_NO_SWEEP}, or give --results",
        )
    return max(started)[1]


def _sweeps(results_dir: Path) -> list[tuple[float, str]]:
    """When each sweep was started (seconds since the epoch), and its id."""
    return [(path.stat().st_mtime, path.parent.name) for path in results_dir.glob(f"*/{SWEEP}")]


def find_cell(results_dir: Path, cell: str) -> Path:
    """The directory of a finished cell, by its id or its path. Raises StoreError when there is none."""
    if (Path(cell) / CELL).is_file():
        return Path(cell)
    sweep_id = cell.partition("/")[0]
    store = CellStore(results_dir, sweep_id)
    entries = store.finished()
    entry = entries.get(cell) or entries.get(f"{cell}#run1")
    if entry is None:
        thing = f"no finished cell {cell!r}"
        if not (store.root / SWEEP).is_file():
            # Perhaps an id without its sweep, as `--only` takes it and the cells under way are listed.
            sweep_id = newest_sweep(results_dir)
            entries = CellStore(results_dir, sweep_id).finished()
            raise StoreError(
                thing, place=str(results_dir), mend=_meant(f"{sweep_id}/{cell}", entries, results_dir)
            )
        raise StoreError(thing, place=str(store.root), mend=_meant(cell, entries, results_dir))
    return store.cell_dir_of(entry)


def _meant(cell: str, entries: Iterable[str], results_dir: Path) -> str:
    """The nearest finished cell of a sweep, or where its cells are listed."""
    look = cab_command("sweep", "status", cell.partition("/")[0], results=results_dir)
    return nearest(cell, entries, otherwise=f"see `{look}`")


def read_cell(cell_dir: Path) -> CellRecord:
    """The record of a finished cell. Raises StoreError."""
    path = cell_dir / CELL
    with store_errors(path):
        raw = path.read_bytes()
    return parse(CellRecord, raw, place=str(path))


class CellStore:
    """The directory of one sweep.

    Reading needs no lock. Writing needs `create` or `open`, which take the sweep's lock until `close`;
    several threads may write. Every method raises StoreError for what the file system refuses.
    """

    def __init__(self, results_dir: Path, sweep_id: str) -> None:
        if "/" in check_name(sweep_id, "sweep id"):
            raise InputError(f"sweep id {sweep_id!r} holds a '/'")
        self.sweep_id = sweep_id
        self.root = results_dir / sweep_id
        self.index_path = self.root / INDEX
        self._staging_dir = self.root / STAGING
        self._lock_fd: int | None = None
        self._index_fd: int | None = None
        self._entries: dict[str, IndexEntry] | None = None
        self._writing = threading.Lock()
        self._mine: set[Path] = set()

    # Opening and closing

    def create(self, sweep: SweepRecord) -> None:
        """Make the sweep's directory, take its lock and write `sweep.json`.

        A sweep that is there is replaced as long as no cell of it is finished, and refused from then on.
        """
        with store_errors(self.root):
            make_dirs(self.root)
            with self._locked():
                self._mend()
                if self._entries:
                    raise StoreError(
                        "this sweep exists", place=str(self.root), mend=f"run `{resume_command(self.root)}`"
                    )
                self.write_sweep(sweep)

    def open(self) -> SweepRecord:
        """Take the lock of a sweep that is there, and mend what a crash left behind."""
        sweep = self.sweep()
        with store_errors(self.root), self._locked():
            self._mend()
        return sweep

    def close(self) -> None:
        """Give the lock back. Closing twice is closing once."""
        if self._lock_fd is not None:
            # A runner that died is known by having left its name there.
            os.ftruncate(self._lock_fd, 0)
        for fd in (self._index_fd, self._lock_fd):
            if fd is not None:
                os.close(fd)
        self._index_fd = self._lock_fd = self._entries = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Reading

    def exists(self) -> bool:
        """Whether this sweep was started."""
        return (self.root / SWEEP).exists()

    def sweep(self) -> SweepRecord:
        path = self.root / SWEEP
        if not path.exists():
            raise StoreError("there is no such sweep", place=str(self.root), mend=self._other_sweeps())
        with store_errors(path):
            sweep = parse(SweepRecord, path.read_bytes(), place=str(path))
        if sweep.sweep_id != self.sweep_id:
            mend = "give the directory its sweep's name"
            raise StoreError(f"is the sweep {sweep.sweep_id!r}", place=str(path), mend=mend)
        return sweep

    def _other_sweeps(self) -> str:
        """Which sweep may have been meant: the nearest name, else the newest ones."""
        names = [name for _, name in sorted(_sweeps(self.root.parent), reverse=True)]
        newest = f"known: {', '.join(names[:_SWEEPS_NAMED])}"
        return nearest(self.sweep_id, names, otherwise=newest if names else _NO_SWEEP)

    def cell_dir(self, key: CellKey) -> Path:
        return self.root / f"{CELLS}/{key.folder()}"

    def cell_dir_of(self, entry: IndexEntry) -> Path:
        return self.cell_dir(
            CellKey(entry.cli, entry.model, entry.task, entry.run, entry.stack, entry.condition)
        )

    def record(self, key: CellKey) -> CellRecord:
        return read_cell(self.cell_dir(key))

    def finished(self) -> dict[str, IndexEntry]:
        """Finished cells by id, from the index alone; whoever holds the lock has read it once."""
        if self._entries is not None:
            with self._writing:
                return dict(self._entries)
        with store_errors(self.index_path):
            return read_index(self.index_path)

    # Writing

    def write_sweep(self, sweep: SweepRecord) -> None:
        """Write `sweep.json`, whole or not at all."""
        with store_errors(self.root / SWEEP):
            write_durably(self.root / SWEEP, to_json(sweep))

    def staging(self, key: CellKey) -> Staging:
        """A new empty directory for a cell under way."""
        with store_errors(self._staging_dir):
            owner = self._claim(key)
            path = owner.with_suffix("")
            path.mkdir()
        return Staging(key, path, owner)

    def note_stage(self, staging: Staging, stage: str) -> None:
        """Note for watchers that a stage of a cell under way begins; nothing waits for it or fails by it."""
        with suppress(OSError), staging.owner.open("ab", buffering=0) as owner:
            owner.write(f"{stage}\n".encode())

    def discard(self, staging: Staging) -> None:
        """Remove a cell under way. One with a record is finished, and is kept for `open` to place."""
        if (staging.path / CELL).exists():
            return
        with store_errors(staging.path):
            shutil.rmtree(staging.path)
            self._release(staging.owner)

    def commit(self, staging: Staging, record: CellRecord, *, replace: bool = False) -> IndexEntry:
        """Finish a cell: write its record last, move it into place, index it.

        Refuses to take the place of a finished cell unless told to `replace` it.
        """
        if record.cell_id != staging.key.cell_id(self.sweep_id):
            raise StoreError(f"is staged for {staging.key}, not {record.cell_id}", place=str(staging.path))
        raw = to_json(record)
        entry = entry_of(record, raw)
        with store_errors(staging.path):
            sync_tree(staging.path)
            with self._writing:
                if not replace and (final := self.cell_dir(staging.key)).exists():
                    raise StoreError(
                        "this cell is finished", place=str(final), mend="replace it, or leave it"
                    )
                write_durably(staging.path / CELL, raw)
                sync_dir(self._staging_dir)
                self._place(staging.path, staging.key)
                self._append(entry)
            self._settle(staging.key, staging.owner)
        return entry

    def rewrite(self, record: CellRecord) -> IndexEntry:
        """Give a finished cell another record, its evidence as it was: what scoring again does."""
        key, raw = record.identity.key, to_json(record)
        entry = entry_of(record, raw)
        with store_errors(self.cell_dir(key)):
            owner = self._claim(key)
            with self._writing:
                sync_dir(self._staging_dir)
                write_durably(self.cell_dir(key) / CELL, raw)
                self._append(entry)
            self._settle(key, owner)
        return entry

    # Mending

    def _mend(self) -> None:
        """Open the index and mend what a crash left behind."""
        self._entries = self._repair_index(self._open_index())
        self.reconcile()
        self.clean_dead_staging()

    def reconcile(self) -> list[str]:
        """Take the last steps of cells that a dead runner had finished; the ids that were not indexed."""
        indexed = self.finished()
        found = []
        for owner, claimed in self._dead():
            staged = owner.with_suffix("")
            if (staged / CELL).exists():
                key = read_cell(staged).identity.key
                self._place(staged, key)
            elif claimed is None or staged.exists() or not (self.cell_dir(claimed) / CELL).exists():
                continue
            else:
                key = claimed
            entry = self._entry(self.cell_dir(key))
            if indexed.get(entry.cell_id) != entry:
                self._append(entry)
                found.append(entry.cell_id)
            self._settle(key, owner)
        return found

    def clean_dead_staging(self) -> int:
        """Remove what dead runners left unfinished; how many cells that was. Call it after `reconcile`."""
        count = 0
        for owner, _ in self._dead():
            staged = owner.with_suffix("")
            if staged.exists():
                shutil.rmtree(staged)
                count += 1
            self._release(owner)
        return count

    def rebuild_index(self) -> int:
        """Write the index anew from the records, in order of their end; how many cells it holds."""
        with store_errors(self.index_path), self._writing:
            entries = sorted(map(self._entry, self._cell_dirs()), key=lambda it: (it.ended_at, it.cell_id))
            write_durably(self.index_path, b"".join(entry.line() for entry in entries))
            if self._index_fd is not None:
                os.close(self._index_fd)
                self._open_index()
                self._entries = {entry.cell_id: entry for entry in entries}
        return len(entries)

    # Steps

    def _place(self, staged: Path, key: CellKey) -> None:
        final = self.cell_dir(key)
        make_dirs(final.parent)
        if final.exists():
            final.rename(staged / _REPLACED)
        staged.rename(final)
        sync_dir(final.parent)
        sync_dir(self._staging_dir)

    def _append(self, entry: IndexEntry) -> None:
        """Append one line with one write. One that does not fit is taken back; the next `open` writes it."""
        if self._index_fd is None or self._entries is None:
            raise StoreError("this sweep is not open for writing", place=str(self.root), mend="open it first")
        line, size = entry.line(), os.fstat(self._index_fd).st_size
        try:
            if os.write(self._index_fd, line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            os.ftruncate(self._index_fd, size)
            raise
        os.fsync(self._index_fd)
        self._entries[entry.cell_id] = entry

    def _settle(self, key: CellKey, owner: Path) -> None:
        """Remove what only an unfinished commit needs."""
        replaced = self.cell_dir(key) / _REPLACED
        if replaced.exists():
            shutil.rmtree(replaced)
        temporary_of(self.cell_dir(key) / CELL).unlink(missing_ok=True)
        self._release(owner)

    def _claim(self, key: CellKey) -> Path:
        """A new owner file: which process works on which cell."""
        make_dirs(self._staging_dir)
        owner = self._staging_dir / f"{secrets.token_hex(8)}.json"
        self._mine.add(owner)
        fd = os.open(owner, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            write_all(fd, Owner.first_line(key))
            os.fsync(fd)
        finally:
            os.close(fd)
        return owner

    def _release(self, owner: Path) -> None:
        owner.unlink(missing_ok=True)
        self._mine.discard(owner)

    def _dead(self) -> Iterator[tuple[Path, CellKey | None]]:
        """Owner files (also missing ones, of directories without) that belong to no living runner."""
        if not self._staging_dir.is_dir():
            return
        for owner in sorted({path.with_suffix(".json") for path in self._staging_dir.iterdir()}):
            if owner in self._mine:
                continue
            said = Owner.read(owner)
            # Under the lock, what this process staged before it opened the sweep again is as good as dead.
            if said is None or said.process.pid == os.getpid() or not said.process.alive:
                yield owner, said.key if said else None

    def _cell_dirs(self) -> Iterator[Path]:
        cells = self.root / CELLS
        for path in sorted(cells.glob("*/*/*/run*")):
            if (path / CELL).exists():
                CellKey.from_path(PurePosixPath(path.relative_to(cells)))
                yield path

    def _entry(self, cell_dir: Path) -> IndexEntry:
        raw = (cell_dir / CELL).read_bytes()
        return entry_of(parse(CellRecord, raw, place=str(cell_dir / CELL)), raw)

    def _open_index(self) -> int:
        self._index_fd = os.open(self.index_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        sync_dir(self.root)
        return self._index_fd

    def _repair_index(self, index_fd: int) -> dict[str, IndexEntry]:
        """Cut a torn last line off; rebuild an index that is lost, damaged or an older cab's. The entries it
        then has.
        """
        whole = len(whole_lines(self.index_path))
        if whole != os.fstat(index_fd).st_size:
            os.ftruncate(index_fd, whole)
            os.fsync(index_fd)
        try:
            entries = read_index(self.index_path)
            whole_index = bool(entries) and all(entry.complete for entry in entries.values())
            if whole_index or next(self._cell_dirs(), None) is None:
                return entries
        except NewerThanCab:
            raise
        except StoreError:
            pass  # damaged: the records have it all
        self.rebuild_index()
        return read_index(self.index_path)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Take the lock, and give it back only when the body fails."""
        self._take_lock()
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _take_lock(self) -> None:
        path = self.root / LOCK
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            process = Process.this()
            os.ftruncate(fd, 0)
            write_all(fd, f"{process.pid} {process.start}\n".encode())
        except BlockingIOError:
            os.close(fd)
            holder = lock_holder(path)
            raise StoreError(
                f"process {holder.pid if holder else 'unknown'} is running this sweep",
                place=str(path),
                mend="wait for it, or end it",
            ) from None
        except OSError:
            os.close(fd)
            raise
        self._lock_fd = fd
