"""The page of each model: which builds answered, at what price and with which settings, and how it did."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from orchestrator.analysis.units import Unit
from orchestrator.errors import StoreError
from orchestrator.site import entities, links
from orchestrator.site.addresses import sayable
from orchestrator.site.output import Page
from orchestrator.site.source import Source
from orchestrator.store.cells import read_cell
from orchestrator.store.names import NO_MODEL
from orchestrator.store.record import SweepRecord
from scorers.evidence import Price


@dataclass(frozen=True)
class Build:
    """A build as its answers named it: in how many cells, and on which days first and last (UTC)."""

    name: str
    cells: int
    first: str
    last: str


@dataclass(frozen=True)
class Asked:
    """What one sweep asked of a model: where, by which wire, with which settings, at which price or why none.

    `sent` are the distinct sets of settings that went upstream, by CLI, of one record each; `endpoint` and
    `wire` are None of a model that cab itself serves, `digest` is that of a local model's file.
    """

    sweep: str
    endpoint: str | None
    wire: str | None
    settings: Mapping[str, Any]
    price: Price | str | None
    digest: str | None
    sent: Sequence[tuple[str, Mapping[str, Any]]]


def pages(source: Source) -> Iterator[Page]:
    of: dict[str, list[Unit]] = defaultdict(list)
    for unit in source.units:
        if unit.first.model != NO_MODEL:
            of[unit.first.model].append(unit)
    for model, units in sorted(of.items()):
        sweeps = sorted({cell.sweep_id for unit in units for cell in unit.cells})
        parts = [(part, entities.beside(source, part, "model", model)) for part in entities.parts(units)]
        context = partial(_context, source, model, sweeps, parts)
        given = (repr([source.plans[sweep] for sweep in sweeps]), *(repr(tables) for _, tables in parts))
        yield Page(links.model_page(model), "model.html", context, (*given, *entities.inputs(source, units)))


def _context(
    source: Source,
    model: str,
    sweeps: Sequence[str],
    parts: Sequence[tuple[entities.Part, Sequence[entities.Rates]]],
) -> dict[str, Any]:
    found = []
    for part, tables in parts:
        grid = entities.grid(part.units, entities.task_head, entities.cli_head, source)
        found.append((part, [*tables, entities.by_category(part)], grid))
    return {
        "model": model,
        "parts": found,
        "builds": _builds(source, model),
        "asked": [_asked(source, source.sweeps[sweep], model) for sweep in sweeps],
    }


def _builds(source: Source, model: str) -> list[Build]:
    """In the order in which they came."""
    days: dict[str, list[str]] = defaultdict(list)
    rows = source.frame.select("model", "model_builds", "started_at").iter_rows()
    for of, builds, started in rows:
        for build in builds or () if of == model else ():
            days[build].append(f"{started:%Y-%m-%d}")
    found = [Build(name, len(seen), min(seen), max(seen)) for name, seen in days.items()]
    return sorted(found, key=lambda build: (build.first, build.last, build.name))


def _asked(source: Source, sweep: SweepRecord, model: str) -> Asked:
    spec: Any = sweep.spec or {}
    entry: Mapping[str, Any] = next((it for it in spec.get("models", ()) if it["id"] == model), {})
    endpoint = spec.get("endpoints", {}).get(entry.get("endpoint") or "")
    return Asked(
        sweep=sweep.sweep_id,
        endpoint=_where(endpoint),
        wire=endpoint["wire"] if endpoint else None,
        settings={name: value for name, value in (entry.get("settings") or {}).items() if value is not None},
        price=sweep.prices.get(model),
        digest=sweep.models.get(model),
        sent=_sent(source, sweep.sweep_id, model),
    )


def _where(endpoint: Mapping[str, Any] | None) -> str | None:
    """The address of an endpoint where that may be said, or the variable that held it."""
    if endpoint is None:
        return None
    address = endpoint["base_url"]
    return sayable(str(address["url"])) if address["url"] else f"the address in {address['env']}"


def _sent(source: Source, sweep: str, model: str) -> list[tuple[str, Mapping[str, Any]]]:
    """What went upstream, by CLI: of the first record of each."""
    firsts: dict[str, str] = {}
    for unit in source.units:
        for cell in unit.cells:
            if (cell.sweep_id, cell.model) == (sweep, model):
                firsts.setdefault(cell.contestant, cell.cell_id)
    found: list[tuple[str, Mapping[str, Any]]] = []
    for cli, cell_id in firsts.items():
        try:
            settings = read_cell(source.cell_dir(cell_id)).identity.generation_settings
        except StoreError:
            continue
        found += [(cli, given) for given in settings]
    return found
