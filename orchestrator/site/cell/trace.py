"""The trace of a cell as a time line: spans in order, each in a lane, with what is known of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from orchestrator.site.cell.bounded import line

MAX_SPANS = 200
MAX_LANES = 4
"""Lanes of one kind: calls that ran at the same time lie below each other, up to this many."""
WIDTH = 1000
"""What a drawing's length stands for, whatever width it is shown at."""
LANE_PX = 18
MAX_VALUE = 300

_LANE_OF = {
    "cell": "cell",
    "container": "container",
    "model_call": "model calls",
    "tool_call": "tool calls",
}
_LANES = ("cell", "stages", "container", "model calls", "tool calls")


class Span(NamedTuple):
    """`start` and `end` are seconds since the cell's start, to the microsecond; `depth` counts from 0, the
    cell itself. `attributes` is one text with a line for each, and `known` their number.

    `x` and `width` are its place in the drawing of `WIDTH`, `lane` which of its lanes from 0 on.
    """

    number: int
    id: str
    parent: str
    kind: str
    name: str
    start: float
    end: float
    depth: int
    failed: bool
    attributes: str
    known: int
    x: float
    width: float
    lane: int

    @property
    def ids(self) -> str:
        """Its own id, and its parent's, as far as it takes to tell them apart."""
        return f"{self.id[:8]} ‹ {self.parent[:8]}" if self.parent else self.id[:8]

    @property
    def begins(self) -> str:
        return f"{self.start:.3f}"

    @property
    def took(self) -> str:
        return f"{self.end - self.start:.3f}"


@dataclass(frozen=True)
class Lane:
    """A row of the drawing; `name` is "" for a further lane of the same kind."""

    name: str


@dataclass(frozen=True)
class Trace:
    """`spans` by start, a parent before its children. `left_out` more are in the cell's file. `started` is
    the whole second since the Unix epoch in which the cell began, None where the first span is not its own.
    """

    spans: Sequence[Span]
    lanes: Sequence[Lane]
    seconds: float
    left_out: int
    started: int | None

    @property
    def height(self) -> int:
        return LANE_PX * len(self.lanes)


def trace(raw: Sequence[Mapping[str, Any]]) -> Trace | None:
    """The time line of stored spans; None where there are none. Of too many the last calls are left out."""
    if not raw:
        return None
    depths = _depths(raw)
    ordered = sorted(raw, key=lambda span: (span["start_unix_ns"], depths[span["span_id"]]))
    shown = _shown(ordered)
    begin = ordered[0]["start_unix_ns"]
    seconds = max((max(span["end_unix_ns"] for span in ordered) - begin) / 1e9, 1e-3)
    rows, lanes = _lanes(shown)
    spans = [_span(number, one, begin, seconds, depths, rows[number]) for number, one in enumerate(shown)]
    started = begin // 10**9 if ordered[0]["kind"] == "cell" else None
    return Trace(spans, lanes, seconds, len(ordered) - len(shown), started)


def _shown(ordered: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Every stage and as many calls, from the first on, as there is room for."""
    if len(ordered) <= MAX_SPANS:
        return ordered
    calls = ("model_call", "tool_call")
    room = MAX_SPANS - sum(span["kind"] not in calls for span in ordered)
    shown = []
    for span in ordered:
        room -= span["kind"] in calls
        if room >= 0 or span["kind"] not in calls:
            shown.append(span)
    return shown[:MAX_SPANS]


def _depths(raw: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """How deep each span lies. A parent that is not there, or a circle of parents, counts as the cell."""
    parents = {span["span_id"]: span.get("parent_id") for span in raw}
    depths: dict[str, int] = {}
    for span_id in parents:
        at, seen = span_id, []
        while at in parents and at not in depths and at not in seen:
            seen.append(at)
            at = parents[at]
        above = depths.get(at, -1)
        for number, one in enumerate(reversed(seen), start=1):
            depths[one] = above + number
    return depths


def _lanes(shown: Sequence[Mapping[str, Any]]) -> tuple[list[int], list[Lane]]:
    """The lane of each span, and the lanes: the first of its kind that is free when it starts."""
    until: dict[str, list[int]] = {}
    places = []
    for span in shown:
        name = _LANE_OF.get(span["kind"], "stages")
        if name == "tool calls" and span["name"] == "applied_plugins":
            # Called a tool call where it was published first; it is a stage.
            name = "container"
        ends = until.setdefault(name, [])
        free = next((at for at, end in enumerate(ends) if end <= span["start_unix_ns"]), len(ends))
        if free == len(ends) and free < MAX_LANES:
            ends.append(0)
        free = min(free, MAX_LANES - 1)
        ends[free] = max(ends[free], span["end_unix_ns"])
        places.append((name, free))
    first: dict[str, int] = {}
    lanes: list[Lane] = []
    for name in _LANES:
        first[name] = len(lanes)
        lanes += [Lane(name if at == 0 else "") for at in range(len(until.get(name, ())))]
    return [first[name] + at for name, at in places], lanes


def _span(
    number: int,
    raw: Mapping[str, Any],
    begin: int,
    seconds: float,
    depths: Mapping[str, int],
    lane: int,
) -> Span:
    start, end = (round((raw[name] - begin) / 1e9, 6) for name in ("start_unix_ns", "end_unix_ns"))
    attributes = raw.get("attributes", {})
    end = max(start, end)
    return Span(
        number=number,
        id=line(str(raw["span_id"]), 32),
        parent=line(str(raw.get("parent_id") or ""), 32),
        kind=line(str(raw["kind"]), 40),
        name=line(str(raw["name"]), 200),
        start=start,
        end=end,
        depth=depths[raw["span_id"]],
        failed=raw.get("status") == "error",
        attributes="\n".join([f"{_name(name)}: {_value(value)}" for name, value in attributes.items()]),
        known=len(attributes),
        x=round(WIDTH * start / seconds, 2),
        width=round(WIDTH * (end - start) / seconds, 2),
        lane=lane,
    )


@lru_cache(maxsize=1024)
def _name(raw: str) -> str:
    return line(raw, 80)


def _value(value: object) -> str:
    kind = type(value)  # as JSON has them
    if kind is str or kind is int:
        return line(str(value), MAX_VALUE)
    if kind is bool:
        return "yes" if value else "no"
    if kind is float:
        return f"{value:.6g}"
    if isinstance(value, list):
        return line(", ".join(map(str, value)), MAX_VALUE) if value else "none"
    return line(str(value), MAX_VALUE)
