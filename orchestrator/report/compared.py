"""`cab compare`: what may be said of B beside A, in words, and the numbers behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console

from orchestrator.analysis.cells import ABOUT
from orchestrator.analysis.compare import Compared, Comparison
from orchestrator.analysis.differences import PASS_RATE
from orchestrator.report.columns import Column, fit
from orchestrator.report.differing import COLOURS, NAMES, between, change, p_value, sentence, value_of
from orchestrator.report.markdown import escaped
from orchestrator.report.markdown import table as markdown_table
from orchestrator.report.text import (
    LEGEND,
    NOT_MEASURED,
    console,
    count,
    from_to,
    plural,
    print_json,
    safe_line,
)
from orchestrator.stats.paired import ALPHA, MIN_TASKS, POWER


def print_comparison(found: Compared, *, as_json: bool, as_markdown: bool) -> None:
    """Print a comparison on stdout."""
    if as_json:
        print_json(as_data(found))
        return
    out = console()
    a, b = safe_line(found.a.name), safe_line(found.b.name)
    for comparisons in _tables(found):
        for line in _head(comparisons, a, b):
            _say(line, out, as_markdown=as_markdown)
        columns = _measures(comparisons[0]) if found.by is None else _groups(comparisons, found.by)
        _print(columns, out, as_markdown=as_markdown)
        for line in _words(comparisons, a, b):
            _say(line, out, as_markdown=as_markdown)
        if any(NOT_MEASURED in column.cells for column in columns):
            _say(LEGEND, out, as_markdown=as_markdown)
        out.print()


def as_data(found: Compared) -> dict[str, Any]:
    """A comparison as JSON has it."""
    sides = {
        name: {"name": side.name, "where": dict(side.where), "cells": len(side.cells)}
        for name, side in (("a", found.a), ("b", found.b))
    }
    rules = {"alpha": round(ALPHA, 6), "power": POWER, "min_tasks": MIN_TASKS}
    return {**sides, "by": found.by, **rules, "comparisons": [asdict(it) for it in found.comparisons]}


def _tables(found: Compared) -> list[list[Comparison]]:
    """Those of one kind and version together."""
    tables: dict[tuple[str, str], list[Comparison]] = {}
    for it in found.comparisons:
        tables.setdefault((it.kind, it.methodology), []).append(it)
    return list(tables.values())


def _head(comparisons: Sequence[Comparison], a: str, b: str) -> list[str]:
    first = comparisons[0]
    lines = [f"B, {b}, beside A, {a}: {ABOUT[first.kind]}; methodology {first.methodology}"]
    if len(comparisons) == 1:
        lines.append(_shared(first))
    return lines


def _shared(of: Comparison) -> str:
    """What a comparison is of, and what it leaves out."""
    said = [f"over {plural(of.tasks, 'shared task')}"]
    if of.units != of.tasks:
        said[0] += f" in {plural(of.units, 'unit')} that both attempted"
    said.append(f"runs of each: A {from_to(of.runs_a)}, B {from_to(of.runs_b)}")
    lost = of.infra_a - of.unjudged_a, of.infra_b - of.unjudged_b
    said.append(f"lost to infra errors: A {lost[0]}, B {lost[1]}")
    if of.unjudged_a or of.unjudged_b:
        said.append(f"without a verdict: A {of.unjudged_a}, B {of.unjudged_b}")
    if of.only_a or of.only_b:
        said.append(f"left out: {of.only_a} that A alone attempted, {of.only_b} that B alone did")
    return "; ".join(said)


def _measures(of: Comparison) -> list[Column]:
    """One line a measure."""
    found = of.differences
    verdicts = [it.verdict for it in found]
    return [
        Column("", [NAMES[it.measure] for it in found], right=False),
        Column("A", [value_of(it.measure, it.a) for it in found], worth=8),
        Column("B", [value_of(it.measure, it.b) for it in found], worth=8),
        Column("difference", [change(it, it.value) for it in found]),
        Column("95 %", [between(it) for it in found], worth=9),
        Column("p", [p_value(it.p) for it in found], worth=3),
        Column("p (Holm)", [p_value(it.p_adjusted) for it in found], worth=5),
        Column("B is", verdicts, right=False, styles=[COLOURS.get(it, "") for it in verdicts]),
    ]


def _groups(comparisons: Sequence[Comparison], by: str) -> list[Column]:
    """One line a group, of its pass rate."""
    rates = [it.pass_rate for it in comparisons]
    verdicts = [it.verdict for it in rates]
    return [
        Column(by, [safe_line(it.name) for it in comparisons], right=False, least=24),
        Column("tasks", [count(it.tasks) for it in comparisons], worth=6),
        Column("pass A", [value_of(PASS_RATE, it.a) for it in rates], worth=8),
        Column("pass B", [value_of(PASS_RATE, it.b) for it in rates], worth=8),
        Column("difference", [change(it, it.value) for it in rates]),
        Column("95 %", [between(it) for it in rates], worth=9),
        Column("p (Holm)", [p_value(it.p_adjusted) for it in rates], worth=5),
        Column("B is", verdicts, right=False, styles=[COLOURS.get(it, "") for it in verdicts]),
    ]


def _words(comparisons: Sequence[Comparison], a: str, b: str) -> list[str]:
    """The verdicts in words, on the pass rates first."""
    said = []
    for of in comparisons:
        where = f"{safe_line(of.name)}: " if of.name else ""
        said.append(f"{where}{sentence(of, of.pass_rate, a, b)}")
        decided = [it for it in of.others if it.verdict in ("better", "worse")]
        said += [f"{where}{sentence(of, it, a, b)}" for it in decided]
        if not of.name:
            reasons = {it.reason: None for it in of.others if it.reason}
            for reason in reasons:
                names = ", ".join(NAMES[it.measure] for it in of.others if it.reason == reason)
                said.append(f"{names}: {reason}")
    return said


def _print(columns: list[Column], out: Console, *, as_markdown: bool) -> None:
    if as_markdown:
        out.print(f"\n{markdown_table(columns)}", soft_wrap=True)
        return
    made, left_out = fit(columns, "", out)
    out.print(made)
    if left_out:
        out.print(f"left out at this width: {', '.join(left_out)} (see --json)", style="dim", soft_wrap=True)


def _say(line: str, out: Console, *, as_markdown: bool) -> None:
    out.print(f"- {escaped(line)}" if as_markdown else line, soft_wrap=True)
