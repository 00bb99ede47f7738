"""`cab report`: the rates of CLIs, models, pairs, …, with their uncertainty, and what they took."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console

from orchestrator.analysis.cells import ABOUT
from orchestrator.analysis.measures import BOOTSTRAP, NOTHING_PASSED, Measure
from orchestrator.analysis.reading import Read
from orchestrator.analysis.summary import By, Line, Summary, Table
from orchestrator.report.beside import UNMEASURED, falsely, findings, refused, void
from orchestrator.report.called import as_called
from orchestrator.report.columns import Column, fit, fits
from orchestrator.report.legend import legend
from orchestrator.report.markdown import escaped
from orchestrator.report.markdown import table as markdown_table
from orchestrator.report.table import print_skipped
from orchestrator.report.text import (
    NO_PASS,
    NOT_MEASURED,
    bounded,
    bounds,
    console,
    count,
    dollars,
    from_to,
    number,
    plural,
    print_json,
    safe_line,
    seconds,
)

_NAME_LEAST = 24
_BAR = 10
_FALSELY = "falsely"
"""The column beside `refused`, by a name as short as what stands in it."""
_EIGHTHS = " ▏▎▍▌▋▊▉"
_REASONS = 3
"""Of a column, that are told."""
_COLOURS = {
    "citable": "green",
    "provisional": "",
    "imported": "",
    "unranked": "yellow",
    "pipeline_only": "yellow",
}


def print_report(found: Summary, read: Read, *, as_json: bool, as_markdown: bool) -> None:
    """Print a summary on stdout."""
    if as_json:
        skipped = [cell.model_dump(mode="json") for cell in read.skipped]
        print_json({"sweeps": list(read.sweeps), **as_data(found), "skipped": skipped})
        return
    out = console()
    if as_markdown:
        for table in found.tables:
            _print_markdown(table, found.by, out)
        return
    for table in found.tables:
        _print_table(table, found.by, out)
        out.print()
    print_skipped([(cell.cell_id, cell.reason) for cell in read.skipped], out)
    out.print(f"{plural(len(read.sweeps), 'sweep')}: {', '.join(read.sweeps)}", soft_wrap=True)
    if sum(len(table.lines) for table in found.tables) > 1:
        out.print(as_called("whether two of these differ: cab compare A B"), soft_wrap=True)


def as_data(found: Summary) -> dict[str, Any]:
    """A summary as JSON has it."""
    return asdict(found)


def _print_table(table: Table, by: By, out: Console) -> None:
    lines = sorted(table.lines, key=_best_first)
    style = "" if table.kind == "result" else "yellow"
    out.print(heading(table, by), style=f"bold {style}".strip(), soft_wrap=True)
    left_out: list[str] = []
    shown: list[tuple[str, Sequence[str]]] = []
    spent, found = _spent(lines, by), _found(lines, by)
    both = [*spent, *found[1:]]
    rest = [both] if fits(both, out) else [spent, found]
    for columns in (_rates(lines, by, bars=out.is_terminal), *rest):
        made, lacking = fit(columns, "", out)
        out.print(made)
        out.print()
        shown += [(column.name, column.cells) for column in columns if column.name not in lacking]
        left_out += lacking
    for note in notes(table, shown):
        out.print(note, style="dim", soft_wrap=True)
    if left_out:
        out.print(f"left out at this width: {', '.join(left_out)} (see --json)", style="dim", soft_wrap=True)


def _print_markdown(table: Table, by: By, out: Console) -> None:
    lines = sorted(table.lines, key=_best_first)
    columns = [*_rates(lines, by, bars=False), *_spent(lines, by)[1:], *_found(lines, by)[1:]]
    shown = [(column.name, column.cells) for column in columns]
    text = [f"**{escaped(heading(table, by))}**", "", markdown_table(columns)]
    text += [f"- {escaped(note)}" for note in notes(table, shown)]
    out.print("\n".join(text) + "\n", soft_wrap=True)


def _best_first(line: Line) -> tuple[float, str]:
    return (-1 if line.pass_rate.value is None else -line.pass_rate.value, line.name)


def heading(table: Table, by: By) -> str:
    """What a table is of: the kind of cells, the version of the methodology, and the units."""
    over = "each over its own tasks"
    if table.shared_units is not None:
        over = f"over the {plural(table.shared_units, 'unit')} that all attempted"
    elif table.same_units and by == "pair":
        over = "all over the same tasks"
    elif by in ("task", "category"):
        over = "each over all that attempted it"
    return f"by {by}: {ABOUT[table.kind]}; methodology {table.methodology}; {over}"


def _rates(lines: Sequence[Line], by: By, *, bars: bool) -> list[Column]:
    lost = any(line.infra for line in lines)
    most = min((max(line.pass_at_k, default=0) for line in lines), default=0)
    several = any(line.runs[1] > 1 for line in lines)
    columns = [
        _names(lines, by),
        Column("tasks", _cells(lines, lambda it: count(it.tasks)), worth=6),
        Column("runs", _cells(lines, lambda it: from_to(it.runs)), worth=5),
        Column("counted", _cells(lines, lambda it: f"{it.counted}/{it.counted + it.infra}"), worth=9),
        Column("pass", _cells(lines, lambda it: number(it.pass_rate.value))),
    ]
    if bars:
        columns.append(Column("", _cells(lines, _bar), worth=2, right=False, styles=["cyan"] * len(lines)))
    columns.append(Column("95 %", _cells(lines, lambda it: _interval(it.pass_rate))))
    if lost:
        columns.append(Column("if lost", _cells(lines, _if_lost), worth=8))
    if most > 1:
        columns += [
            Column(f"pass@{most}", _cells(lines, lambda it: number(it.pass_at_k.get(most))), worth=4),
            Column(f"pass^{most}", _cells(lines, lambda it: number(it.pass_hat_k.get(most))), worth=4),
        ]
    if several:
        columns += [
            Column("± run", _cells(lines, lambda it: number(it.run_sd)), worth=3),
            Column("mixed", _cells(lines, lambda it: count(it.mixed)), worth=1),
        ]
    claims = [line.claim for line in lines]
    columns += [
        Column("cab-1", _cells(lines, _composite), worth=7),
        Column("claim", claims, right=False, styles=[_COLOURS[claim] for claim in claims]),
    ]
    return columns


def _spent(lines: Sequence[Line], by: By) -> list[Column]:
    """What the passes took."""
    columns = [
        _names(lines, by),
        Column("tokens a pass", _cells(lines, lambda it: _per_pass(it.tokens_per_solved, count)), worth=9),
        Column("tokens 95 %", _cells(lines, lambda it: _between(it.tokens_per_solved, count)), worth=3),
    ]
    if any(line.usd is not None for line in lines):
        columns.append(
            Column("cost a pass", _cells(lines, lambda it: _per_pass(it.usd_per_solved, dollars)), worth=8)
        )
    return [
        *columns,
        Column("wall s", _cells(lines, lambda it: _seconds(it.wall_s)), worth=7),
        Column("agent s", _cells(lines, lambda it: _seconds(it.active_s)), worth=4),
        Column("model s", _cells(lines, lambda it: _seconds(it.model_s)), worth=4),
    ]


def _found(lines: Sequence[Line], by: By) -> list[Column]:
    """What stands beside every rate: without it a rate says too much."""
    columns = [
        _names(lines, by),
        Column("blast", _cells(lines, lambda it: number(it.blast.value)), worth=5),
        Column("void", _cells(lines, lambda it: void(it).text), worth=6),
        Column("findings", _cells(lines, lambda it: findings(it).text), worth=5),
        Column("refused", _cells(lines, lambda it: refused(it).text), worth=5),
        Column(_FALSELY, _cells(lines, lambda it: falsely(it).text), worth=5),
        Column("infra", _cells(lines, lambda it: count(it.infra - it.unjudged)), worth=8),
        Column("not run", _cells(lines, lambda it: count(it.not_run + it.skipped)), worth=6),
    ]
    if any(line.unjudged for line in lines):
        columns.append(Column("no verdict", _cells(lines, lambda it: count(it.unjudged)), worth=10))
    return columns


def _names(lines: Sequence[Line], by: By) -> Column:
    heads = {"cli": "CLI", "pair": "CLI × model"}
    return Column(heads.get(by, by), [safe_line(it.name) for it in lines], right=False, least=_NAME_LEAST)


def _cells(lines: Sequence[Line], show: Callable[[Line], str]) -> list[str]:
    return [show(line) for line in lines]


def _bar(line: Line) -> str:
    """The pass rate as a bar of at most ten characters."""
    eighths = round((line.pass_rate.value or 0) * _BAR * 8)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()).ljust(_BAR)


def _interval(of: Measure) -> str:
    return NOT_MEASURED if of.low is None or of.high is None else bounds(of.low, of.high)


def _between(of: Measure, show: Callable[[float], str]) -> str:
    """An interval whose upper end may be open."""
    if of.low is None:
        return NOT_MEASURED
    return f"[{show(of.low)}, {'∞' if of.high is None else show(of.high)}]"


def _composite(line: Line) -> str:
    """Its bounds stand for infra cells as well, so they are told only where it is not known."""
    return bounded(line.composite.value, line.composite_bounds if line.counted else None)


def _if_lost(line: Line) -> str:
    return NOT_MEASURED if line.coverage is None else bounds(*line.censored)


def _per_pass(of: Measure, show: Callable[[float | None], str]) -> str:
    return NO_PASS if of.reason == NOTHING_PASSED else show(of.value)


def _seconds(of: Measure) -> str:
    return seconds(None if of.value is None else of.value * 1000)


def notes(table: Table, shown: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """What a table's marks mean, how its intervals were made, and why what is missing is."""
    columns = dict(shown)
    found = legend(shown)
    methods = sorted({line.pass_rate.method for line in table.lines if line.pass_rate.value is not None})
    if methods:
        rest = "" if methods == [BOOTSTRAP] else f"; of the rest: {BOOTSTRAP}"
        found.append(f"95 % intervals of pass: {', '.join(methods)}{rest}")
    names = columns.keys()
    if "if lost" in names:
        none = f"; {NOT_MEASURED}: no cell was attempted"
        attempted = all(line.coverage is not None for line in table.lines)
        found.append(f"if lost: with all infra cells as failed, and as passed{'' if attempted else none}")
    if "no verdict" in names:
        found.append("no verdict: cells that wait for one; while any does, none under a condition counts")
    if "± run" in names:
        found.append(
            "± run: standard deviation of pass from run to run; mixed: passed in some runs, not in others"
        )
    found += _of_findings_and_refusals(table, columns)
    for name, measure in _MEASURES.items():
        reasons = {it.reason for line in table.lines if (it := measure(line)).value is None and it.reason}
        told = sorted(reasons - {NOTHING_PASSED})
        if name in names and told:
            more = f" and {len(told) - _REASONS} more reasons" if len(told) > _REASONS else ""
            found.append(f"{name} {NOT_MEASURED}: {'; '.join(told[:_REASONS])}{more}")
    for line in table.lines:
        for what, versions in (("versions", line.cli_versions), ("model builds", line.model_builds)):
            if len(versions) > 1 and len(line.key) > 1 - (what == "versions") and "cli" in line.key:
                found.append(safe_line(f"{line.name} merges {what} {', '.join(versions)}"))
    return found


def _of_findings_and_refusals(table: Table, columns: Mapping[str, Sequence[str]]) -> list[str]:
    found = []
    unread = sum(line.unread for line in table.lines)
    if unread and {"void", "findings"} & columns.keys():
        found.append(f"void and findings lack {plural(unread, 'cell')} that could not be read for findings")
    if _FALSELY in columns:
        found.append(f"{_FALSELY}: refused, of the cells whose task can be done")
    if NOT_MEASURED in columns.get(_FALSELY, ()):
        found.append(f"{_FALSELY} {NOT_MEASURED}: {UNMEASURED}")
    return found


_MEASURES: dict[str, Callable[[Line], Measure]] = {
    "pass": lambda line: line.pass_rate,
    "cab-1": lambda line: line.composite,
    "tokens a pass": lambda line: line.tokens_per_solved,
    "cost a pass": lambda line: line.usd_per_solved,
    "wall s": lambda line: line.wall_s,
    "agent s": lambda line: line.active_s,
    "model s": lambda line: line.model_s,
    "blast": lambda line: line.blast,
}
