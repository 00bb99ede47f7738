"""Two pairs, CLIs or models beside each other, paired over what both share; chosen in the browser."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import NormalDist
from typing import Any

from orchestrator.analysis.cells import ABOUT
from orchestrator.analysis.units import Unit
from orchestrator.site import links
from orchestrator.site.boards import place_of
from orchestrator.site.output import File, Page, data_file
from orchestrator.site.source import Source
from orchestrator.stats.paired import ALPHA, MIN_TASKS, POWER
from scorers.aggregate import MIN_COVERAGE

DATA = "data/units.js"
_NORMAL = NormalDist()


def pages(source: Source) -> Iterator[Page | File]:
    context = _context(source)
    yield Page(links.COMPARE, "compare.html", lambda: context, (repr(context),))
    yield data_file(DATA, lambda: units_data(source), (source.everything, DATA))


def _context(source: Source) -> dict[str, Any]:
    groups = {(unit.first.kind, unit.first.methodology) for unit in source.units}
    ordered = sorted(groups, key=lambda it: place_of(*it))
    return {
        "groups": [
            (f"{kind}/{methodology}", kind, ABOUT[kind], methodology) for kind, methodology in ordered
        ],
        "data": DATA,
        "constants": {
            "alpha": ALPHA,
            "min-tasks": MIN_TASKS,
            "min-coverage": MIN_COVERAGE,
            "z": _NORMAL.inv_cdf(1 - ALPHA / 2),
            "z-power": _NORMAL.inv_cdf(POWER),
            "power": POWER,
        },
        "min_tasks": MIN_TASKS,
    }


def units_data(source: Source) -> dict[str, Any]:
    """By kind and methodology: the tasks, with their pages, and for each pair what each task came to.

    A pair's `units` are three numbers for each task, in their order: passes, counted runs, and runs that were
    lost to infra errors; all are 0 where it was not attempted.
    """
    grouped: dict[str, list[Unit]] = {}
    for unit in source.units:
        grouped.setdefault(f"{unit.first.kind}/{unit.first.methodology}", []).append(unit)
    return {name: _group(units) for name, units in sorted(grouped.items())}


def _group(units: list[Unit]) -> dict[str, Any]:
    tasks = sorted({_task(unit) for unit in units})
    place = {task: at for at, task in enumerate(tasks)}
    pairs: dict[tuple[str, str], list[int]] = {}
    for unit in units:
        counts = pairs.setdefault((unit.first.contestant, unit.first.model), [0] * 3 * len(tasks))
        at = 3 * place[_task(unit)]
        counts[at : at + 3] = unit.passes, unit.runs, unit.scores.infra
    return {
        "tasks": [[task, links.url(links.task_page(task))] for task in tasks],
        "pairs": [
            {
                "cli": cli,
                "model": model,
                "pages": {
                    "pair": links.url(links.pair_page(cli, model)),
                    "cli": links.url(links.cli_page(cli)),
                    "model": links.url(links.model_page(model)),
                },
                "units": counts,
            }
            for (cli, model), counts in sorted(pairs.items())
        ],
    }


def _task(unit: Unit) -> str:
    return unit.first.task
