"""The page of each sweep: what was asked and in which order, what was left out and why, what came of it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from orchestrator.analysis.units import units_of
from orchestrator.report.spending import budget_of, changes, spent
from orchestrator.run.budget import Budget
from orchestrator.site import entities, links
from orchestrator.site.addresses import sayable
from orchestrator.site.output import File, Page, digest_of
from orchestrator.site.source import Source
from orchestrator.store.cells import SWEEP, CellStore
from orchestrator.store.endpoints import read_windows
from orchestrator.store.files import store_errors
from orchestrator.store.preflight import incompatible_cells, pair_of, read_preflight
from orchestrator.store.record import SkippedCell, SweepRecord

SHOWN = 25
"""Cells of the order that the page lists; its record has all of them."""


@dataclass(frozen=True)
class LeftOut:
    """Cells that were not run for one reason, with their pairs."""

    reason: str
    cells: int
    pairs: tuple[str, ...]


@dataclass(frozen=True)
class Spent:
    """What the finished cells and the handshakes stated. `unknown` cells stated no tokens, `unpriced` have no
    cost; `budget` is what the sweep was started with, None where it had none, and `budgets` say under which
    other ones later calls ran cells.
    """

    tokens: int
    unknown: int
    usd: float
    unpriced: int
    attempts: int
    budget: Budget | None
    budgets: list[str]

    @property
    def of_budget(self) -> str:
        """What of the budget is used: `200 of 500 tokens used`."""
        return "none at the start" if self.budget is None else spent(self.budget)


def pages(source: Source) -> Iterator[Page | File]:
    for name, sweep in source.sweeps.items():
        cells = source.frame.filter(pl.col("sweep_id") == name)
        of_cells = digest_of(*(source.told[cell_id] for cell_id in cells["cell_id"]))
        given = (of_cells, repr(source.plans[name]))
        yield Page(links.sweep_page(name), "sweep.html", partial(_context, source, sweep, cells), given)
        yield File(links.sweep_record(name), _record(source.roots[name] / SWEEP))


def _context(source: Source, sweep: SweepRecord, cells: pl.DataFrame) -> dict[str, Any]:
    store = CellStore(source.roots[sweep.sweep_id].parent, sweep.sweep_id)
    refused = incompatible_cells(store)
    return {
        "sweep": sweep,
        "description": str((sweep.spec or {}).get("description") or ""),
        "spec": None if sweep.spec is None else json.dumps(_without_nulls(_published(sweep.spec)), indent=1),
        "planned": len(sweep.order),
        "finished": len(cells),
        "missing": max(0, len(sweep.order) - len(cells) - len(refused)),
        "refused": len(refused),
        "outcomes": sorted(cells.group_by("outcome").len().iter_rows()),
        "ended": cells["ended_at"].max(),
        "left_out": left_out([*sweep.skipped, *refused]),
        "windows": read_windows(store.root),
        "spent": _spent(sweep, store, cells),
        "order": sweep.order[:SHOWN],
        "parts": [
            (part, entities.of_these_units(part, "Each pair in this sweep"))
            for part in entities.parts(units_of(cells))
        ],
    }


def _record(path: Path) -> bytes:
    """The record of a sweep as it is published: as it is, but for what `addresses` leaves out."""
    with store_errors(path):
        raw = path.read_bytes()
    stored = json.loads(raw)  # read as a record before
    spec = stored.get("spec")
    if spec is None or _published(spec) == spec:
        return raw
    whole = {**stored, "spec": _published(spec)}
    return json.dumps(whole, indent=1, ensure_ascii=False).encode() + b"\n"


def _published(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A spec without addresses of endpoints that name machines; the endpoints' names stay."""
    endpoints = spec.get("endpoints")
    if not endpoints:
        return dict(spec)
    return {**spec, "endpoints": {name: _addressed(one) for name, one in endpoints.items()}}


def _addressed(endpoint: Mapping[str, Any]) -> dict[str, Any]:
    address = endpoint.get("base_url")
    if isinstance(address, str):
        return {**endpoint, "base_url": sayable(address)}
    if isinstance(address, Mapping) and address.get("url"):
        return {**endpoint, "base_url": {**address, "url": sayable(str(address["url"]))}}
    return dict(endpoint)


def _without_nulls(spec: Mapping[str, Any]) -> Any:
    """A spec as one would have written it: what is null, or empty, was not asked for."""
    if isinstance(spec, Mapping):
        return {
            name: _without_nulls(value) for name, value in spec.items() if value is not None and value != {}
        }
    return [_without_nulls(value) for value in spec] if isinstance(spec, list) else spec


def left_out(cells: Iterable[SkippedCell]) -> list[LeftOut]:
    """By reason, each pair once."""
    found: dict[str, list[str]] = defaultdict(list)
    for cell in cells:
        found[cell.reason].append(" × ".join(pair_of(cell.cell_id)))
    return [LeftOut(reason, len(of), tuple(sorted(set(of)))) for reason, of in sorted(found.items())]


def _spent(sweep: SweepRecord, store: CellStore, cells: pl.DataFrame) -> Spent:
    handshakes = read_preflight(store.root)
    return Spent(
        tokens=int(cells["total_tokens"].sum()) + handshakes.known_tokens,
        unknown=cells["total_tokens"].null_count(),
        usd=float(cells["cost_usd"].sum()) + handshakes.known_usd,
        unpriced=cells["cost_usd"].null_count(),
        attempts=int(cells["attempts"].sum()),
        budget=budget_of(sweep, store),
        budgets=changes(sweep),
    )
