"""The page of a sweep's conditions beside each other: what a prompt carries differs, and nothing else.

Where the sweep belongs to a run of an external benchmark, the run's scorecard beside the results says more
than the cells do: sizes of prompts and patches, the five outcomes, and what may be claimed.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from orchestrator.analysis.cells import NO_CONDITION, Cell
from orchestrator.analysis.conditions import (
    OUTCOMES,
    Agents,
    Attempt,
    Conditions,
    Outcome,
    Pair,
    agents_of,
    by_agent,
    of_conditions,
)
from orchestrator.analysis.differences import PASS_RATE
from orchestrator.analysis.units import units_of
from orchestrator.errors import CabError
from orchestrator.external.results import Scorecard
from orchestrator.external.scorecard import (
    SCORECARD,
    attempts_of,
    claim_in_words,
    conditions_of,
    read_scorecard,
)
from orchestrator.report import differing
from orchestrator.site import entities, links
from orchestrator.site.output import Page, digest_of
from orchestrator.site.render import number, seconds
from orchestrator.site.source import Source

NAMES = {**differing.NAMES, PASS_RATE: "resolved", "prompt_tokens": "tokens of the prompt"}
"""Elsewhere on the site prompt tokens are all input of model calls."""
SHOWN: Mapping[str, Callable[[float | None], str]] = {
    **dict.fromkeys(("prompt_tokens", "input_tokens", "patch_bytes"), lambda it: number(it, 1)),
    "elapsed_s": seconds,
}
"""How means are told; elapsed time brings its unit."""


_MARKS: Mapping[Outcome | None, tuple[str, entities.State]] = {
    "resolved": (entities.MARKS["passed"], "passed"),
    "unresolved": (entities.MARKS["failed"], "failed"),
    "error": ("error", "failed"),
    "empty_patch": ("empty", "failed"),
    "incomplete": (entities.MARKS["uncounted"], "uncounted"),
    None: (entities.MARKS["uncounted"], "uncounted"),
}
_Boxes = Mapping[tuple[str, str], tuple[entities.Box, ...]]
"""By task and condition, one box for each run."""


@dataclass(frozen=True)
class Flipped:
    """One task that two conditions differ in, with what came of its runs under each."""

    task: entities.Head
    gained: bool
    a: tuple[entities.Box, ...]
    b: tuple[entities.Box, ...]


@dataclass(frozen=True)
class Shown:
    """One agent's conditions. `claim` is the run's own, or why it is not known; "" where there is no run.
    `part` are the cells; `apart`: the five outcomes are told, which cells alone do not tell apart.
    """

    who: Agents
    claim: str
    apart: bool
    part: entities.Part
    found: Conditions
    grid: entities.Grid
    flips: Mapping[tuple[str, str], tuple[Flipped, ...]]


def pages(source: Source) -> Iterator[Page]:
    of: dict[str, list[Cell]] = defaultdict(list)
    for unit in source.units:
        for cell in unit.cells:
            of[cell.sweep_id].append(cell)
    for sweep_id, cells in sorted(of.items()):
        if any(cell.condition is not None for cell in cells):
            context = partial(_context, source, sweep_id, cells)
            of_cells = digest_of(*(source.told[cell.cell_id] for cell in cells))
            _, claim = _beside(source, sweep_id, cells)
            given = (of_cells, repr(source.plans[sweep_id]), _digest(_scorecard(source, sweep_id)), claim)
            yield Page(links.condition_page(sweep_id), "condition.html", context, given)


def _scorecard(source: Source, sweep_id: str) -> Path:
    """Where the scorecard of a run is whose results directory holds this sweep."""
    return source.roots[sweep_id].parent.parent / SCORECARD


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _context(source: Source, sweep_id: str, cells: Sequence[Cell]) -> dict[str, Any]:
    agents = by_agent(cells)
    card, claim = _beside(source, sweep_id, cells) if len(agents) == 1 else (None, "")
    shown = []
    for who, of_cells in agents.items():
        [part] = entities.parts(units_of([cell for cell in cells if agents_of(cell) == who]))
        if card is not None:
            shown.append(_shown(source, who, claim, True, part, conditions_of(card), attempts_of(card)))
        else:
            found = of_conditions(of_cells, _names(source, sweep_id, of_cells))
            shown.append(_shown(source, who, claim, False, part, found, of_cells))
    return {
        "sweep_id": sweep_id,
        "parts": shown,
        "outcomes": OUTCOMES,
        "names": NAMES,
        "shown": SHOWN,
        "differing": differing,
    }


def _names(source: Source, sweep_id: str, attempts: Sequence[Attempt]) -> list[str]:
    """The conditions that there are, in the order that the sweep asked for them in."""
    asked: Any = (source.sweeps[sweep_id].spec or {}).get("conditions")
    asked = [NO_CONDITION, *(asked or ())]
    found = {attempt.condition for attempt in attempts}
    return [*(name for name in asked if name in found), *sorted(found - {*asked})]


def _beside(source: Source, sweep_id: str, cells: Sequence[Cell]) -> tuple[Scorecard | None, str]:
    """The scorecard of the run whose cells these are, held against it, and its claim in words; None and ""
    where these cells are no run's, None and why where it cannot be read.
    """
    path = _scorecard(source, sweep_id)
    if not path.is_file():
        return None, ""
    try:
        card = read_scorecard(path.parent)
    except CabError as error:
        # A page tells no directory of the machine that it was made on.
        return None, f"no claim: {str(error).replace(f'{path.parent}/', '')}"
    known = {cell.cell_id for cell in cells}
    own = any(result.cell_id in known for result in card.results)
    own = own or (card.run_id == sweep_id and bool(card.claim.doubts))
    return (card, claim_in_words(card.claim)) if own else (None, "")


def _shown(
    source: Source,
    who: Agents,
    claim: str,
    apart: bool,
    part: entities.Part,
    found: Conditions,
    attempts: Sequence[Attempt],
) -> Shown:
    known = {cell.cell_id: cell for unit in part.units for cell in unit.cells}
    boxes: dict[tuple[str, str], tuple[entities.Box, ...]] = defaultdict(tuple)
    tasks: dict[str, entities.Head] = {}
    heads: dict[str, entities.Head] = {}
    for it in sorted(attempts, key=lambda it: (it.task, it.condition, it.run)):
        cell = known.get(it.cell_id or "")
        boxes[it.task, it.condition] += (_box(it, cell, source),)
        if cell is not None:
            tasks[it.task] = entities.Head(it.task, links.task_page(cell.task))
            heads[it.condition] = entities.Head(it.condition, links.cli_page(cell.contestant))
    names = [condition.name for condition in found.conditions]
    columns = tuple(heads.get(name, entities.Head(name, "")) for name in names)
    ordered = sorted({task for task, _ in boxes})
    rows = tuple(
        (tasks.get(task, entities.Head(task, "")), tuple(boxes[task, name] for name in names))
        for task in ordered
    )
    flips = {(pair.a, pair.b): _flipped(pair, tasks, boxes) for pair in found.pairs}
    return Shown(who, claim, apart, part, found, entities.Grid(columns, rows), flips)


def _flipped(pair: Pair, tasks: Mapping[str, entities.Head], boxes: _Boxes) -> tuple[Flipped, ...]:
    return tuple(
        Flipped(
            tasks.get(flip.task, entities.Head(flip.task, "")),
            flip.gained,
            boxes[flip.task, pair.a],
            boxes[flip.task, pair.b],
        )
        for flip in pair.flips
    )


def _box(attempt: Attempt, cell: Cell | None, source: Source) -> entities.Box:
    text, state = _MARKS[attempt.outcome]
    said = "no verdict" if attempt.outcome in (None, "incomplete") else str(attempt.outcome).replace("_", " ")
    page = "" if cell is None else links.cell_page(cell.sweep_id, source.key(cell.cell_id))
    return entities.Box(text, f"run {attempt.run}: {said}", state, page)
