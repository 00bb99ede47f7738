"""`cab external report`: the conditions of a run beside each other, for people, as Markdown, JSON and CSV."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console

from orchestrator.analysis.conditions import OUTCOMES, Condition, Conditions, Flip, Outcome, Pair
from orchestrator.analysis.differences import PASS_RATE, Difference
from orchestrator.analysis.measures import Measure
from orchestrator.external.results import Claim, Scorecard, TaskResult
from orchestrator.external.scorecard import (
    claim_in_words,
    conditions_of,
    enforced,
    tasks_of,
    write_scorecard,
)
from orchestrator.external.side_by_side import (
    MOST_TASKS,
    Section,
    matrix,
    tasks_table,
    told_in_full,
)
from orchestrator.report import differing
from orchestrator.report.columns import Column, fit
from orchestrator.report.markdown import escaped
from orchestrator.report.markdown import table as markdown_table
from orchestrator.report.text import (
    LEGEND,
    NOT_MEASURED,
    console,
    count,
    from_to,
    number,
    plural,
    print_json,
    safe_line,
)
from orchestrator.stats.paired import ALPHA, MIN_TASKS, POWER
from orchestrator.store.files import store_errors, write_durably

MARKDOWN = "report.md"
CSV = "report.csv"

NAMES = {**differing.NAMES, PASS_RATE: "resolved"}


def write_reports(out: Path, card: Scorecard) -> None:
    """Write `scorecard.json`, `report.md` and `report.csv` into a run's directory. Raises StoreError."""
    write_scorecard(out, card)
    with store_errors(out):
        write_durably(out / MARKDOWN, as_markdown(card).encode())
        write_durably(out / CSV, as_csv(card).encode())


def print_card(
    card: Scorecard,
    *,
    as_json: bool = False,
    markdown: bool = False,
    as_rows: bool = False,
    every: bool = False,
) -> None:
    """Print a run's results on stdout: as JSON, Markdown, CSV (`as_rows`), or for people. `every`: all pairs
    of conditions, and all tasks, also where they are many.
    """
    if as_json:
        print_json(as_data(card))
    elif markdown or as_rows:
        sys.stdout.write(as_markdown(card, every=every) if markdown else as_csv(card))
    else:
        _print(card, console(), every=every)


def as_data(card: Scorecard) -> dict[str, Any]:
    """A run's results as JSON has them. What there is no number for is null, with its reason beside it."""
    card = enforced(card)
    head = card.model_dump(mode="json", exclude={"results"})
    return {
        "claim": {**head.pop("claim"), "about": claim_in_words(card.claim)},
        **head,
        "tasks": len(tasks_of(card)),
        **{"alpha": round(ALPHA, 6), "power": POWER, "min_tasks": MIN_TASKS},
        **asdict(conditions_of(card)),
        "results": [_result_data(result) for result in card.results],
    }


def _result_data(result: TaskResult) -> dict[str, Any]:
    """One result, with what the harness said of it, null where it was not asked. Its tests: in the card."""
    said = result.verdict
    return {
        **result.model_dump(mode="json", exclude={"verdict"}),
        "outcome": said.outcome if said else None,
        "reason": said.reason if said else None,
    }


_RESULT = (
    *("instance_id", "condition", "run", "agent_outcome", "prompt_tokens", "context_tokens", "patch_bytes"),
    *("patch_lines", "elapsed_s", "input_tokens", "output_tokens"),
)


def as_csv(card: Scorecard) -> str:
    """A row for each result, every one with the claim that it stands under."""
    card = enforced(card)
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    of_run = tuple(map(_told, (card.benchmark, card.agent, card.model)))
    head = ("claim", "partial", "benchmark", "agent", "model", *_RESULT)
    rows.writerow((*head, "carried", "outcome", "reason", "patch_fault"))
    for result in card.results:
        told = [_told(getattr(result, name)) for name in _RESULT]
        carried = ";".join(f"{group}={len(ids)}" for group, ids in sorted(result.carried.items()) if ids)
        said = result.verdict
        judged = (said.outcome, safe_line(said.reason)) if said else ("", "")
        fault = safe_line(result.patch_fault)
        rows.writerow((card.claim.level, card.claim.partial, *of_run, *told, carried, *judged, fault))
    return text.getvalue()


def _told(value: object) -> object:
    return "" if value is None else safe_line(value) if isinstance(value, str) else value


