"""The ranking of a sweep of adaptive runs: what is decided, why it stopped, and what that saved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Console

from orchestrator.report.columns import Column, fit
from orchestrator.report.rounds import ranking_of, runs_of
from orchestrator.report.spending import budget_of
from orchestrator.report.text import count, dollars, number, plural, safe_line
from orchestrator.store.cells import CellStore
from orchestrator.store.preflight import incompatible_cells
from orchestrator.store.record import SweepRecord

if TYPE_CHECKING:
    from orchestrator.analysis.ranking import Comparison, Ranking, Saved

_OPEN_SHOWN = 8
_TOGETHER = 0.01
"""The p-value from which on tasks of a run are said to have moved together."""
TITLES = {"result": "ranking", "baseline": "ranking of baselines, which ask no model"}


def as_data(sweep: SweepRecord, store: CellStore) -> dict[str, Any] | None:
    """The ranking for `summary.json`; None for a sweep that has no adaptive runs.

    `state` is `analysis.ranking.State`, or `budget` where an open one has to wait for more of it. `saved` is
    None as long as it is open: what it will have saved is not known.
    """
    runs = runs_of(sweep)
    if runs is None:
        return None
    from orchestrator.stats.sequential import ALPHA

    ranking = ranking_of(sweep, store, runs)
    saving = _saved(sweep, store, ranking)
    return {
        "runs": runs.model_dump(),
        "alpha": ALPHA,
        "state": _state(sweep, store, ranking),
        "stopped": _why(sweep, store, ranking),
        "pairs": len(ranking.comparisons),
        "decided": ranking.decided,
        "standings": [asdict(standing) for standing in ranking.standings],
        "comparisons": [asdict(comparison) for comparison in ranking.comparisons],
        "not_ranked": list(ranking.scripted),
        "saved": None if saving is None else asdict(saving),
    }


def print_ranking(sweep: SweepRecord, store: CellStore, out: Console) -> None:
    """Print it, with the pairs that are open; nothing for a sweep that has no adaptive runs."""
    runs = runs_of(sweep)
    if runs is None:
        return
    ranking = ranking_of(sweep, store, runs)
    for kind, title in TITLES.items():
        standings = [it for it in ranking.standings if it.kind == kind]
        if not standings:
            continue
        columns = [
            Column("rank", [_rank(it.best_rank, it.worst_rank) for it in standings]),
            Column("CLI × model", [it.name for it in standings], right=False, least=24),
            Column("tasks", [count(it.tasks) for it in standings], worth=1),
            Column("runs", [count(it.runs) for it in standings]),
            Column("pass", [number(it.pass_rate) for it in standings]),
        ]
        table, _ = fit(columns, title, out)
        out.print(table)
        _print_open([it for it in ranking.comparisons if it.kind == kind and it.better is None], out)
    for it in ranking.standings:
        if it.moved_together is not None and it.moved_together <= _TOGETHER:
            said = f"{it.name}: the tasks of a run passed or failed together (p = {it.moved_together:.4f})"
            out.print(safe_line(f"{said}, as verdicts on it assume they do not"), soft_wrap=True)
    out.print(_why(sweep, store, ranking), soft_wrap=True)
    if ranking.scripted:
        said = f"not ranked, {runs.min} runs each: scripted models do what they are made to do"
        out.print(f"{said} ({plural(len(ranking.scripted), 'contestant')})", soft_wrap=True)
    if (saving := _saved(sweep, store, ranking)) is not None:
        out.print(_saving(saving, runs.max), soft_wrap=True)
    out.print()


def _print_open(comparisons: list[Comparison], out: Console) -> None:
    """The pairs that are not told apart; those that may be furthest apart first."""
    comparisons.sort(key=lambda it: (-max(abs(it.low), abs(it.high)), it.first, it.second))
    for it in comparisons[:_OPEN_SHOWN]:
        between = f"between {it.low:+.2f} and {it.high:+.2f}"
        missing = f", {plural(it.censored, 'cell')} without a result" if it.censored else ""
        said = f"{it.first} less {it.second}: {between} after {plural(it.runs, 'run')}{missing}"
        out.print(safe_line(f"  not told apart: {said}"), soft_wrap=True)
    if len(comparisons) > _OPEN_SHOWN:
        out.print(f"  … {plural(len(comparisons) - _OPEN_SHOWN, 'pair')} more (see --json)")


def _rank(best: int, worst: int) -> str:
    return str(best) if best == worst else f"{best}–{worst}"


def _state(sweep: SweepRecord, store: CellStore, ranking: Ranking) -> str:
    budget = budget_of(sweep, store)
    return "budget" if ranking.state == "open" and budget and budget.used_up else ranking.state


def _why(sweep: SweepRecord, store: CellStore, ranking: Ranking) -> str:
    """Why no further run is made, or that some is still to be."""
    pairs, runs = len(ranking.comparisons), ranking.runs
    told = f"{ranking.decided} of {plural(pairs, 'pair')} told apart"
    reasons: Mapping[str, str] = {
        "decided": f"{told}: decided, no further run is needed",
        "max_runs": f"{told} after {runs.max} runs, the most; `--runs MORE` of a resume adds to them",
        "budget": f"{told}: the budget was used up before",
        "open": f"{told}, of {runs} runs; {plural(len(ranking.to_run), 'cell')} to come in this run",
        "nothing_to_rank": f"nothing to rank: no two contestants share a task; {runs.min} runs were made",
    }
    return reasons[_state(sweep, store, ranking)]


def _saved(sweep: SweepRecord, store: CellStore, ranking: Ranking) -> Saved | None:
    from orchestrator.analysis.ranking import saved

    if ranking.state == "open":
        return None
    refused = {cell.cell_id for cell in incompatible_cells(store)}
    return saved(sweep.order, store.finished(), ranking.runs, refused)


def _saving(saving: Saved, runs: int) -> str:
    less = saving.uniform_cells - saving.cells
    said = f"ran {plural(saving.cells, 'cell')}, {runs} runs of each are {count(saving.uniform_cells)}: "
    said += f"{count(less)} saved ({less / saving.uniform_cells:.0%})"
    parts = []
    if saving.tokens is not None and saving.uniform_tokens is not None:
        parts.append(f"{count(saving.uniform_tokens - saving.tokens)} tokens")
    if saving.usd is not None and saving.uniform_usd is not None:
        parts.append(dollars(saving.uniform_usd - saving.usd))
    return f"{said}, about {' and '.join(parts)}" if parts else said
