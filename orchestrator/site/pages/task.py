"""The page of each task: what is asked, what may be changed, who passes it, and its contents over time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import polars as pl

from orchestrator.analysis.units import Unit
from orchestrator.errors import InputError
from orchestrator.paths import TASKS
from orchestrator.plan.task import Task, list_tasks, load_task
from orchestrator.site import entities, links
from orchestrator.site.output import Page
from orchestrator.site.source import Source


def pages(source: Source) -> Iterator[Page]:
    known = set(list_tasks(TASKS))
    of: dict[str, list[Unit]] = defaultdict(list)
    for unit in source.units:
        of[links.bare_task(unit.first.task)].append(unit)
    for name, units in sorted(of.items()):
        task = _task(name) if name in known else None
        context = partial(_context, source, name, units, task)
        here = task.content_hash if task else ""
        yield Page(links.task_page(name), "task.html", context, (*entities.inputs(source, units), here))


def _task(name: str) -> Task | None:
    """The task as this cab has it; None where it cannot be read."""
    try:
        return load_task(TASKS, name)
    except InputError:
        return None


def _context(source: Source, name: str, units: Sequence[Unit], task: Task | None) -> dict[str, Any]:
    found = []
    for part in entities.parts(units):
        by_content: dict[str, list[Unit]] = defaultdict(list)
        for unit in part.units:
            by_content[unit.first.task].append(unit)
        grids = [
            (content, entities.grid(of, entities.cli_head, entities.model_head, source))
            for content, of in sorted(by_content.items())
        ]
        found.append((part, entities.by_task(part), grids))
    return {
        "name": name,
        "category": links.category_of(name),
        "task": task,
        "parts": found,
        "contents": _contents(source, name),
        "hidden_tests": _hidden_tests(task),
    }


def _hidden_tests(task: Task | None) -> tuple[int, int] | None:
    """How many hidden tests must begin to pass, and how many must go on passing; None without a proof."""
    proof = task.proof if task else None
    return None if proof is None else (len(proof.fail_to_pass), len(proof.pass_to_pass))


def _contents(source: Source, name: str) -> list[dict[str, Any]]:
    """Every content of the task that cells ran on, in the order in which they came."""
    return (
        source.frame.filter(pl.col("task") == name)
        .group_by("task_content_hash")
        .agg(
            pl.len().alias("cells"),
            pl.col("started_at").min().dt.strftime("%Y-%m-%d").alias("first"),
            pl.col("started_at").max().dt.strftime("%Y-%m-%d").alias("last"),
            pl.col("sweep_id").unique().sort().alias("sweeps"),
        )
        .sort("first", "task_content_hash", nulls_last=True)
        .to_dicts()
    )
