"""Latency: where the time of a cell went. Every instant belongs to exactly one part, so the parts add up.

Inside the agent's stage a rate-limit wait goes before a model call, a model call before a tool, a tool
before the CLI itself. Overlapping spans of one kind are united, never added twice.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import pairwise
from math import fsum

from scorers.axis import Axis
from scorers.evidence import Evidence, Span, ToolCall

Interval = tuple[float, float]
STAGES = ("queue", "setup", "agent", "collect", "verify", "score")


class Partition(Axis):
    """Milliseconds of each part. `score` includes `collect`. The parts that are not null add up to
    `total_ms`."""

    queue: float | None
    setup: float | None
    rate_limit_wait: float | None
    model: float | None
    tool: float | None
    cli: float | None
    verify: float | None
    score: float | None


class Latency(Axis):
    """Milliseconds. `wall_clock_ms` is setup + agent; `container_active_ms` the agent's stage;
    `model_call_ms` the united time of model calls less rate-limit waits; `active_ms` model + tool + CLI."""

    wall_clock_ms: float | None
    container_active_ms: float | None
    model_call_ms: float | None
    active_ms: float | None
    total_ms: float | None
    partition: Partition


def score(evidence: Evidence) -> Latency:
    """Divide the time from the first stage's start to the last one's end."""
    owned = _timeline(evidence.phases)
    seconds = {stage: _length(owned[stage]) for stage in owned}
    agent = owned.get("agent")
    reasons: dict[str, str] = {}
    inner = None
    if agent is not None and evidence.wire_recorded:
        inner = {name: _length(part) for name, part in _inside_agent(evidence, agent).items()}
    why_inner = "the agent's stage did not run" if agent is None else "the wire was not recorded"
    partition = _partition(seconds, inner, why_inner)
    wall = seconds["setup"] + seconds["agent"] if {"setup", "agent"} <= seconds.keys() else None
    if wall is None:
        reasons["wall_clock_ms"] = "set-up or the agent's stage did not run"
    if agent is None:
        reasons["container_active_ms"] = why_inner
    if inner is None:
        reasons["model_call_ms"] = reasons["active_ms"] = why_inner
    if not owned:
        reasons["total_ms"] = "no stage ran"
    return Latency(
        wall_clock_ms=_ms(wall),
        container_active_ms=_ms(seconds.get("agent")),
        model_call_ms=_ms(inner["model"] if inner else None),
        active_ms=_ms(fsum((inner["model"], inner["tool"], inner["cli"])) if inner else None),
        total_ms=_ms(fsum(seconds.values()) if owned else None),
        partition=partition,
        reasons=reasons,
    )


def stretches(evidence: Evidence) -> dict[str, list[Interval]]:
    """When each part of the partition was, in seconds since the cell's start; what is not known is left out.
    Where the wire was not recorded, the agent's stage is one part, `agent`.
    """
    owned = _timeline(evidence.phases)
    found: dict[str, list[Interval]] = {
        name: owned[name] for name in ("queue", "setup", "agent", "verify") if name in owned
    }
    if closing := [one for name in ("collect", "score") for one in owned.get(name, ())]:
        found["score"] = union(closing)
    if "agent" in found and evidence.wire_recorded:
        found |= _inside_agent(evidence, found.pop("agent"))
    return found


def _partition(seconds: dict[str, float], inner: dict[str, float] | None, why_inner: str) -> Partition:
    reasons = {}
    values: dict[str, float | None] = {name: seconds.get(name) for name in ("queue", "setup", "verify")}
    closing = [seconds[name] for name in ("collect", "score") if name in seconds]
    values["score"] = fsum(closing) if closing else None
    for name, value in values.items():
        if value is None:
            reasons[name] = "this stage did not run"
    for name in ("rate_limit_wait", "model", "tool", "cli"):
        values[name] = inner[name] if inner else None
        if inner is None:
            reasons[name] = why_inner
    return Partition(**{name: _ms(value) for name, value in values.items()}, reasons=reasons)


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000


def _timeline(phases: dict[str, Span]) -> dict[str, list[Interval]]:
    """Each stage's own stretches. Where stages overlap, the one that began last has the instant.

    A gap between two stages goes to the earlier one; after the agent's stage to the later one, since what
    cab does then is not the agent's time.
    """
    spans = {n: (phases[n].start, max(phases[n].start, phases[n].end)) for n in STAGES if n in phases}
    owned: dict[str, list[Interval]] = {name: [] for name in spans}
    for start, end in pairwise(sorted({edge for span in spans.values() for edge in span})):
        covering = [name for name, (begin, stop) in spans.items() if begin <= start and end <= stop]
        if covering:
            owner = max(covering, key=lambda name: spans[name][0])
        else:
            owner = max((n for n in spans if spans[n][1] <= start), key=lambda name: spans[name][1])
            if owner == "agent":
                owner = min((n for n in spans if spans[n][0] >= end), key=lambda name: spans[name][0])
        owned[owner].append((start, end))
    return owned


def _inside_agent(evidence: Evidence, agent: list[Interval]) -> dict[str, list[Interval]]:
    """When each part of the agent's stage was."""
    free = union(agent)
    agent_end = free[-1][1] if free else 0.0
    starts = sorted(call.start for call in evidence.calls)
    parts: dict[str, list[Interval]] = {}
    spans = {
        "rate_limit_wait": [(wait.start, wait.end) for call in evidence.calls for wait in call.waits],
        "model": [(call.start, call.end) for call in evidence.calls],
        "tool": [(tool.start, _tool_end(tool, starts, agent_end)) for tool in evidence.tool_calls],
    }
    for name, raw in spans.items():
        rest = subtract(free, union(raw))
        parts[name] = subtract(free, rest)
        free = rest
    parts["cli"] = free
    return parts


def _tool_end(tool: ToolCall, starts: list[float], agent_end: float) -> float:
    """A tool that never answered ran until the next model call, or until the agent ended."""
    if tool.end is not None:
        return tool.end
    following = bisect_left(starts, tool.start)
    return starts[following] if following < len(starts) else agent_end


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Sorted, disjoint intervals that cover the same instants; empty and reversed ones are dropped."""
    merged: list[Interval] = []
    for start, end in sorted(pair for pair in intervals if pair[0] < pair[1]):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def subtract(whole: list[Interval], holes: list[Interval]) -> list[Interval]:
    """What of `whole` is not in `holes`; both sorted and disjoint."""
    left: list[Interval] = []
    first = 0
    for begin, stop in whole:
        at = begin
        while first < len(holes) and holes[first][1] <= begin:
            first += 1
        hole = first
        while hole < len(holes) and holes[hole][0] < stop:
            start, end = holes[hole]
            if start > at:
                left.append((at, start))
            at = max(at, end)
            hole += 1
        if at < stop:
            left.append((at, stop))
    return left


def _length(intervals: list[Interval]) -> float:
    return fsum(end - start for start, end in intervals)
