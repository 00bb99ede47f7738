"""What came of a replay: the same, or what is not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console

from orchestrator.gateway.contract import RequestDifference
from orchestrator.gateway.replay.difference import VALUE_MAX
from orchestrator.report.text import console, plural, print_json, safe_line, safe_lines
from orchestrator.run.outcome import with_cause
from orchestrator.run.replay import TIME_NAMES, Comparison
from orchestrator.store.record import Outcome

SCORE_MAX = 200
ABSENT = "(not there)"


def print_replay(found: Comparison, stored: Path | None, *, as_json: bool) -> None:
    """Print a comparison on stdout; `stored` is where the replay is kept."""
    if as_json:
        print_json(as_data(found, stored))
        return
    out = console()
    out.print(f"replay of {safe_line(found.report.of)}", soft_wrap=True)
    for line in lines(found):
        out.print(line, soft_wrap=True)
    if found.report.difference is None:
        out.print(f"not compared, since they hold time: {', '.join(TIME_NAMES)}", soft_wrap=True)
    if stored is not None:
        _print_place(out, found, stored)


def lines(found: Comparison) -> Iterator[str]:
    """What is said of a comparison, line by line."""
    report = found.report
    if report.difference is not None:
        yield from _request(report.difference)
        return
    yield f"calls: {plural(report.asked, 'recorded call')} asked for again"
    if report.not_asked:
        yield f"calls not asked for: {', '.join(map(str, report.not_asked))}"
    outcomes = [_outcome(record.outcome) for record in (found.recorded, found.replayed)]
    yield f"outcome: {outcomes[0]}" if found.same_outcome else f"outcome: {outcomes[0]}, now {outcomes[1]}"
    yield f"diff: {'the same' if found.same_diff else 'differs'}"
    for name, (old, new) in found.differences.items():
        yield f"{safe_line(name)}: recorded {_short(old)}, now {_short(new)}"
    differ = plural(len(found.differences), "difference")
    yield f"scores: {differ}" if found.differences else "scores: the same"


def as_data(found: Comparison, stored: Path | None) -> dict[str, Any]:
    """A comparison as plain values."""
    difference = found.report.difference
    return {
        "cell_id": found.report.of,
        "replayed": found.replayed.cell_id,
        "stored": None if stored is None else str(stored),
        "same": found.same,
        "asked": found.report.asked,
        "not_asked": list(found.report.not_asked),
        "request": None if difference is None else difference.model_dump(mode="json"),
        "outcome": {
            "recorded": _outcome(found.recorded.outcome),
            "replayed": _outcome(found.replayed.outcome),
        },
        "same_diff": None if difference else found.same_diff,
        "scores": None
        if difference
        else {name: {"recorded": old, "replayed": new} for name, (old, new) in found.differences.items()},
        "not_compared": list(TIME_NAMES),
    }


def _request(difference: RequestDifference) -> Iterator[str]:
    yield f"stopped: request {difference.index} is {difference.how}"
    for place in difference.places:
        yield safe_line(place.path)
        for what, value in (("recorded", place.recorded), ("sent", place.sent)):
            first, *rest = [ABSENT] if value is None else safe_lines(value, VALUE_MAX)
            yield f"  {what:>8}: {first}"
            yield from (f"            {line}" for line in rest)
    if difference.more:
        yield f"and {plural(difference.more, 'more place')}"


def _print_place(out: Console, found: Comparison, stored: Path) -> None:
    out.print(f"stored as {safe_line(found.replayed.cell_id)} in {stored}", soft_wrap=True)


def _outcome(outcome: Outcome) -> str:
    return with_cause(outcome.name, outcome.cause)


def _short(value: Any) -> str:
    return safe_line(json.dumps(value, ensure_ascii=False), SCORE_MAX)
