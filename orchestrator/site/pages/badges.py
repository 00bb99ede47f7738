"""A badge and a card for each cell, pair and CLI: what other sites show of this one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from orchestrator.analysis.cells import Cell
from orchestrator.analysis.summary import Line
from orchestrator.site import links
from orchestrator.site.badge_text import Said, of_cell, of_lines
from orchestrator.site.badges import svg
from orchestrator.site.boards import contestant
from orchestrator.site.entities import inputs
from orchestrator.site.output import File, Page
from orchestrator.site.source import Source


def pages(source: Source) -> Iterator[Page | File]:
    for unit in source.units:
        for cell in unit.cells:
            page = links.cell_page(cell.sweep_id, source.key(cell.cell_id))
            said = partial(of_cell, cell)
            label = f"{cell.row.task}"
            name = {"CLI": cell.contestant, "model": cell.model, "task": cell.row.task, "sweep": cell.sweep_id}
            yield from _both(page, label, name, said, (cell.record_sha256, cell.row.task))
    yield from _pairs(source)
    yield from _clis(source)


def _pairs(source: Source) -> Iterator[Page | File]:
    of: dict[tuple[str, str], list[str]] = defaultdict(list)
    for unit in source.units:
        of[unit.first.contestant, unit.first.model] += inputs([unit])
    for (cli, model), digests in of.items():
        said = partial(_of_pair, source, cli, model)
        name = {"CLI": cli, "model": model}
        yield from _both(links.pair_page(cli, model), f"{cli} × {model}", name, said, tuple(digests))


def _clis(source: Source) -> Iterator[Page | File]:
    for cli in sorted({unit.first.contestant for unit in source.units}):
        said = partial(_of_cli, source, cli)
        yield from _both(links.cli_page(cli), cli, {"CLI": cli}, said, (source.digest,))
"""


def _both(page, label, name, said, given):
"""
