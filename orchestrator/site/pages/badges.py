"""A badge and a card for each cell, pair and CLI: what other sites show of this one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from orchestrator.site import links
from orchestrator.site.badge_text import Said, of_cell, of_lines
from orchestrator.site.badges import svg
from orchestrator.site.entities import contestant_name, inputs
from orchestrator.site.output import File, Page
from orchestrator.site.source import Source


def pages(source: Source) -> Iterator[Page | File]:
    for unit in source.units:
        for cell in unit.cells:
            page = links.cell_page(cell.sweep_id, source.key(cell.cell_id))
            said = partial(of_cell, cell)
            label = f"{cell.contestant} × {cell.model} · {cell.task}"
            names = {
                "CLI": cell.contestant,
                "model": cell.model,
                "task": cell.task,
                "sweep": cell.sweep_id,
            }
            yield from _both(page, label, names, said, (cell.record_sha256, cell.task), apart=True)
    yield from _pairs(source)
    yield from _clis(source)


def _pairs(source: Source) -> Iterator[Page | File]:
    of: dict[tuple[str, str], list[str]] = defaultdict(list)
    for unit in source.units:
        of[unit.first.contestant, unit.first.model] += inputs([unit])
    for (cli, model), digests in of.items():
        said = partial(_of_pair, source, cli, model)
        names = {"CLI": cli, "model": model}
        yield from _both(links.pair_page(cli, model), f"{cli} × {model}", names, said, tuple(digests))


def _clis(source: Source) -> Iterator[Page | File]:
    for cli in sorted({unit.first.contestant for unit in source.units}):
        said = partial(_of_cli, source, cli)
        yield from _both(links.cli_page(cli), cli, {"CLI": cli}, said, (source.digest,))


def _both(
    page: str,
    label: str,
    names: Mapping[str, str],
    said: Callable[[], Said],
    inputs: tuple[str, ...],
    *,
    apart: bool = False,
) -> Iterator[Page | File]:
    """The badge and the card of what a page is about. `names` say what it is, each by its kind."""
    yield File(links.badge(page), lambda: svg(said().badge(label)).encode(), inputs, apart)
    yield Page(
        links.embed(page),
        "embed.html",
        lambda: {"about": page, "names": names, "said": said()},
        inputs,
        apart,
    )


def _of_pair(source: Source, cli: str, model: str) -> Said:
    lines = [
        line
        for line in source.summary("pair").lines
        if line.key["model"] == model and contestant_name(line) == cli
    ]
    return of_lines(lines)


def _of_cli(source: Source, cli: str) -> Said:
    """A CLI over what all CLIs attempted: its rates on other tasks would not compare."""
    tables = source.summary("cli").tables
    lines = [line for table in tables for line in table.lines if contestant_name(line) == cli]
    said = of_lines(lines)
    shared = {table.methodology: table.shared_units for table in tables if table.kind == "result"}
    return said if said.claim == "pipeline_only" else replace(said, title=f"{said.title} {_shared(shared)}")


def _shared(units: Mapping[str, int | None]) -> str:
    told = "; ".join(
        f"{count} (model, task) pairs in methodology {name}" for name, count in sorted(units.items())
    )
    return f"Over what every CLI attempted: {told}."
