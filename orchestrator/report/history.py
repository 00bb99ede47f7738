"""Past nights in a terminal: pass rates as sparklines, changes of level, flaky tasks, and what was changed
when.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from rich.console import Console

from orchestrator.analysis.history import History, MixedTask, PairHistory, Point
from orchestrator.report.columns import Column, fit
from orchestrator.report.gate import difference_in_words
from orchestrator.report.text import NOT_MEASURED, console, count, plural, print_json, safe_line

BARS = "▁▂▃▄▅▆▇█"
NO_NIGHT = "·"
_WIDEST = 60
"""Nights of a sparkline: the last ones."""
_TASKS = 15
_CHANGES = 10


def print_history(found: History, *, as_json: bool) -> None:
    """On stdout."""
    if as_json:
        print_json(asdict(found))
        return
    out = console()
    ends = " to ".join(dict.fromkeys((found.nights[0], found.nights[-1])))
    out.print(safe_line(f"{plural(len(found.nights), 'night')}: {ends}"), soft_wrap=True)
    for kind, title in (
        ("result", "pairs of models"),
        ("", "scripted models and baselines: checks, not results"),
    ):
        pairs = [pair for pair in found.pairs if (pair.kind == "result") is (kind == "result")]
        if pairs:
            out.print()
            _print_pairs(pairs, title, out)
    _print_shifts(found, out)
    _print_tasks(found, out)
    if found.builds:
        out.print("\nmodel builds that changed:")
        for span in found.builds:
            nights = span.first if span.nights == 1 else f"{span.first} to {span.last}"
            line = f"- {span.model}: {', '.join(span.builds)} on {plural(span.nights, 'night')}, {nights}"
            out.print(safe_line(line), soft_wrap=True)
    _print_changed(found, out)
    for note in found.notes:
        out.print(safe_line(note), soft_wrap=True)


def sparkline(points: Sequence[Point | None]) -> str:
    """A bar for each night from 0 to 100 %, a dot where there is no rate."""
    rates = [point.pass_rate.value if point else None for point in points[-_WIDEST:]]
    return "".join(NO_NIGHT if rate is None else BARS[min(7, int(rate * 8))] for rate in rates)


def _print_pairs(pairs: Sequence[PairHistory], title: str, out: Console) -> None:
    last = [next((point for point in reversed(pair.points) if point), None) for pair in pairs]
    columns = [
        Column("pair", [safe_line(pair.pair) for pair in pairs], right=False, least=24),
        Column("pass rate, 0 to 100 %", [sparkline(pair.points) for pair in pairs], right=False),
        Column("last", [_rate(point) for point in last]),
        Column("95 %", [_between(point) for point in last], worth=3),
        Column("tasks", [count(point.tasks if point else None) for point in last], worth=1),
        Column(
            "lost cells",
            [count(sum(point.infra for point in pair.points if point)) for pair in pairs],
            worth=2,
        ),
        Column("change of level", [_shift(pair) for pair in pairs], right=False, worth=4),
    ]
    table, _ = fit(columns, title, out)
    out.print(table)


def _rate(point: Point | None) -> str:
    return NOT_MEASURED if point is None or point.pass_rate.value is None else _percent(point.pass_rate.value)


def _between(point: Point | None) -> str:
    if point is None or point.pass_rate.low is None or point.pass_rate.high is None:
        return NOT_MEASURED
    return f"[{_percent(point.pass_rate.low)}, {_percent(point.pass_rate.high)}]"


def _shift(pair: PairHistory) -> str:
    if pair.shift is None:
        return NOT_MEASURED
    if not pair.shift.significant:
        return f"none seen (p {pair.shift.p_holm:.2f})"
    return f"{_percent(pair.shift.before)} → {_percent(pair.shift.after)} since {pair.shift.since}"


def _print_shifts(found: History, out: Console) -> None:
    """What else changed with each change of level that is significant, and why some were not tested."""
    if untested := {pair.untested for pair in found.pairs if pair.untested}:
        out.print(f"{NOT_MEASURED} no change of level is tested with {' or '.join(sorted(untested))}")
    for pair in found.pairs:
        shift = pair.shift
        if shift is None or not shift.significant:
            continue
        also = "; ".join(map(difference_in_words, shift.differences)) or "nothing else that cab knows of"
        line = f"{pair.pair} changed with {shift.since} (p {shift.p_holm:.4f}); on that night changed: {also}"
        out.print(safe_line(line, 1000), soft_wrap=True)


def _print_tasks(found: History, out: Console) -> None:
    """The tasks that are the likeliest to be flaky."""
    flaky = [task for task in found.mixed if task.flaky]
    out.print(
        f"\n{plural(len(flaky), 'flaky task')} and {plural(len(found.mixed) - len(flaky), 'other')} "
        f"with mixed results under the same pins, of {count(found.tested_tasks)} tested"
    )
    shown: Sequence[MixedTask] = flaky[:_TASKS]
    if not shown:
        return
    columns = [
        Column("pair", [safe_line(task.pair) for task in shown], right=False, least=20),
        Column("task", [safe_line(task.task) for task in shown], right=False, least=20),
        Column("passes", [f"{count(task.passes)} of {count(task.runs)}" for task in shown]),
        Column("nights", [count(task.nights) for task in shown], worth=1),
        Column("two runs differ", [_percent(task.differ) for task in shown]),
        Column("of one night", [_maybe(task.differ_within) for task in shown], worth=2),
        Column("p, Holm", [f"{task.p_holm:.4f}" for task in shown], worth=3),
    ]
    table, _ = fit(columns, "", out)
    out.print(table)
    if len(flaky) > len(shown):
        out.print(f"and {len(flaky) - len(shown)} more: see --json")


def _print_changed(found: History, out: Console) -> None:
    """What was not as on the night before, model builds aside, which stand above."""
    changed = [
        (night.sweep_id, [it for it in night.differences if it.what != "model build"])
        for night in found.changed
    ]
    changed = [(night, of) for night, of in changed if of]
    if not changed:
        return
    out.print("\nwhat else was changed:")
    for night, of in changed[-_CHANGES:]:
        out.print(safe_line(f"- {night}: {'; '.join(map(difference_in_words, of))}", 1000), soft_wrap=True)
    if len(changed) > _CHANGES:
        out.print(f"and on {plural(len(changed) - _CHANGES, 'night')} before: see --json")


def _maybe(share: float | None) -> str:
    return NOT_MEASURED if share is None else _percent(share)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
