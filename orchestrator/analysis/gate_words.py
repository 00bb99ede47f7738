"""What a gate says, in words: the same wherever it is read."""

from __future__ import annotations

from collections import Counter

from orchestrator.analysis.gate import Coverage, Gate
from orchestrator.analysis.gate_tests import PairTest

AXIS = {
    "passed": "pass rate",
    "tokens": "tokens",
    "usd": "cost",
    "wall_s": "wall clock",
    "active_s": "active time",
}
NAMED = 5
"""Tasks or cells that are named before the rest is counted."""


def verdict(gate: Gate) -> str:
    """One line: the verdict and what it is about."""
    against = f"against {', '.join(gate.baseline)}" if gate.baseline else "with nothing to compare it with"
    return f"{'PASS' if gate.passed else 'FAIL'}: {gate.candidate} {against}"


def compared(gate: Gate) -> str:
    """One line: over how much it was asked."""
    tested = [test for test in gate.tests if test.p is not None]
    tasks = sorted({test.tasks for test in tested})
    parts = [f"coverage of {_number(len(gate.coverage), 'pair')}, at least {100 * gate.rules.coverage:g} %"]
    if gate.scripted:
        parts.insert(0, f"{_number(len(gate.scripted), 'scripted cell')} that must pass")
    if tested:
        pairs, nights = len({test.pair for test in tested}), max(test.nights for test in tested)
        parts.insert(
            0,
            f"{_number(len(tested), 'test')} of {_number(pairs, 'pair')} over {_range(tasks)} shared tasks "
            f"and {_number(nights, 'night')} before, a false alarm in at most {100 * gate.rules.alpha:g} %",
        )
    return "; ".join(parts)


def reasons(gate: Gate) -> list[str]:
    """Why it failed, a line for each reason; none where it passed."""
    lost = Counter(cell.pair for cell in gate.lost)
    return [
        *(f"{test.pair}: {of_test(test)}" for test in gate.worse),
        *(f"{pair}: {_lost(gate, pair, number)}" for pair, number in sorted(lost.items())),
        *(f"{it.pair}: {of_coverage(it)}, below {100 * gate.rules.coverage:g} %" for it in gate.uncovered),
    ]


def of_test(test: PairTest) -> str:
    """What was found of one axis of one pair."""
    if test.before is None or test.now is None:
        return f"{AXIS[test.axis]}: no shared task was measured"
    moved = (
        f"{AXIS[test.axis]} {value(test, test.before)} → {value(test, test.now)} on {test.tasks} shared tasks"
    )
    if test.p is None or test.p_holm is None:
        return f"{moved}: too few tasks for any drop to be significant"
    limit = "" if test.limit is None else f", at most ×{test.limit:g} is allowed"
    change = f" (change {interval(test)})" if test.change else ""
    return f"{moved}{change}{limit}: {test.verdict}, p {p_text(test.p_holm)} ({p_text(test.p)} alone)"


def value(test: PairTest, number: float) -> str:
    """A value of a test's axis with its unit."""
    match test.axis:
        case "passed":
            return f"{100 * number:.1f} %"
        case "tokens":
            return f"{number:.0f}"
        case "usd":
            return f"${number:.4f}"
        case _:
            return f"{number:.1f} s"


def interval(test: PairTest) -> str:
    """The 95 % interval of the change, in points of the pass rate or as factors; "" where there is none."""
    if test.change is None:
        return ""
    low, high = test.change
    if test.axis == "passed":
        return f"{100 * low:+.1f} to {100 * high:+.1f} points"
    return f"×{low:.2f} to ×{high:.2f}"


def p_text(p: float) -> str:
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def of_coverage(it: Coverage) -> str:
    """How much of a pair came to a result, and what became of the rest."""
    rest = [
        f"{number} {what}"
        for number, what in (
            (it.infra, "lost to infrastructure errors"),
            (it.unfinished, "not finished"),
            (it.left_out, "left out"),
        )
        if number
    ]
    return ", ".join([f"coverage {100 * it.value:.1f} %", f"{it.counted} of {it.cells} cells", *rest])


def fell(test: PairTest) -> str:
    """The tasks of a test that are worse now, the worst first; "" where there are none."""
    named = [f"{it.task} {value(test, it.before)} → {value(test, it.now)}" for it in test.fell[:NAMED]]
    more = len(test.fell) - NAMED
    return ", ".join([*named, f"and {more} more"] if more > 0 else named)


def _lost(gate: Gate, pair: str, number: int) -> str:
    cells = [cell for cell in gate.lost if cell.pair == pair]
    named = [f"{cell.cell} {cell.now}" for cell in cells[:NAMED]]
    more = [f"and {number - NAMED} more"] if number > NAMED else []
    return f"{_number(number, 'scripted cell')} lost: {', '.join([*named, *more])}"


def _number(amount: int, what: str) -> str:
    return f"{amount} {what}{'s' * (amount != 1)}"


def _range(numbers: list[int]) -> str:
    return f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
