"""The continuation eval for people and programs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from orchestrator.context.continuation import BASE, Evaluation, Overall, Reading, Tally
from orchestrator.context.fixtures import MEASURES, Measure
from orchestrator.report.columns import Column, fit
from orchestrator.report.forms import Form, print_csv
from orchestrator.report.markdown import escaped, table
from orchestrator.report.text import NOT_MEASURED, console, count, plural, print_json, safe_line

WORDS: Mapping[Measure, str] = MappingProxyType(
    {
        "constraints": "constraints kept",
        "active_failures": "active failures kept",
        "resolved_failures": "resolved failures deactivated",
        "risky": "risky content quarantined",
        "decisions": "decisions kept",
        "procedures": "procedures kept",
        "files": "files kept",
        "goals": "goals kept",
        "facts": "facts kept",
        "warnings": "warnings kept",
        "superseded": "superseded retired",
    }
)
TOKENS = "tokens"
RELATIVE = f"tokens relative to {BASE}"


def print_continuation(found: Evaluation, form: Form) -> None:
    """On stdout: each condition over all fixtures, then each fixture, and what was missed."""
    if form == "json":
        print_json(as_data(found))
    elif form == "csv":
        print_csv(("fixture", "condition", "measure", "met", "of", "rate", "reason"), _rows(found))
    elif form == "markdown":
        sys.stdout.write(markdown(found))
    else:
        _print_tables(found)


def markdown(found: Evaluation) -> str:
    """Both tables, the reasons of dashes and what was missed, as Markdown."""
    parts = [
        f"{plural(_fixtures(found), 'fixture')}; met of expected.\n",
        table(_overall_columns(found.overall)),
        table(_fixture_columns(found.readings)),
        "".join(f"- {NOT_MEASURED}: {escaped(reason)}\n" for reason in _reasons(found)),
        "Missed:\n",
        "".join(f"- {escaped(line)}\n" for line in _missed(found)) or "- nothing\n",
    ]
    return "\n".join(part for part in parts if part)


def as_data(found: Evaluation) -> dict[str, Any]:
    """The evaluation as data: rates are shares of 1; null where a measure does not apply, with the reason."""
    return {
        "fixtures": _fixtures(found),
        "conditions": list(found.conditions),
        "overall": [_data(one) for one in found.overall],
        "readings": [_data(one) for one in found.readings],
    }


def _data(one: Overall | Reading) -> dict[str, Any]:
    tallies = {measure: asdict(tally) | {"rate": tally.rate} for measure, tally in one.tallies.items()}
    return asdict(one) | {"relative": one.relative, "tallies": tallies}


def _rows(found: Evaluation) -> Iterator[tuple[object, ...]]:
    lines: tuple[Overall | Reading, ...] = (*found.readings, *found.overall)
    for one in lines:
        name = one.fixture if isinstance(one, Reading) else "overall"
        for measure, tally in one.tallies.items():
            yield name, one.condition, measure, tally.met, tally.of, tally.rate, tally.reason
        reason = one.refused if isinstance(one, Reading) else None
        yield name, one.condition, TOKENS, one.tokens, one.base_tokens, one.relative, reason


def _fixtures(found: Evaluation) -> int:
    return len({one.fixture for one in found.readings})


def _print_tables(found: Evaluation) -> None:
    out = console()
    title = f"{plural(_fixtures(found), 'fixture')}, met of expected"
    out.print(fit(_overall_columns(found.overall), title, out)[0])
    shown, left_out = fit(_fixture_columns(found.readings), "\nby fixture", out)
    out.print(shown)
    if left_out:
        out.print(f"left out for the width: {', '.join(left_out)}", soft_wrap=True)
    for reason in _reasons(found):
        out.print(f"{NOT_MEASURED} {reason}", soft_wrap=True)
    if missed := _missed(found):
        out.print("\nmissed:")
    for line in missed:
        out.print(safe_line(f"- {line}", 1000), soft_wrap=True)


def _overall_columns(overall: Sequence[Overall]) -> list[Column]:
    names = [*WORDS.values(), TOKENS, RELATIVE]
    columns = [Column("measure", names, right=False)]
    for one in overall:
        cells = [_share(one.tallies[measure]) for measure in MEASURES]
        columns.append(Column(one.condition, [*cells, count(one.tokens), _percent(one.relative)]))
    if any(one.refused for one in overall):
        columns[0] = Column("measure", [*names, "refused"], right=False)
        columns[1:] = [
            Column(column.name, [*column.cells, f"{one.refused} of {one.fixtures}"])
            for column, one in zip(columns[1:], overall, strict=True)
        ]
    return columns


def _fixture_columns(readings: Sequence[Reading]) -> list[Column]:
    return [
        Column("fixture", [safe_line(one.fixture) for one in readings], right=False),
        Column("condition", [one.condition for one in readings], right=False),
        *(
            Column(
                measure.replace("_", " "),
                [_fraction(one.tallies[measure]) for one in readings],
                worth=len(MEASURES) - number,
            )
            for number, measure in enumerate(MEASURES)
        ),
        Column(TOKENS, [count(one.tokens) for one in readings], worth=20),
        Column("relative", [_percent(one.relative) for one in readings], worth=21),
    ]


def _fraction(tally: Tally) -> str:
    return f"{tally.met}/{tally.of}" if tally.of else NOT_MEASURED


def _share(tally: Tally) -> str:
    return f"{_fraction(tally)} {_percent(tally.rate)}" if tally.of else NOT_MEASURED


def _percent(share: float | None) -> str:
    return NOT_MEASURED if share is None else f"{100 * share:.1f} %"


def _reasons(found: Evaluation) -> list[str]:
    reasons = {tally.reason for one in found.readings for tally in one.tallies.values() if tally.reason}
    refused = {f"refused: {one.refused}" for one in found.readings if one.refused}
    return [*sorted(reasons), *sorted(refused)]


def _missed(found: Evaluation) -> list[str]:
    return [
        f"{one.condition}, {WORDS[measure]}: {', '.join(tally.missed)}"
        for one in found.overall
        for measure, tally in one.tallies.items()
        if tally.missed
    ]