def as_markdown(card: Scorecard, *, every: bool = False) -> str:
    """`report.md`: the claim, then the conditions, those beside each other, and each task."""
    card = enforced(card)
    found = conditions_of(card)
    text = [_claim_in_markdown(card.claim), "", f"# {escaped(safe_line(_title(card)))}", ""]
    for title, columns, lines in (*_sections(found, every), tasks_table(card, found)):
        if columns or lines:
            text += [f"## {title}", "", *([markdown_table(columns)] if columns else [])]
        text += [f"- {escaped(safe_line(line))}" for line in lines] + ([""] if lines else [])
    return "\n".join(text)


def _claim_in_markdown(claim: Claim) -> str:
    level, _, about = claim_in_words(claim).removeprefix("claim: ").partition(" – ")
    return f"**Claim: `{level}`** – {escaped(safe_line(about))}"


def _print(card: Scorecard, out: Console, *, every: bool) -> None:
    card = enforced(card)
    found = conditions_of(card)
    citable = card.claim.level == "harness_evaluated" and not card.claim.partial
    out.print(
        safe_line(claim_in_words(card.claim)), style="bold" if citable else "bold yellow", soft_wrap=True
    )
    out.print(safe_line(_title(card)), soft_wrap=True)
    tasks = tasks_table(card, found, most=None if every else MOST_TASKS)
    for title, columns, lines in (*_sections(found, every), tasks):
        if not columns and not lines:
            continue
        out.print()
        made, left_out = fit(columns, title, out)
        out.print(made)
        notes = [f"left out at this width: {', '.join(left_out)} (see --json)"] if left_out else []
        if any(NOT_MEASURED in column.cells for column in columns):
            notes.append(LEGEND)
        for line in (*lines, *notes):
            out.print(safe_line(line), soft_wrap=True)


def _title(card: Scorecard) -> str:
    tasks, conditions = plural(len(tasks_of(card)), "task"), plural(len(card.conditions), "condition")
    agent = "no agent" if card.agent == "none" else f"agent {card.agent}, model {card.model}"
    return (
        f"{card.benchmark}: {agent}; {tasks} under {conditions}, {plural(card.runs, 'run')} of each; "
        f"run {card.run_id}"
    )


def _sections(found: Conditions, every: bool) -> list[Section]:
    """The conditions, and pairs of them: all, or where those are many (and not `every` one is asked for) each
    beside the first, others that differ, and the rest in one table.
    """
    made: list[Section] = [("Conditions", _of_conditions(found), _notes(found))]
    pairs = found.pairs if every else told_in_full(found)
    few = len(pairs) == len(found.pairs)
    which = "every two conditions" if few else "beside the first, and where others differ"
    if pairs and found.withheld is None:
        made.append((f"Resolved, {which}", _of_rates(pairs), _rates_in_words(pairs)))
        if not few:
            made.append(matrix(found))
    measures = [(pair, other) for pair in pairs for other in pair.others]
    if measures and few:
        made.append((f"What they took, {which}", _of_measures(measures), _measures_in_words(measures)))
    elif measures:
        made.append(_what_differs(measures, len(found.pairs) - len(pairs)))
    return made


_Measures = Sequence[tuple[Pair, Difference]]
"""Differences of measures beside the resolved rate, each with its pair."""


def _what_differs(measures: _Measures, pairs_left: int) -> Section:
    """Of many pairs what was found to differ; the means of all are told of each condition."""
    decided = [(pair, it) for pair, it in measures if it.verdict in differing.DECIDED]
    rest = f"{plural(len(measures) - len(decided), 'difference')} that cannot be told from none"
    said = f"not here: {rest}, and {plural(pairs_left, 'more pair')}: --all, --json"
    return "What differs beside the first", _of_measures(decided) if decided else [], [said]


def _of_conditions(found: Conditions) -> list[Column]:
    of = found.conditions
    columns = [
        Column("condition", [safe_line(it.name) for it in of], right=False, least=24),
        Column("tasks", [count(it.tasks) for it in of], worth=6),
        Column("runs", [from_to(it.runs) for it in of], worth=5),
    ]
    if found.withheld is None:
        columns += [
            Column("resolved", [number(it.resolved.value) for it in of]),
            Column("95 %", [_interval(it.resolved, 2) for it in of]),
        ]
    if any(it.outcomes for it in of):
        columns += [Column(_HEADS[name], [_outcome(it, name) for it in of], worth=8) for name in OUTCOMES]
    for name in of[0].means if of else ():
        means = [it.means[name] for it in of]
        columns += [
            Column(NAMES[name], [number(it.value, 1) for it in means], worth=7),
            Column(f"{NAMES[name]} 95 %", [_interval(it, 1) for it in means], worth=2),
        ]
    return columns


