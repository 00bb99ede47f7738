"""The recording of a cell: how it came about, how long it is, whether it was cut."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator.adapter import Recording
from orchestrator.site.cell.bounded import line
from orchestrator.site.cell.stored import CAST
from orchestrator.store.files import store_errors

HOW: Mapping[Recording | None, str] = {
    "pty": "what the CLI's terminal showed, at the times it was shown",
    "rendered": "the CLI's events as its adapter shows them, at the times they came: it draws no terminal",
    "plain": "the CLI's output on a pipe as it is, at the times it came",
    None: "the CLI's output, at the times it came",
}
_END = 1 << 16


@dataclass(frozen=True)
class Cast:
    """`seconds` is the time of the last event; `cut` is None where nothing was left out. `started` is the
    whole second since the Unix epoch in which its time begins, None where it says none.
    """

    how: str
    columns: int
    rows: int
    seconds: float
    size: int
    cut: str | None
    started: int | None


def cast(directory: Path, recording: Recording | None) -> Cast | None:
    """What is to be said of a cell's recording; None where there is none, or nothing in it.

    Read from its first line and its end alone: a recording may have megabytes.
    """
    path = directory / CAST
    if not path.is_file():
        return None
    with store_errors(path), path.open("rb") as file:
        header = file.readline(_END)
        size = file.seek(0, 2)
        file.seek(max(len(header), size - _END))
        ends = file.read().splitlines()
    try:
        said = json.loads(header)
        columns, rows = (min(max(int(said[name]), 1), 1000) for name in ("width", "height"))
    except (ValueError, KeyError, TypeError):
        return None
    events = [event for event in map(_event, ends[-8:]) if event]
    if not events:
        return None
    last = events[-1]
    cut = next((line(event[2], 120) for event in reversed(events) if event[1] == "m"), None)
    started = said.get("timestamp")
    started = started if isinstance(started, int) else None
    return Cast(HOW[recording], columns, rows, max(0.0, last[0]), size, cut, started)


def _event(raw: bytes) -> tuple[float, str, str] | None:
    try:
        at, kind, text = json.loads(raw)
    except (ValueError, TypeError):
        return None
    ok = isinstance(at, int | float) and isinstance(kind, str) and isinstance(text, str)
    return (float(at), kind, text) if ok else None
