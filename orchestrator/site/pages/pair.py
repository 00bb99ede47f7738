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
        parts = [(part, entities.of_pair(source, part)) for part in entities.parts(units)]
        context = partial(_context, source, cli, model, parts)
        inputs = (*entities.inputs(source, units), *(repr(whole) for _, whole in parts))
        yield Page(links.pair_page(cli, model), "pair.html", context, inputs)


def _context(
    source: Source, cli: str, model: str, parts: Sequence[tuple[entities.Part, entities.Rates]]
) -> dict[str, Any]:
    found = []
    for part, whole in parts:
        by_category = entities.by_category(part)
        found.append((part, whole, by_category, entities.grid_of_runs(part.units, source)))
    return {"cli": cli, "model": model, "parts": found}
