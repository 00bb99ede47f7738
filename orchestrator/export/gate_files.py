"""The gate of nights for other programs: JUnit XML, and Markdown for the summary of a CI job."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence

from orchestrator.analysis import gate_words as words
from orchestrator.analysis.drift import Difference
from orchestrator.analysis.gate import Coverage, Gate, Scripted
from orchestrator.analysis.gate_tests import PairTest
from orchestrator.export.junit import Case, Problem, Suite, document

MOST = 200
"""Rows of a table of the summary; CI cuts a summary that is too long off as a whole."""
_CELL = 300
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~@:^$=-])")


def gate_junit(gate: Gate, timestamp: str) -> Iterator[bytes]:
    """A case for each test, scripted cell and pair's coverage. `timestamp` is when the candidate began."""
    properties = [("candidate", gate.candidate), ("baseline", ", ".join(gate.baseline))]
    told = [(it.what if not it.name else f"{it.what} {it.name}", _sides(it)) for it in gate.differences]
    suites = [
        Suite("pairs of models", timestamp, [*properties, *told], [_of_test(test) for test in gate.tests]),
        Suite("scripted cells", timestamp, properties, [_of_scripted(cell) for cell in gate.scripted]),
        Suite(
            "coverage", timestamp, properties, [_of_coverage(it, gate.rules.coverage) for it in gate.coverage]
        ),
    ]
    yield from document(suite for suite in suites if suite.cases)


def gate_markdown(gate: Gate) -> str:
    """The verdict with its reasons, the tests as a table, and what else differs."""
    parts = [f"## {'✅' if gate.passed else '❌'} {_text(words.verdict(gate))}", _text(words.compared(gate))]
    if found := words.reasons(gate):
        parts.append(_list(found))
    if gate.tests:
        parts.append(_tests(gate.tests))
    if gate.lost:
        rows = [[cell.cell, cell.sweep_id, cell.now] for cell in gate.lost]
        parts.append("### Scripted cells lost\n\n" + _table(["cell", "passed in", "now"], rows))
    if gate.differences:
        rows = [
            [it.what, it.name, ", ".join(it.before) or "none", ", ".join(it.now) or "none"]
            for it in gate.differences
        ]
        parts.append(
            "### What else differs from the baseline\n\n" + _table(["what", "", "before", "now"], rows)
        )
    if gate.notes:
        parts.append(_list(gate.notes))
    return "\n\n".join(parts) + "\n"


def _of_test(test: PairTest) -> Case:
    said = words.of_test(test)
    problem = None
    if test.verdict == "worse":
        problem = Problem("failure", "worse", said, words.fell(test))
    elif test.verdict == "too few tasks":
        problem = Problem("skipped", "too few tasks", said)
    numbers = (
        ("tasks", test.tasks),
        ("before", test.before),
        ("now", test.now),
        ("p", test.p),
        ("p_holm", test.p_holm),
    )
    properties = [(name, str(number)) for name, number in numbers if number is not None]
    return Case(f"gate.{test.axis}", test.pair, problem=problem, properties=properties)


def _of_scripted(cell: Scripted) -> Case:
    said = f"passed in {cell.sweep_id}, {cell.now} now"
    return Case("gate.scripted", cell.cell, problem=None if cell.passed else Problem("failure", "lost", said))


def _of_coverage(it: Coverage, bound: float) -> Case:
    said = f"{words.of_coverage(it)}, below {100 * bound:g} %"
    return Case("gate.coverage", it.pair, problem=None if it.enough else Problem("failure", "coverage", said))


def _tests(tests: Sequence[PairTest]) -> str:
    head = ["pair", "axis", "tasks", "nights", "before", "now", "change, 95 %", "p, Holm", "verdict"]
    rows = [
        [
            test.pair,
            words.AXIS[test.axis] if test.limit is None else f"{words.AXIS[test.axis]} ≤ ×{test.limit:g}",
            str(test.tasks),
            str(test.nights),
            "–" if test.before is None else words.value(test, test.before),
            "–" if test.now is None else words.value(test, test.now),
            words.interval(test) or "–",
            "–" if test.p_holm is None else words.p_text(test.p_holm),
            test.verdict,
        ]
        for test in sorted(tests, key=lambda test: test.verdict != "worse")
    ]
    return _table(head, rows)


def _sides(difference: Difference) -> str:
    return f"{', '.join(difference.before) or 'none'} → {', '.join(difference.now) or 'none'}"


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {_text(line)}" for line in lines)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    shown = [[_text(text[:_CELL]) for text in row] for row in rows[:MOST]]
    lines = [list(head), ["---"] * len(head), *shown]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return table if len(rows) <= MOST else f"{table}\n\nand {len(rows) - MOST} more rows"


def _text(text: str) -> str:
    """Text that an endpoint or an index may have written, as one line that Markdown and HTML leave alone."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return _SPECIAL.sub(r"\\\1", html.escape(line, quote=False))
