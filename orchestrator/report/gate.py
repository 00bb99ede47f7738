"""The gate of nights in a terminal: what was compared, and why it failed."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import Console

from orchestrator.analysis import gate_words as words
from orchestrator.analysis.drift import Difference
from orchestrator.analysis.gate import Gate
from orchestrator.analysis.gate_tests import PairTest
from orchestrator.report.columns import Column, fit
from orchestrator.report.text import NOT_MEASURED, console, count, print_json, safe_line

_DIGEST = "sha256:"


def print_gate(gate: Gate, *, as_json: bool) -> None:
    """On stdout: the verdict, its reasons, every test, and what else differs."""
    if as_json:
        print_json(as_data(gate))
        return
    out = console()
    out.print(
        safe_line(words.verdict(gate)), style="bold green" if gate.passed else "bold red", soft_wrap=True
    )
    out.print(words.compared(gate), soft_wrap=True)
    for reason in words.reasons(gate):
        out.print(safe_line(f"- {reason}", 1000), soft_wrap=True)
    if gate.tests:
        out.print()
        _print_tests(gate, out)
    for test in gate.worse:
        out.print(safe_line(f"{test.pair}, worse on: {words.fell(test)}", 1000), soft_wrap=True)
    if gate.differences:
        out.print("\nwhat else differs from the baseline:")
        for difference in gate.differences:
            out.print(safe_line(f"- {difference_in_words(difference)}"), soft_wrap=True)
    for note in gate.notes:
        out.print(safe_line(note, 1000), soft_wrap=True)


def as_data(gate: Gate) -> dict[str, Any]:
    """The gate as data: rates are shares of 1, times seconds, costs US dollars."""
    data = asdict(gate)
    for of, found in zip(data["coverage"], gate.coverage, strict=True):
        of |= {"cells": found.cells, "value": found.value}
    return {"passed": gate.passed, "reasons": words.reasons(gate), **data}


def difference_in_words(difference: Difference) -> str:
    """`image aider: 1f2e… → 9a8b…`; digests are cut to what tells them apart at sight."""
    before = ", ".join(map(short, difference.before)) or "none"
    now = ", ".join(map(short, difference.now)) or "none"
    return f"{' '.join(filter(None, (difference.what, difference.name)))}: {before} → {now}"


def short(text: str) -> str:
    return f"{text.removeprefix(_DIGEST)[:12]}…" if text.startswith(_DIGEST) else text


def _print_tests(gate: Gate, out: Console) -> None:
    tests = gate.tests
    limited = any(test.limit is not None for test in tests)
    axis = [Column("axis", [words.AXIS[test.axis] for test in tests], right=False)] if limited else []
    columns = [
        Column("pair", [safe_line(test.pair) for test in tests], right=False, least=24),
        *axis,
        Column("tasks", [count(test.tasks) for test in tests]),
        Column("nights", [count(test.nights) for test in tests], worth=1),
        Column("before", [_value(test, test.before) for test in tests]),
        Column("now", [_value(test, test.now) for test in tests]),
        Column("change, 95 %", [words.interval(test) or NOT_MEASURED for test in tests], worth=3),
        Column(
            "p, Holm", [NOT_MEASURED if test.p_holm is None else words.p_text(test.p_holm) for test in tests]
        ),
        Column("sees a drop of", [_points(test.detectable) for test in tests], worth=2),
        Column("verdict", [test.verdict for test in tests], right=False),
    ]
    table, _ = fit(columns, "pairs of models", out)
    out.print(table)


def _value(test: PairTest, number: float | None) -> str:
    return NOT_MEASURED if number is None else words.value(test, number)


def _points(drop: float | None) -> str:
    return NOT_MEASURED if drop is None else f"~{100 * drop:.0f} points"
