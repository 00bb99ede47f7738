"""The results that a site is made of, read once."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import polars as pl

from orchestrator.analysis.cells import category_of
from orchestrator.analysis.summary import By, Summary, summarise
from orchestrator.analysis.units import Unit, units_of
from orchestrator.errors import InputError, StoreError
from orchestrator.run.provenance import Provenance
from orchestrator.site.output import digest_of
from orchestrator.site.snapshots import Snapshot
from orchestrator.store.cells import CELL, CELLS, SWEEP, CellStore
from orchestrator.store.endpoints import ENDPOINTS
from orchestrator.store.evidence import load_facts
from orchestrator.store.files import store_errors
from orchestrator.store.frame import load_frame
from orchestrator.store.index import INDEX
from orchestrator.store.names import CellKey
from orchestrator.store.preflight import PREFLIGHT, incompatible_cells
from orchestrator.store.record import SkippedCell, SweepRecord

_ORDER = ("methodology_version", "cli", "stack", "model", "task", "condition", "sweep_id", "run")


@dataclass(frozen=True)
class Source:
    """`frame` has one row for each finished cell, sorted by name; the columns are `store.frame.SCHEMA`'s.

    `sweeps` are the records of all sweeps by id, in the order of their ids, and `roots` their directories.
    `base_url` is where the site will be found, ending in `/`; None where that is not known. `snapshots` are
    those that the site's folder keeps, `snapshot` is the name of the one that is being made.
    """

    frame: pl.DataFrame
    sweeps: Mapping[str, SweepRecord]
    roots: Mapping[str, Path]
    cab: Provenance
    base_url: str | None = None
    snapshots: tuple[Snapshot, ...] = ()
    snapshot: str | None = None
    _summaries: dict[tuple[By, str | None], Summary] = field(default_factory=dict, repr=False)

    @classmethod
    def read(
        cls, results: Sequence[Path], *, base_url: str | None = None, snapshots: tuple[Snapshot, ...] = ()
    ) -> Source:
        """Read all sweeps below the given directories, each a sweep's or one of sweeps.

        Raises InputError where one is not there, two sweeps have one id or no cell is finished, StoreError
        where something is damaged.
        """
        ordered = sweeps_of(results)
        frame = load_frame(list(ordered.values())).sort(_ORDER, nulls_last=True) if ordered else None
        if frame is None or frame.is_empty():
            raise InputError(
                "there is no finished cell",
                place=", ".join(map(str, results)),
                mend="give directories of sweeps, or run `cab sweep run sweeps/free.yaml`",
            )
        return cls(
            frame=frame,
            sweeps={name: CellStore(root.parent, name).sweep() for name, root in ordered.items()},
            roots=ordered,
            cab=Provenance.read(),
            base_url=base_url,
            snapshots=snapshots,
        )

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of `sums`: a digest of all results."""
        return hashlib.sha256(self.sums).hexdigest()

    @cached_property
    def sums(self) -> bytes:
        """A line of `sha256sum` for each record of a sweep or a cell, by path below what holds the sweeps."""
        found = {
            f"{name}/{file}": digest
            for name, records in self.plans.items()
            for file, digest in records.items()
        }
        for cell_id, sweep_id, digest in self.frame.select(
            "cell_id", "sweep_id", "record_sha256"
        ).iter_rows():
            found[f"{sweep_id}/{CELLS}/{self.key(cell_id).folder()}/{CELL}"] = digest
        return "".join(f"{found[path]}  {path}\n" for path in sorted(found)).encode()

    @cached_property
    def plans(self) -> dict[str, dict[str, str]]:
        """The digest of each record of a sweep as a whole, by sweep and file."""
        return {
            name: {
                file: _sha256(root / file)
                for file in (SWEEP, PREFLIGHT, ENDPOINTS)
                if (root / file).is_file()
            }
            for name, root in self.roots.items()
        }

    @cached_property
    def told(self) -> dict[str, str]:
        """By cell, a digest of what tables tell of it: its line of the index with all its numbers, and what
        other cells decide, which is how its task is called and whether its verdict waits for theirs.
        """
        lines = dict(zip(self.frame["cell_id"], self.frame.write_ndjson().splitlines(), strict=True))
        return {
            cell.cell_id: digest_of(lines[cell.cell_id], cell.task, str(cell.unjudged))
            for unit in self.units
            for cell in unit.cells
        }

    @cached_property
    def everything(self) -> str:
        """A digest of what tables tell of all cells and sweeps."""
        return digest_of(self.digest, *self.told.values())

    def summary(self, by: By, scope: str | None = None) -> Summary:
        """The numbers of each `by`, of all tasks or of those of one of `scopes`; reckoned once."""
        found = self._summaries.get((by, scope))
        if found is None:
            tasks = None if scope is None else self.scopes[scope]
            units = self.units if tasks is None else [it for it in self.units if it.first.task_name in tasks]
            skipped = [
                it for it in self.skipped if tasks is None or CellKey.of_id(it.cell_id)[1].task in tasks
            ]
            found = summarise(units, by, skipped=skipped)
            self._summaries[by, scope] = found
        return found

    @cached_property
    def units(self) -> list[Unit]:
        """What was run once or several times, by name."""
        return units_of(self.frame)

    @cached_property
    def skipped(self) -> list[SkippedCell]:
        """Cells that plans left out or whose CLI and model cannot work together, with the reason."""
        found: list[SkippedCell] = []
        for name, record in self.sweeps.items():
            found += record.skipped
            found += incompatible_cells(self._stores[name])
        return found

    @cached_property
    def scopes(self) -> dict[str, frozenset[str]]:
        """Kinds of work, `category/<name>` and `language/<name>`, with the names of their tasks."""
        found: dict[str, set[str]] = defaultdict(set)
        for task in self.frame["task"].unique():
            found[f"category/{category_of(task)}"].add(task)
            if (language := self.languages.get(task)) is not None:
                found[f"language/{language}"].add(task)
        return {name: frozenset(found[name]) for name in sorted(found)}

    @cached_property
    def languages(self) -> dict[str, str]:
        """The language of each task of which a cell's evidence tells it; that of imported ones does not."""
        ran_here = self.frame.filter(pl.col("claim") != "imported")
        first = ran_here.unique("task", keep="first", maintain_order=True)
        found = {}
        for task, cell_id in first.select("task", "cell_id").iter_rows():
            with suppress(StoreError):
                found[task] = load_facts(self.cell_dir(cell_id)).language
        return found

    @cached_property
    def methodologies(self) -> tuple[str, ...]:
        """The methodology versions of the cells, by name; rates never mix two of them."""
        return tuple(sorted(self.frame["methodology_version"].unique()))

    def cell_dir(self, cell_id: str) -> Path:
        """The directory of a finished cell: `cell.json` and its evidence."""
        return self._stores[cell_id.partition("/")[0]].cell_dir(self.key(cell_id))

    def key(self, cell_id: str) -> CellKey:
        """What a cell is, of its id."""
        return self._keys[cell_id]

    @cached_property
    def _stores(self) -> dict[str, CellStore]:
        return {sweep_id: CellStore(root.parent, sweep_id) for sweep_id, root in self.roots.items()}

    @cached_property
    def _keys(self) -> dict[str, CellKey]:
        columns = ("cell_id", "cli", "model", "task", "run", "stack", "condition")
        rows = self.frame.select(columns).iter_rows()
        return {row[0]: CellKey(*row[1:]) for row in rows}


def sweeps_of(results: Sequence[Path]) -> dict[str, Path]:
    """The directories of all sweeps at or below the given ones, by id. Raises InputError as `Source.read`."""
    roots: dict[str, Path] = {}
    for given in results:
        for root in _sweeps(given):
            if roots.setdefault(root.name, root).resolve() != root.resolve():
                raise InputError(
                    f"two sweeps are called {root.name}",
                    place=f"{roots[root.name]} and {root}",
                    mend="leave one of them out",
                )
    return {name: roots[name] for name in sorted(roots)}


def _sha256(path: Path) -> str:
    with store_errors(path):
        return hashlib.sha256(path.read_bytes()).hexdigest()


def _sweeps(given: Path) -> Iterator[Path]:
    """The directories of sweeps at or below a directory, by name."""
    whole = given.absolute()  # "." has no name of its own
    if (whole / SWEEP).is_file() or (whole / INDEX).is_file():
        yield whole
        return
    if not whole.is_dir():
        raise InputError("there is no such directory", place=str(given), mend="give a results directory")
    yield from sorted(path.parent for path in whole.glob(f"*/{SWEEP}"))
