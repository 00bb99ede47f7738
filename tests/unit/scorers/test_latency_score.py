from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scorer_evidence import PHASES, call, evidence, tool

from scorers import latency
from scorers.evidence import Evidence, Span
from scorers.latency import Interval, subtract, union

PARTS = ("queue", "setup", "rate_limit_wait", "model", "tool", "cli", "verify", "score")


def parts(found: latency.Latency) -> dict[str, float | None]:
    return {name: getattr(found.partition, name) for name in PARTS}


def test_each_instant_belongs_to_one_part() -> None:
    found = latency.score(
        evidence(
            calls=[
                call(0, 4, 10, waits=[Span(start=5, end=7)]),
                call(1, 9, 12),  # overlaps the first: united, not added
            ],
            tool_calls=[tool(start=11, end=15), tool(start=14, end=16)],
        )
    )
    assert parts(found) == {
        "queue": 1000,
        "setup": 2000,
        "rate_limit_wait": 2000,
        "model": 6000,
        "tool": 4000,
        "cli": 8000,
        "verify": 4000,
        "score": 2000,
    }
    assert (found.wall_clock_ms, found.container_active_ms, found.model_call_ms) == (22000, 20000, 6000)
    assert (found.active_ms, found.total_ms) == (18000, 29000)


def test_a_gap_is_charged_to_cab_and_never_to_the_agent() -> None:
    phases = {
        "setup": Span(start=0, end=1),
        "agent": Span(start=2, end=5),
        "collect": Span(start=7, end=8),
        "verify": Span(start=9, end=10),
    }
    found = latency.score(evidence(phases=phases, calls=[]))
    assert parts(found) == {
        "queue": None,
        "setup": 2000,
        "rate_limit_wait": 0,
        "model": 0,
        "tool": 0,
        "cli": 3000,
        "verify": 1000,
        "score": 4000,
    }
    assert found.partition.reasons["queue"] == "this stage did not run"


def test_a_tool_that_never_answered_ran_until_the_next_call_or_the_end() -> None:
    stuck = tool(start=10, end=None, result=None)
    assert parts(latency.score(evidence(tool_calls=[stuck])))["tool"] == 13000
    again = evidence(calls=[call(0, 4, 6), call(1, 12, 14)], tool_calls=[stuck])
    assert parts(latency.score(again))["tool"] == 2000


def test_without_a_wire_the_agents_time_is_not_divided() -> None:
    found = latency.score(evidence(wire_recorded=False))
    assert (found.partition.model, found.partition.cli, found.active_ms) == (None, None, None)
    assert found.wall_clock_ms == 22000


def test_a_cell_that_ended_before_the_agent_is_null_there() -> None:
    found = latency.score(evidence(phases={"queue": Span(start=0, end=1), "setup": Span(start=1, end=2)}))
    assert (found.wall_clock_ms, found.container_active_ms, found.active_ms) == (None, None, None)
    assert (found.total_ms, found.partition.queue, found.partition.cli) == (2000, 1000, None)


moments = st.floats(min_value=-10, max_value=200, allow_nan=False)
intervals = st.lists(st.tuples(moments, moments), max_size=12)


@st.composite
def cells(draw: st.DrawFn) -> Evidence:
    edges = draw(st.lists(moments, min_size=12, max_size=12))
    if draw(st.booleans()):  # as cells are; else stages overlap, and end before they begin
        edges.sort()
    kept = draw(st.sets(st.sampled_from(sorted(PHASES)), min_size=1))
    phases = {
        name: Span(start=edges[2 * i], end=edges[2 * i + 1])
        for i, name in enumerate(latency.STAGES)
        if name in kept
    }
    waits = [Span(start=a, end=b) for a, b in draw(intervals)]
    calls = [call(i, a, b, waits=waits if i == 0 else []) for i, (a, b) in enumerate(draw(intervals))]
    tools = [tool(start=a, end=draw(st.sampled_from([b, None]))) for a, b in draw(intervals)]
    fields: dict[str, Any] = {"phases": phases, "calls": calls, "tool_calls": tools}
    return evidence(**fields)


@given(cells())
def test_the_parts_add_up_to_the_whole(cell: Evidence) -> None:
    found = latency.score(cell)
    spans = cell.phases.values()
    whole = max(max(span.start, span.end) for span in spans) - min(span.start for span in spans)
    known = [value for value in parts(found).values() if value is not None]
    assert all(value >= 0 for value in known)
    assert math.fsum(known) == pytest.approx(whole * 1000, abs=1e-6)
    assert found.total_ms == pytest.approx(whole * 1000, abs=1e-6)
    inner = [getattr(found.partition, name) for name in ("rate_limit_wait", "model", "tool", "cli")]
    if "agent" in cell.phases:
        assert math.fsum(inner) == pytest.approx(found.container_active_ms, abs=1e-6)
        assert math.fsum(inner[1:]) == pytest.approx(found.active_ms, abs=1e-6)
    else:
        assert inner == [None] * 4


@given(intervals, intervals)
def test_union_and_subtract_are_sets(first: list[Interval], second: list[Interval]) -> None:
    whole, holes = union(first), union(second)
    left = subtract(whole, holes)
    assert all(a[1] < b[0] for a, b in pairwise(whole))
    points = {(a + b) / 2 for a, b in [*whole, *holes, *left]} | {
        edge for pair in first + second for edge in pair
    }

    def inside(pairs: list[Interval], x: float) -> bool:
        return any(a < x < b for a, b in pairs)

    edges = {edge for pair in [*whole, *holes, *left] for edge in pair}
    for x in points - edges:
        assert inside(whole, x) == inside(first, x) or any(x in pair for pair in first)
        assert inside(left, x) == (inside(whole, x) and not inside(holes, x))
