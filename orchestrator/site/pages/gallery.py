"""Recordings of all CLIs, a few of each, and the player that they need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from orchestrator.site import links
from orchestrator.site.cell.cast import Cast, cast
from orchestrator.site.cell.neighbours import result_of
from orchestrator.site.cell.stored import CAST
from orchestrator.site.output import File, Page
from orchestrator.site.pages.cell import recording_path
from orchestrator.site.player import PLAYER, player_files
from orchestrator.site.source import Source
from orchestrator.store.cells import read_cell
from orchestrator.store.names import CellKey

MOST = 6
"""Recordings of one CLI in one section."""

_COLUMNS = ("cell_id", "sweep_id", "claim", "passed", "counted", "outcome")


@dataclass(frozen=True)
class _Shown:
    """A cell that the gallery has a card of."""

    cell_id: str
    sweep_id: str
    claim: str
    passed: float | None
    counted: bool
    outcome: str
    key: CellKey
    directory: Path


def pages(source: Source) -> Iterator[Page | File]:
    chosen = _chosen(source)
    context = partial(_context, chosen)
    yield Page(links.GALLERY, "gallery.html", context, tuple(source.told[one.cell_id] for one in chosen))
    if chosen:
        yield from player_files()


def _chosen(source: Source) -> list[_Shown]:
    """The first cells with a recording of each CLI, pipeline checks apart: by newest sweep, then by names."""
    newest = sorted(source.sweeps, key=lambda name: (source.sweeps[name].started_at, name), reverse=True)
    order = pl.DataFrame({"sweep_id": newest, "_age": range(len(newest))})
    frame = source.frame.join(order, on="sweep_id").sort(
        "cli", "_age", "task", "model", "stack", "condition", "run", nulls_last=False
    )
    amounts: dict[tuple[str, bool], int] = {}
    chosen = []
    for row in frame.select(_COLUMNS).iter_rows(named=True):
        key, pipeline = source.key(row["cell_id"]), row["claim"] == "pipeline_only"
        if amounts.get((key.cli, pipeline), 0) >= MOST:
            continue
        directory = source.cell_dir(row["cell_id"])
        if _has_recording(directory):
            amounts[key.cli, pipeline] = amounts.get((key.cli, pipeline), 0) + 1
            chosen.append(_Shown(**row, key=key, directory=directory))
    return chosen


def _has_recording(directory: Path) -> bool:
    try:
        return (directory / CAST).stat().st_size > 0
    except FileNotFoundError:
        return False


def _context(chosen: Sequence[_Shown]) -> dict[str, Any]:
    sections = []
    for pipeline, title in ((False, "Of models"), (True, "Of scripted models")):
        cards: dict[str, list[dict[str, Any]]] = {}
        for one in chosen:
            if (one.claim == "pipeline_only") != pipeline:
                continue
            found = cast(one.directory, read_cell(one.directory).recording)
            if found is not None:
                cards.setdefault(one.key.cli, []).append(_card(one, found))
        if cards:
            name = "pipeline-checks" if pipeline else "results"
            sections.append({"id": name, "title": title, "pipeline": pipeline, "clis": sorted(cards.items())})
    return {"sections": sections, "most": MOST, "player": PLAYER}


def _card(one: _Shown, found: Cast) -> dict[str, Any]:
    result, words = result_of(one.passed, one.counted, one.outcome)
    page = links.cell_page(one.sweep_id, one.key)
    return {
        "page": page,
        "file": recording_path(page),
        "cli": links.contestant(one.key),
        "model": one.key.model,
        "task": one.key.task,
        "run": one.key.run,
        "claim": one.claim,
        "result": result,
        "words": words,
        "seconds": found.seconds,
        "size": found.size,
        "columns": found.columns,
        "rows": found.rows,
        "how": found.how,
    }
