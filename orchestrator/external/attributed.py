"""`cab external attribute`: which groups of the state mattered, in a table and in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from orchestrator.analysis.differences import Verdict
from orchestrator.external.attribution import Ablation, Attribution
from orchestrator.report.columns import Column, fit
from orchestrator.report.markdown import table as markdown_table
from orchestrator.report.text import NOT_MEASURED, console, count, number, plural, print_json, safe_line
from orchestrator.stats.paired import ALPHA, MIN_TASKS

_COLOURS: dict[Verdict, str] = {"better": "green", "worse": "red"}


def as_data(found: Attribution) -> dict[str, Any]:
    """An attribution as JSON has it, with the rules that its verdicts follow."""
    return {"rules": {"alpha": round(ALPHA, 6), "min_tasks": MIN_TASKS}, **asdict(found)}


def print_attribution(found: Attribution, *, as_json: bool, as_markdown: bool) -> None:
    """Print an attribution on stdout."""
    if as_json:
        print_json(as_data(found))
        return
    out = console()
    for line in (*head(found), ""):
        out.print(line, markup=False, highlight=False, soft_wrap=True)
    columns = table(found)
    if as_markdown:
        out.print(markdown_table(columns), markup=False, highlight=False, soft_wrap=True)
    else:
        rendered, _ = fit(columns, "", out)
        out.print(rendered)
    for line in ("", *words(found)):
        out.print(line, markup=False, highlight=False, soft_wrap=True)


def head(found: Attribution) -> list[str]:
    """What the table is of."""
    who = f"{safe_line(found.agent)} × {safe_line(found.model)}"
    lines = [f"{safe_line(found.base)} beside itself without one group; {who}; claim: {found.claim}"]
    if found.withheld:
        lines.append(f"no outcome is shown: {found.withheld}")
    return lines


def table(found: Attribution) -> list[Column]:
    """A line a group: over which tasks, how many flipped, the paired difference and what may be said."""
    of = found.ablations
    verdicts = [one.resolved.verdict for one in of]
    return [
        Column("group", [one.group for one in of], right=False),
        Column("tasks", [count(len(one.tasks)) for one in of]),
        Column("tokens", [number(one.tokens, 0) for one in of], worth=6),
        Column("helped", [_flipped(found, one.helped) for one in of]),
        Column("hurt", [_flipped(found, one.hurt) for one in of]),
        Column("with − without", [_signed(one.resolved.value) for one in of]),
        Column("95 %", [_between(one) for one in of], worth=9),
        Column("p", [_p(one.resolved.p) for one in of], worth=3),
        Column("p (Holm)", [_p(one.resolved.p_adjusted) for one in of], worth=5),
        Column("with it", verdicts, right=False, styles=[_COLOURS.get(it, "") for it in verdicts]),
    ]


def words(found: Attribution) -> list[str]:
    """What a reader needs beside the table."""
    said = []
    for one in found.ablations:
        if one.uncarried:
            tasks = plural(one.uncarried, "task")
            said.append(f"{one.group}: {tasks} left out, whose prompt had nothing of it to leave out")
        if one.displaced:
            tasks = plural(one.displaced, "task")
            said.append(f"{one.group}: in {tasks} other items came in for it, so it differs in these, too")
        for name, flips in (("helped", one.helped), ("hurt", one.hurt)):
            if flips:
                of = ", ".join(
                    f"{safe_line(flip.task)} ({flip.b}/{flip.runs_b} with, {flip.a}/{flip.runs_a} without)"
                    for flip in flips
                )
                said.append(f"{one.group} {name}: {of}")
    if any(one.resolved.verdict == "too few shared tasks" for one in found.ablations):
        said.append(f"no claim is made below {MIN_TASKS} tasks, where no exact test can come below 0.05")
    return said


def _flipped(found: Attribution, flips: Sequence[object]) -> str:
    return NOT_MEASURED if found.withheld else count(len(flips))


def _signed(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:+.3f}"


def _between(one: Ablation) -> str:
    low, high = one.resolved.low, one.resolved.high
    return NOT_MEASURED if low is None or high is None else f"[{low:+.2f}, {high:+.2f}]"


def _p(value: float | None) -> str:
    """To two digits that count; as 1 where it is."""
    if value is None:
        return NOT_MEASURED
    return "<0.0001" if value < 0.0001 else f"{value:.2g}"
