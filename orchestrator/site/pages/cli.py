"""The page of each CLI, with its stack and condition: what was measured of it, how it is run, how it did."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import polars as pl

from orchestrator.adapter import Adapter, PluginKind
from orchestrator.analysis.units import Unit
from orchestrator.errors import InputError, StoreError
from orchestrator.fleet import Fleet
from orchestrator.site import entities, links
from orchestrator.site.output import Page
from orchestrator.site.source import Source
from orchestrator.store.cells import read_cell
from orchestrator.store.record import CellRecord

KINDS_OF_PLUGIN: tuple[PluginKind, ...] = ("rules", "mcp", "settings", "args")


def pages(source: Source) -> Iterator[Page]:
    fleet = Fleet()
    of: dict[str, list[Unit]] = defaultdict(list)
    for unit in source.units:
        of[unit.first.contestant].append(unit)
    for name, units in sorted(of.items()):
        adapter = fleet.adapter_file(units[0].first.cli)
        declared = hashlib.sha256(adapter.read_bytes()).hexdigest() if adapter.is_file() else ""
        variants = [other for other in sorted(of) if other != name and _bare(other) == units[0].first.cli]
        parts = [(part, entities.beside(source, part, "cli", name)) for part in entities.parts(units)]
        context = partial(_context, source, fleet, name, parts, variants)
        given = (
            declared,
            str(fleet.unavailable.get(units[0].first.cli)),
            *variants,
            *(repr(tables) for _, tables in parts),
        )
        yield Page(links.cli_page(name), "cli.html", context, (*given, *entities.inputs(source, units)))


def _context(
    source: Source,
    fleet: Fleet,
    name: str,
    parts: Sequence[tuple[entities.Part, Sequence[entities.Rates]]],
    variants: Sequence[str],
) -> dict[str, Any]:
    units = [unit for part, _ in parts for unit in part.units]
    first = units[0].first
    return {
        "name": name,
        "cli": first.cli,
        "stack": first.stack,
        "condition": first.condition,
        "variants": variants,
        "adapter": _adapter(fleet, first.cli),
        "unavailable": fleet.unavailable.get(first.cli),
        "kinds_of_plugin": KINDS_OF_PLUGIN,
        "versions": _versions(source, units),
        "parts": [
            (
                part,
                [*tables, entities.by_category(part)],
                entities.grid(part.units, entities.task_head, entities.model_head, source),
            )
            for part, tables in parts
        ],
    }


def _bare(contestant: str) -> str:
    return contestant.partition("@")[0].partition("+")[0]


def _adapter(fleet: Fleet, cli: str) -> Adapter | None:
    """How this cab runs the CLI; None where it does not know it, as with imported ones."""
    try:
        return fleet.adapter(cli)
    except InputError:
        return None


def _versions(source: Source, units: Sequence[Unit]) -> list[Mapping[str, Any]]:
    """What was measured, each version in each image: since when, in how many cells, and in the words of one
    of its records how it differs from the CLI as shipped.
    """
    ids = [cell.cell_id for unit in units for cell in unit.cells]
    columns = ("cli_version", "image_digest")
    rows = (
        source.frame.filter(pl.col("cell_id").is_in(ids))
        .group_by(columns)
        .agg(
            pl.len().alias("cells"),
            pl.col("cell_id").min().alias("cell_id"),
            pl.col("started_at").min().dt.strftime("%Y-%m-%d").alias("first"),
            pl.col("started_at").max().dt.strftime("%Y-%m-%d").alias("last"),
            pl.col("sweep_id").unique().sort().alias("sweeps"),
        )
        .sort(columns, nulls_last=True)
    )
    return [row | {"record": _record(source, row["cell_id"])} for row in rows.to_dicts()]


def _record(source: Source, cell_id: str) -> CellRecord | None:
    """One record; None where its file is not there."""
    try:
        return read_cell(source.cell_dir(cell_id))
    except StoreError:
        return None
