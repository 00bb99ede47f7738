"""The page of each category: its tasks, and how each pair did on them."""

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
    of: dict[str, list[Unit]] = defaultdict(list)
    for unit in source.units:
        of[links.category_of(unit.first.task)].append(unit)
    for name, units in sorted(of.items()):
        context = partial(_context, name, units)
        yield Page(links.category_page(name), "category.html", context, entities.inputs(source, units))


def _context(name: str, units: Sequence[Unit]) -> dict[str, Any]:
    return {
        "name": name,
        "parts": [
            (part, [entities.by_task(part), entities.of_these_units(part, "Each pair on these tasks")])
            for part in entities.parts(units)
        ],
    }
