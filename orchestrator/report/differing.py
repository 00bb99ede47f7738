"""The words for a difference: what may be said of B beside A, how sure that is, and what it would take."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from orchestrator.analysis.differences import PASS_RATE, SWAP, Difference, Shared, Verdict
from orchestrator.analysis.measures import ALL_ALIKE
from orchestrator.report.text import NOT_MEASURED, count, dollars, number, plural, seconds
from orchestrator.stats.paired import POWER

NAMES = {
    PASS_RATE: "pass",
    "composite": "cab-1",
    "tokens": "tokens",
    "tokens_per_solved": "tokens a pass",
    "usd": "cost",
    "usd_per_solved": "cost a pass",
    "wall_s": "wall s",
    "active_s": "agent s",
    "blast": "blast",
    "prompt_tokens": "prompt tokens",
    "input_tokens": "input tokens",
    "patch_bytes": "patch bytes",
    "elapsed_s": "elapsed s",
}
"""What measures are called."""
COLOURS: dict[Verdict, str] = {"better": "green", "worse": "red", "too many lost cells": "yellow"}
DECIDED: tuple[Verdict, ...] = ("better", "worse", "higher", "lower")
"""Verdicts whose sentence names both sides."""
_LARGE = ("prompt_tokens", "input_tokens", "patch_bytes", "elapsed_s")
"""Measures of which thousandths say nothing."""
_CHANCE = f"{POWER:.0%}".replace("%", " %")


def sentence(of: Shared, it: Difference, a: str, b: str, names: Mapping[str, str] = NAMES) -> str:
    """The verdict on one measure of B beside A."""
    name = names[it.measure]
    match it.verdict:
        case "better" | "worse" | "higher" | "lower":
            how = (
                f"{it.method} with paired bootstrap"
                if it.method == SWAP and it.low is not None
                else it.method
            )
            return (
                f"{b} is {it.verdict} than {a} in {name}: {change(it, it.value)} {_spread(it)} "
                f"({how}, {plural(of.tasks, 'task')}, p {p_value(it.p_adjusted)} after Holm)"
            )
        case "no detectable difference":
            return f"no detectable difference in {name}: {_takes(of, it)}"
    return f"no verdict on {name}: {it.reason}"


def _takes(of: Shared, it: Difference) -> str:
    """What it would take to see one."""
    if it.needed is None:
        return f"{change(it, it.value)} {_spread(it)}"
    least = change(it, it.needed.detectable).lstrip("+")
    said = f"{plural(of.tasks, 'task')} at as many runs show {least} or more with a chance of {_CHANCE}"
    if it.needed.tasks is None:
        return f"{said}; none at all was observed"
    more = f"; to see the observed {change(it, it.value)}, about {plural(it.needed.tasks, 'task')}"
    if it.needed.runs is not None:
        return f"{said}{more}, or {plural(it.needed.runs, 'run')} of each of these"
    if max(*of.runs_a, *of.runs_b) > 1 and it.measure == PASS_RATE:
        return f"{said}{more}; no number of runs of these is enough"
    return said + more


def value_of(measure: str, value: float | None) -> str:
    """A value of either side."""
    if value is None:
        return NOT_MEASURED
    show: dict[str, Callable[[float], str]] = {
        "tokens": count,
        "tokens_per_solved": count,
        "usd": dollars,
        "usd_per_solved": dollars,
        "wall_s": lambda it: seconds(it * 1000),
        "active_s": lambda it: seconds(it * 1000),
        **dict.fromkeys(_LARGE, lambda it: number(it, 1)),
    }
    return show.get(measure, number)(value)


def change(it: Difference, value: float | None) -> str:
    """A difference with its sign, or a ratio: `+0.12`, `×0.81`."""
    if value is None:
        return NOT_MEASURED
    if it.kind == "ratio":
        return f"×{value:.2f}"
    return f"{value:+.1f}" if it.measure in _LARGE else f"{value:+.3f}"


def between(it: Difference) -> str:
    """Its 95 % interval."""
    if it.low is None or it.high is None:
        return NOT_MEASURED
    if it.kind == "ratio":
        return f"[{it.low:.2f}, {it.high:.2f}]"
    digits = 1 if it.measure in _LARGE else 2
    return f"[{it.low:+.{digits}f}, {it.high:+.{digits}f}]"


def _spread(it: Difference) -> str:
    return "on every task" if it.reason == ALL_ALIKE else between(it)


def p_value(value: float | None) -> str:
    """To two digits that count; as 1 where it is."""
    if value is None:
        return NOT_MEASURED
    return "<0.0001" if value < 0.0001 else f"{value:.2g}"
