"""Sweeps as nights: the same spec, run again and again, in the order in which they began."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from orchestrator.analysis.cells import Cell, cells_of, versions
from orchestrator.errors import InputError, StoreError
from orchestrator.store.cells import SWEEP, CellStore
from orchestrator.store.frame import load_frame
from orchestrator.store.gated import read_gated
from orchestrator.store.names import CellKey
from orchestrator.store.preflight import incompatible_cells
from orchestrator.store.record import SweepRecord

LAST_GOOD = "last-good"


@dataclass(frozen=True)
class Night:
    """One sweep: its record, its finished cells, and by matrix id the planned cells that were never run, with
    the reason.
    """

    sweep: SweepRecord
    frame: pl.DataFrame
    not_run: dict[str, str] = field(default_factory=dict)

    @property
    def sweep_id(self) -> str:
        return self.sweep.sweep_id

    @property
    def name(self) -> str | None:
        """That of the spec; nights of one name belong together. None of an imported sweep."""
        name = (self.sweep.spec or {}).get("name")
        return name if isinstance(name, str) else None

    @property
    def methodologies(self) -> tuple[str, ...]:
        return versions(self.frame["methodology_version"].unique().to_list())

    @property
    def planned(self) -> list[CellKey]:
        """Every cell of its order, whether it was run or not."""
        return [CellKey.of_id(cell_id)[1] for cell_id in self.sweep.order]


def read_night(root: Path) -> Night:
    """The sweep whose directory is `root`. Raises StoreError."""
    root = root.resolve()
    store = CellStore(root.parent, root.name)
    sweep = store.sweep()
    skipped = (*sweep.skipped, *incompatible_cells(store))
    return Night(
        sweep,
        load_frame(root) if store.index_path.exists() else load_frame([]),
        {CellKey.of_id(cell.cell_id)[1].matrix_id(): cell.reason for cell in skipped},
    )


def sweep_dirs(root: Path) -> list[Path]:
    """`root` where it is a sweep's directory, else those in it. Raises InputError where there is none."""
    if (root / SWEEP).is_file():
        return [root]
    found = sorted(path.parent for path in root.glob(f"*/{SWEEP}"))
    if not found:
        raise InputError(
            "is no sweep and holds none", place=str(root), mend="give a sweep's directory, or one of sweeps"
        )
    return found


def in_order(nights: Iterable[Night]) -> list[Night]:
    """The oldest first."""
    return sorted(nights, key=lambda night: (night.sweep.started_at, night.sweep_id))


def find_baseline(names: Sequence[str], results: Path, candidate: Night) -> list[Night]:
    """The nights that the names mean: sweeps in `results`, directories, or `last-good`, the oldest first.

    `last-good:5` is the newest five sweeps of the candidate's spec in `results` that began before it and
    passed a gate whose verdict was kept; there may be fewer, or none. The candidate itself is left out of a
    directory of sweeps, and refused where it is named. Raises InputError or StoreError.
    """
    found: dict[Path, Night] = {}
    for name in names:
        word, _, count = name.partition(":")
        if word == LAST_GOOD:
            if count and not (count.isdecimal() and int(count)):
                raise InputError(f"{name!r} names no number of nights", mend=f"write {LAST_GOOD}:5")
            found |= _last_good(results, candidate, int(count or 1))
            continue
        roots = _named(name, results)
        nights = {root.resolve(): read_night(root) for root in roots}
        others = {root: night for root, night in nights.items() if not _same(night, candidate)}
        if not others:
            raise InputError(f"{name!r} is the candidate itself", mend="name another sweep as baseline")
        found |= others
    return in_order(found.values())


def cells_by_night(nights: Sequence[Night]) -> list[list[Cell]]:
    """The cells of each night. A task whose files differ between two of them has two names."""
    marked = [
        # Two nights may be copies of one: neither may take the place of the other's cells.
        night.frame.with_columns(
            sweep_id=pl.lit(str(number)), record_sha256=pl.lit(f"{number} ") + pl.col("record_sha256")
        )
        for number, night in enumerate(nights)
    ]
    found: list[list[Cell]] = [[] for _ in nights]
    for cell in cells_of(pl.concat(marked)) if marked else []:
        found[int(cell.sweep_id)].append(cell)
    return found


def _last_good(results: Path, candidate: Night, count: int) -> dict[Path, Night]:
    good = []
    for path in results.glob(f"*/{SWEEP}"):
        kept = read_gated(path.parent)
        if kept is None or not kept.passed or kept.sweep_id != path.parent.name:
            continue
        night = read_night(path.parent)
        before = night.sweep.started_at < candidate.sweep.started_at
        comparable = set(night.methodologies) & set(candidate.methodologies) or not candidate.methodologies
        if before and comparable and night.name == candidate.name and not _same(night, candidate):
            good.append((night.sweep.started_at, path.parent.resolve(), night))
    return {root: night for _, root, night in sorted(good, key=lambda it: it[:2])[-count:]}


def _named(name: str, results: Path) -> list[Path]:
    """The directories that a name of a baseline means."""
    if (results / name / SWEEP).is_file():
        return [results / name]
    if Path(name).is_dir():
        return sweep_dirs(Path(name))
    if "/" in name:
        raise StoreError("there is no such directory", place=name, mend="give a directory of sweeps")
    CellStore(results, name).sweep()
    raise AssertionError("a sweep without a record was read")


def _same(night: Night, other: Night) -> bool:
    """Whether two are one sweep, or copies of it."""
    return night.sweep_id == other.sweep_id and night.frame.equals(other.frame)
