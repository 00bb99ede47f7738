"""The page of each pair of CLI and model: its rates, what repeated runs are worth, and every cell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from orchestrator.analysis.units import Unit
from orchestrator.site import entities, links
from orchestrator.site.output import Page
from orchestrator.site.source import Source


def pages(source: Source) -> Iterator[Page]:
    of: dict[tuple[str, str], list[Unit]] = defaultdict(list)
    for unit in source.units:
        of[unit.first.contestant, unit.first.model].append(unit)
    for (cli, model), units in sorted(of.items()):
        context = partial(_context, source, cli, model, units)
        yield Page(links.pair_page(cli, model), "pair.html", context, entities.inputs(units))


def _context(source: Source, cli: str, model: str, units: Sequence[Unit]) -> dict[str, Any]:
    found = []
    for part in entities.parts(units):
        whole, by_category = entities.of_pair(source, part), entities.by_category(part)
        found.append((part, whole, by_category, entities.grid_of_runs(part.units, source)))
    return {"cli": cli, "model": model, "parts": found}
