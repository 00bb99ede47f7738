"""Sweeps as nights: the same spec, run again and again, in the order in which they began."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from orchestrator.analysis.cells import Cell, cells_of, versions
from orchestrator.errors import InputError
from orchestrator.store.cells import SWEEP, CellStore, newest_sweep
from orchestrator.store.chosen import chosen_sweeps
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


def read_night(store: CellStore) -> Night:
    """Raises StoreError."""
    sweep = store.sweep()
    skipped = (*sweep.skipped, *incompatible_cells(store))
    return Night(
        sweep,
        load_frame(store.root) if store.index_path.exists() else load_frame([]),
        {CellKey.of_id(cell.cell_id)[1].matrix_id(): cell.reason for cell in skipped},
    )


def in_order(nights: Iterable[Night]) -> list[Night]:
    """The oldest first."""
    return sorted(nights, key=lambda night: (night.sweep.started_at, night.sweep_id))


def nights_of(names: Sequence[str], results: Path) -> list[Night]:
    """The nights that the names mean, the oldest first: without names those of the newest sweep's spec in
    `results`, of one sweep all of its spec, of several sweeps or a directory of them exactly these.

    Raises InputError or StoreError.
    """
    stores = chosen_sweeps(names or [newest_sweep(results)], results)
    if len(stores) > 1:
        return in_order(map(read_night, stores))
    name = read_night(stores[0]).name
    if name is None:
        return [read_night(stores[0])]
    beside = stores[0].root.parent
    others = (CellStore(beside, path.parent.name) for path in beside.glob(f"*/{SWEEP}"))
    return in_order(night for store in others if (night := read_night(store)).name == name)


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
        nights = {store.root.resolve(): read_night(store) for store in chosen_sweeps([name], results)}
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
    """The newest good nights. One that was compared with a night that had failed begins a new level, which a
    person took: none before it is asked.
    """
    kept = {
        path.parent.name: gated
        for path in results.glob(f"*/{SWEEP}")
        if (gated := read_gated(path.parent)) is not None
    }
    nights = [
        night
        for sweep_id, gated in kept.items()
        if gated.passed and _may_precede(night := read_night(CellStore(results, sweep_id)), candidate)
    ]
    found: dict[Path, Night] = {}
    for night in reversed(in_order(nights)):
        found[(results / night.sweep_id).resolve()] = night
        against = [kept[other] for other in kept[night.sweep_id].baseline if other in kept]
        if len(found) == count or any(not gated.passed for gated in against):
            break
    return found


def _may_precede(night: Night, candidate: Night) -> bool:
    """Whether a night is of the candidate's spec and methodology, and began before it."""
    return (
        night.name == candidate.name
        and night.sweep.started_at < candidate.sweep.started_at
        and (not candidate.methodologies or night.methodologies == candidate.methodologies)
    )


def _same(night: Night, other: Night) -> bool:
    """Whether two are one sweep, or copies of it."""
    return night.sweep_id == other.sweep_id and night.frame.equals(other.frame)
