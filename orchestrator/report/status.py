"""What a runner has under way, as another terminal asks for it."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.console import Console

from orchestrator.gateway.evidence import normalise_usage
from orchestrator.report.columns import Column, fit
from orchestrator.report.text import NOT_MEASURED, clock, count, plural, stage_in_words
from orchestrator.store.running import Runner, UnderWay
from scorers.evidence import Usage


def print_runner(runner: Runner, out: Console) -> None:
    """Print who runs a sweep and its cells under way, the longest first; of a dead one, that it is dead."""
    if not runner.process.alive:
        left = f"; what is lost: {plural(len(runner.cells), 'cell')} under way" if runner.cells else ""
        out.print(f"its runner, process {runner.process.pid}, has died{left}")
        return
    cells = sorted(runner.cells, key=lambda cell: cell.since or 0)
    stages = Counter(_stage(cell) for cell in cells)
    said = ", ".join(f"{amount} in {stage}" for stage, amount in stages.items()) or "none at the moment"
    now = time.time()
    columns = [
        Column("for", [_for(cell, now) for cell in cells]),
        Column("stage", [_stage(cell) for cell in cells], right=False),
        Column("calls", [count(len(cell.calls)) for cell in cells], worth=1),
        Column("tokens", [count(_tokens(cell.calls)) for cell in cells], worth=2),
        Column("cell", [cell.key.matrix_id() for cell in cells], right=False, least=24),
    ]
    table, _ = fit(columns, f"under way, by process {runner.process.pid}: {said}", out)
    out.print(table)


def as_data(runner: Runner) -> dict[str, Any]:
    """The same as data. Times are seconds; tokens are of the calls that have ended, None where none told."""
    now = time.time()
    return {
        "pid": runner.process.pid,
        "alive": runner.process.alive,
        "under_way": [
            {
                "cell": cell.key.matrix_id(),
                "stage": cell.stage,
                "elapsed_s": None if cell.since is None else max(0.0, now - cell.since),
                "model_calls": len(cell.calls),
                "tokens": _tokens(cell.calls),
            }
            for cell in runner.cells
        ],
    }


def _stage(cell: UnderWay) -> str:
    return stage_in_words(cell.stage) if cell.stage else "starting"


def _for(cell: UnderWay, now: float) -> str:
    return NOT_MEASURED if cell.since is None else clock(max(0.0, now - cell.since))


def _tokens(calls: Sequence[bytes]) -> int | None:
    """Tokens of the calls that have ended and told them."""
    told = [usage for line in calls if (usage := _usage(line))]
    return sum(usage.input + usage.output for usage in told) if told else None


def _usage(line: bytes) -> Usage | None:
    try:
        call = json.loads(line)
        return normalise_usage(call["wire"], call["usage_raw"])
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
