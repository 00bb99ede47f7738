"""What pairs can be ordered by: how each number is read off a line, and in which direction it is better."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from orchestrator.analysis.groups import MIN_RUNS
from orchestrator.analysis.measures import Measure
from orchestrator.analysis.standing import Better, Span
from orchestrator.analysis.summary import Line
from orchestrator.site import render
from scorers.aggregate import MIN_COVERAGE


@dataclass(frozen=True)
class Axis:
    """One number of a line. `censored` are its bounds where infra cells leave some, None where none are
    known; `shown` makes text of a value, `plain` the same without its unit, which `head` then names.
    """

    key: str
    name: str
    head: str
    better: Better
    measure: Callable[[Line], Measure]
    shown: Callable[[float | None], str]
    plain: Callable[[float | None], str]
    censored: Callable[[Line], tuple[float, float]] | None = None
    scale: tuple[float, float] | None = None

    def span(self, line: Line) -> Span | None:
        """Between which values it lies; None where it was not measured or has no interval."""
        it = self.measure(line)
        if it.value is None or it.low is None or it.high is None:
            return None
        low, high = self.censored(line) if self.censored else (it.low, it.high)
        return Span(min(it.low, low), max(it.high, high))


def _bare_percent(value: float | None) -> str:
    return render.percent(value).removesuffix(" %")


def _bare_seconds(value: float | None) -> str:
    return render.DASH if value is None else f"{value:.1f}"


def _bare_dollars(value: float | None) -> str:
    return render.dollars(value).removeprefix("$")


def _seconds(key: str, name: str, head: str, measure: Callable[[Line], Measure]) -> Axis:
    return Axis(key, name, head, "lower", measure, render.seconds, _bare_seconds)


AXES = {
    axis.key: axis
    for axis in (
        Axis(
            *("pass", "tasks passed", "pass %", "higher"),
            lambda line: line.pass_rate,
            render.percent,
            _bare_percent,
            lambda line: line.censored,
            (0.0, 1.0),
        ),
        Axis(
            *("composite", "composite cab-1", "cab-1", "higher"),
            lambda line: line.composite,
            render.number,
            render.number,
            lambda line: line.composite_bounds,
            (0.0, 1.0),
        ),
        Axis(
            *("tokens", "tokens for each solved task", "tokens / solved", "lower"),
            lambda line: line.tokens_per_solved,
            render.count,
            render.count,
        ),
        Axis(
            *("usd", "US dollars for each solved task", "$ / solved", "lower"),
            lambda line: line.usd_per_solved,
            render.dollars,
            _bare_dollars,
        ),
        _seconds("wall", "wall-clock time of a task", "wall s", lambda line: line.wall_s),
        _seconds("active", "time of the agent on a task", "active s", lambda line: line.active_s),
        _seconds("model", "time in model calls on a task", "model s", lambda line: line.model_s),
        Axis(
            *("blast", "blast radius, agent's lines", "blast", "lower"),
            lambda line: line.blast,
            render.number,
            render.number,
            None,
            (0.0, 1.0),
        ),
    )
}
"""By key, in the order of tables."""

PASS = AXES["pass"]


def why_unranked(line: Line, units: int, axis: Axis) -> str | None:
    """Why a line has no place among others, None where it has: `units` is what a whole line covers."""
    if line.claim not in ("citable", "unranked"):
        return f"claim: {line.claim.replace('_', ' ')}"
    if (line.coverage or 0) < MIN_COVERAGE:
        return f"coverage {render.percent(line.coverage)}, a place needs {MIN_COVERAGE:.0%}"
    if line.claim == "unranked":
        return f"fewer than {MIN_RUNS} runs of a task"
    if line.units < units:
        return f"{line.units} of {units} tasks"
    it = axis.measure(line)
    return (it.reason or "no interval") if axis.span(line) is None else None
