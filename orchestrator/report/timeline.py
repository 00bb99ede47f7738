"""Where the time of a cell went: a line for each part, drawn when it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from orchestrator.report.columns import Column, fit
from orchestrator.report.text import NOT_MEASURED, safe_line, seconds
from scorers.evidence import Evidence
from scorers.latency import Interval, stretches

_LEAST, _MOST = 30, 72
_NEVER_RUN = ("queue",)
"""Stages that this version of cab has not; records of others may."""
PART_NAMES = {
    "rate_limit_wait": "agent: rate limit",
    "model": "agent: model",
    "tool": "agent: tools",
    "cli": "agent: CLI",
    "score": "collect, score",
}
_FULL, _SOME = "█", "▏"


def print_timeline(latency: Mapping[str, Any], evidence: Evidence, out: Console) -> None:
    """The parts of the time, which add up to the whole, each with a bar that lies where the part was."""
    parts, total = latency.get("partition") or {}, latency.get("total_ms") or 0
    reasons = parts.get("reasons") or {}
    names = [
        name
        for name in parts
        if name != "reasons" and (parts[name] or (name in reasons and name not in _NEVER_RUN))
    ]
    if not names:
        return
    labels = [PART_NAMES.get(name, name) for name in names]
    # Beside the bar stand the longest name, seconds, share, and a space after each.
    width = min(_MOST, max(_LEAST, out.width - max(map(len, labels)) - 16))
    when, whole = stretches(evidence), _whole(evidence)
    columns = [
        Column("part", labels, right=False),
        Column("s", [seconds(parts[name]) for name in names]),
        Column("share", [_share(parts[name], total) for name in names]),
        Column(
            _scale(whole, width),
            [bar(when.get(name, ()), whole, width) or _why(reasons, name) for name in names],
            right=False,
            least=_LEAST,
        ),
    ]
    table, _ = fit(columns, f"where the time went: {seconds(total)} s", out)
    out.print(table)


def bar(parts: Sequence[Interval], whole: Interval, width: int) -> str:
    """`width` characters for the whole time: full where most of it was a part's, a sliver where some was."""
    begin, length = whole[0], whole[1] - whole[0]
    if length <= 0 or not parts:
        return ""
    line = ""
    for column in range(width):
        start, end = (begin + length * at / width for at in (column, column + 1))
        covered = sum(max(0.0, min(end, stop) - max(start, since)) for since, stop in parts)
        line += _FULL if covered >= (end - start) / 2 else _SOME if covered > 0 else " "
    return line.rstrip()


def _whole(evidence: Evidence) -> Interval:
    """From the first stage's start to the last one's end."""
    phases = evidence.phases.values()
    return (
        min((phase.start for phase in phases), default=0.0),
        max((phase.end for phase in phases), default=0.0),
    )


def _scale(whole: Interval, width: int) -> str:
    """The head of the bars: when the first column begins and the last one ends."""
    end = f"{whole[1]:.1f} s"
    return f"{whole[0]:.0f}{end:>{width - 1}}"


def _why(reasons: Mapping[str, Any], name: str) -> str:
    """Why a part has no bar."""
    return safe_line(str(reasons.get(name, "")))


def _share(part: float | None, total: float) -> str:
    return NOT_MEASURED if part is None or not total else f"{100 * part / total:.0f}%"