_HEADS = {name: f"n {name.replace('_', ' ')}" for name in OUTCOMES}
"""Heads of the numbers of outcomes: `n resolved` is no rate."""


def _outcome(of: Condition, name: Outcome) -> str:
    return NOT_MEASURED if of.outcomes is None else count(of.outcomes[name])


def _interval(of: Measure, digits: int) -> str:
    if of.low is None or of.high is None:
        return NOT_MEASURED
    return f"[{number(of.low, digits)}, {number(of.high, digits)}]"


def _notes(found: Conditions) -> list[str]:
    """Why there is no rate, how intervals were made, and why what is missing is."""
    said = [] if found.withheld is None else [f"no resolved rate: {found.withheld}"]
    if found.withheld is None:
        said.append("resolved: over all submitted results; error, empty patch: not resolved")
    methods = sorted({it.resolved.method for it in found.conditions if it.resolved.value is not None})
    if methods:
        said.append(f"95 % intervals of resolved: {', '.join(methods)}; of the rest: task bootstrap")
    means = [(name, mean) for it in found.conditions for name, mean in it.means.items()]
    return said + _reasons([(NAMES[name], mean.reason) for name, mean in means])


def _reasons(of: Sequence[tuple[str, str | None]]) -> list[str]:
    """Each reason once, with the measures that it is of."""
    found: dict[str, dict[str, None]] = {}
    for name, reason in of:
        if reason:
            found.setdefault(reason, {})[name] = None
    return [f"{', '.join(names)}: {reason}" for reason, names in found.items()]


def _of_rates(pairs: Sequence[Pair]) -> list[Column]:
    """One line for two conditions, of their resolved rates."""
    rates = [pair.resolved for pair in pairs]
    return [
        _beside(pairs),
        Column("tasks", [count(pair.tasks) for pair in pairs], worth=6),
        Column("win/tie/loss", [f"{pair.wins}/{pair.ties}/{pair.losses}" for pair in pairs]),
        *_columns(rates),
    ]


def _of_measures(measures: _Measures) -> list[Column]:
    """One line for each measure of two conditions."""
    return [
        _beside([pair for pair, _ in measures]),
        Column("measure", [NAMES[other.measure] for _, other in measures], right=False),
        *_columns([other for _, other in measures]),
    ]


def _beside(pairs: Sequence[Pair]) -> Column:
    names = [safe_line(f"{pair.b} beside {pair.a}") for pair in pairs]
    return Column("B beside A", names, right=False, least=32)


def _columns(found: Sequence[Difference]) -> list[Column]:
    verdicts = [it.verdict for it in found]
    return [
        Column("A", [differing.value_of(it.measure, it.a) for it in found], worth=8),
        Column("B", [differing.value_of(it.measure, it.b) for it in found], worth=8),
        Column("difference", [differing.change(it, it.value) for it in found]),
        Column("95 %", [differing.between(it) for it in found], worth=9),
        Column("p", [differing.p_value(it.p) for it in found], worth=3),
        Column("p (Holm)", [differing.p_value(it.p_adjusted) for it in found], worth=5),
        Column(
            "B is", verdicts, right=False, least=12, styles=[differing.COLOURS.get(it, "") for it in verdicts]
        ),
    ]


def _rates_in_words(pairs: Sequence[Pair]) -> list[str]:
    said = []
    for pair in pairs:
        said.append(_sentence(pair, pair.resolved))
        for gained, word in ((True, "resolved more often by"), (False, "resolved less often by")):
            if names := [_flipped(flip) for flip in pair.flips if flip.gained is gained]:
                said.append(f"{word} {pair.b} than by {pair.a}: {', '.join(names)}")
        if pair.only_a or pair.only_b:
            said.append(f"left out: {pair.only_a} tasks of {pair.a} alone, {pair.only_b} of {pair.b} alone")
    return said


def _flipped(flip: Flip) -> str:
    once = flip.runs_a == flip.runs_b == 1
    return flip.task if once else f"{flip.task} ({flip.b}/{flip.runs_b} for {flip.a}/{flip.runs_a})"


def _measures_in_words(measures: _Measures) -> list[str]:
    """The differences that were found, and why there is no verdict on others."""
    said = [_sentence(pair, it) for pair, it in measures if it.verdict in differing.DECIDED]
    return said + _reasons([(NAMES[it.measure], it.reason) for _, it in measures])


def _sentence(pair: Pair, it: Difference) -> str:
    said = differing.sentence(pair, it, pair.a, pair.b, NAMES)
    return said if it.verdict in differing.DECIDED else f"{pair.b} beside {pair.a}: {said}"
