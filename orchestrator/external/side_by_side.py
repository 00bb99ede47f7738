"""What is shown of many conditions: which pairs in full, and the rest, and each task, in one table."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.analysis.conditions import Conditions, Outcome, Pair
from orchestrator.external.results import Scorecard
from orchestrator.external.scorecard import tasks_of
from orchestrator.report import differing
from orchestrator.report.columns import Column
from orchestrator.report.text import plural, safe_line

Section = tuple[str, list[Column], list[str]]
"""A title, a table (no columns: none), and what is said below it."""

FEW = 3
"""Up to as many conditions, every two of them are told in full."""
MOST_TASKS = 30
"""As many tasks stand on a terminal."""

_MARKS: dict[Outcome, str] = {
    "resolved": "✓",
    "unresolved": "✗",
    "error": "error",
    "empty_patch": "empty",
    "incomplete": "?",
}
_OF_MARKS = "one mark for each run; ✓ resolved, ✗ unresolved, error, empty: no patch, ? no verdict"


def told_in_full(found: Conditions) -> tuple[Pair, ...]:
    """Every two conditions where they are few; else each beside the first, and those others that differ in
    what they resolved, after the correction for all pairs.
    """
    if len(found.conditions) <= FEW:
        return found.pairs
    first = found.conditions[0].name
    beside = [pair for pair in found.pairs if pair.a == first]
    return (*beside, *(pair for pair in found.pairs if pair.a != first and _is_decided(pair)))


def matrix(found: Conditions) -> Section:
    """Every two conditions in one table: how many tasks the line's won, tied and lost to the column's."""
    names = [condition.name for condition in found.conditions]
    of = {(pair.a, pair.b): pair for pair in found.pairs}

    def cell(a: str, b: str) -> str:
        pair = of.get((a, b))
        if pair is None:
            return ""
        return f"{pair.wins}/{pair.ties}/{pair.losses}{'*' if _is_decided(pair) else ''}"

    columns = [Column("condition", _numbered(names), right=False, least=24)]
    columns += [
        Column(str(number), [cell(a, b) for b in names]) for number, a in enumerate(names[:-1], start=1)
    ]
    return "Resolved, every two conditions", columns, [_OF_MATRIX]


_OF_MATRIX = (
    "win/tie/loss in tasks of the line's condition beside that of the column's number; *: better or worse "
    "after Holm; every pair in full: --all, --json"
)


def tasks_table(card: Scorecard, found: Conditions, *, most: int | None = None) -> Section:
    """What came of each task under each condition; nothing where nothing may be said of it. With `most`, for
    a terminal: numbers for many conditions, and of more tasks those that did not come out alike.
    """
    if not any(it.outcomes for it in found.conditions):
        return "Tasks", [], []
    of: dict[tuple[str, str], list[str]] = {}
    for result in sorted(card.results, key=lambda it: it.run):
        outcome = result.verdict.outcome if result.verdict else "incomplete"
        of.setdefault((result.instance_id, result.condition), []).append(_MARKS[outcome])
    marks = {
        name: [" ".join(of.get((name, condition), [_MARKS["incomplete"]])) for condition in card.conditions]
        for name in tasks_of(card)
    }
    shown, notes = list(marks), [_OF_MARKS]
    if most is not None and len(marks) > most:
        differing_ones = [name for name, its in marks.items() if len(set(its)) > 1]
        shown = differing_ones[:most]
        notes.append(
            f"{plural(len(marks), 'task')}, of which {len(differing_ones)} came out differently and "
            f"{len(shown)} are here; every one: --all, --csv, --json"
        )
    heads = [safe_line(condition) for condition in card.conditions]
    if most is not None and len(heads) > FEW:
        notes.append(", ".join(_numbered(card.conditions)))
        heads = [str(number) for number in range(1, len(heads) + 1)]
    columns = [Column("task", [safe_line(name) for name in shown], right=False)]
    columns += [
        Column(head, [marks[name][index] for name in shown], right=False) for index, head in enumerate(heads)
    ]
    return "Tasks", columns, notes


def _numbered(names: Sequence[str]) -> list[str]:
    return [f"{number} {safe_line(name)}" for number, name in enumerate(names, start=1)]


def _is_decided(pair: Pair) -> bool:
    return pair.resolved.verdict in differing.DECIDED
