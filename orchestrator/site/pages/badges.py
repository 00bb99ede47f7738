"""A badge and a card for each cell, pair and CLI: what other sites show of this one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from orchestrator.analysis.summary import Line
from orchestrator.site import links
from orchestrator.site.badge_text import Said, of_cell, of_lines
from orchestrator.site.badges import svg
from orchestrator.site.entities import contestant_name
from orchestrator.site.output import File, Page
from orchestrator.site.source import Source


def pages(source: Source) -> Iterator[Page | File]:
    for unit in source.units:
        for cell in unit.cells:
            told = source.told[cell.cell_id]
            page = links.cell_page(cell.sweep_id, source.key(cell.cell_id))
            label = f"{cell.contestant} × {cell.model} · {cell.task}"
            names = {
                "CLI": cell.contestant,
                "model": cell.model,
                "task": cell.task,
                "sweep": cell.sweep_id,
            }
            yield from _both(page, label, names, partial(of_cell, cell), told, apart=True)
    for (cli, model), said in _of_pairs(source).items():
        names = {"CLI": cli, "model": model}
        yield from _of_rate(links.pair_page(cli, model), f"{cli} × {model}", names, said)
    for cli, said in _of_clis(source).items():
        yield from _of_rate(links.cli_page(cli), cli, {"CLI": cli}, said)


def _of_rate(page: str, label: str, names: Mapping[str, str], said: Said) -> Iterator[Page | File]:
    yield from _both(page, label, names, lambda: said, repr(said))


def _both(
    page: str,
    label: str,
    names: Mapping[str, str],
    said: Callable[[], Said],
    told: str,
    *,
    apart: bool = False,
) -> Iterator[Page | File]:
    """The badge and the card of what a page is about. `names` say what it is, each by its kind; `told`
    changes with what is said.
    """
    inputs = (told, *names.values())
    yield File(links.badge(page), lambda: svg(said().badge(label)).encode(), inputs, apart)
    yield Page(
        links.card(page),
        "embed.html",
        lambda: {"about": page, "names": names, "said": said()},
        inputs,
        apart,
    )


def _of_pairs(source: Source) -> dict[tuple[str, str], Said]:
    lines: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for line in source.summary("pair").lines:
        lines[contestant_name(line), line.key["model"]].append(line)
    return {pair: of_lines(of) for pair, of in lines.items()}


def _of_clis(source: Source) -> dict[str, Said]:
    """CLIs over what all CLIs attempted: their rates on other tasks would not compare."""
    tables = source.summary("cli").tables
    shared = _shared({table.methodology: table.shared_units for table in tables if table.kind == "result"})
    lines: dict[str, list[Line]] = defaultdict(list)
    for line in source.summary("cli").lines:
        lines[contestant_name(line)].append(line)
    found = {cli: of_lines(of) for cli, of in lines.items()}
    return {
        cli: said if said.claim == "pipeline_only" else replace(said, title=f"{said.title} {shared}")
        for cli, said in found.items()
    }


def _shared(units: Mapping[str, int | None]) -> str:
    told = "; ".join(
        f"{count} (model, task) pairs in methodology {name}" for name, count in sorted(units.items())
    )
    return f"Over what every CLI attempted: {told}."
