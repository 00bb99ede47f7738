"""The rounds of a sweep of adaptive runs: after each, its ranking says which contestants run once more.

Each round is stored in the sweep's order before it runs, so that a sweep that was killed in one goes on with
it; which cells it has comes from the stored results alone.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING

from orchestrator.plan.expand import PlannedCell
from orchestrator.plan.only import choose, matches
from orchestrator.plan.runs import AdaptiveRuns, adaptive
from orchestrator.plan.spec import SweepSpec
from orchestrator.report.text import console, plural, safe_line
from orchestrator.run.grow import add_round
from orchestrator.run.preflight.pairs import with_known
from orchestrator.run.start import Prepared, Ready
from orchestrator.store.cells import CellStore
from orchestrator.store.names import less_run
from orchestrator.store.preflight import incompatible_cells
from orchestrator.store.record import SweepRecord

if TYPE_CHECKING:
    from orchestrator.analysis.ranking import Ranking


def runs_of(sweep: SweepRecord) -> AdaptiveRuns | None:
    """The adaptive runs that a stored sweep has; None where it has none."""
    runs = (sweep.spec or {}).get("runs")
    return AdaptiveRuns.model_validate(runs) if isinstance(runs, dict) else None


def ranking_of(sweep: SweepRecord, store: CellStore, runs: AdaptiveRuns) -> Ranking:
    """What the results of a sweep tell so far. CLIs that cannot work with their model are no contestants."""
    # Imported here: sweeps of a fixed number of runs need no statistics.
    from orchestrator.analysis.ranking import rank

    refused = {cell.cell_id for cell in incompatible_cells(store)}
    return rank(sweep.order, store.finished(), runs, refused)


def with_round(call: Prepared) -> Prepared:
    """A call that goes on with a stored sweep of adaptive runs, with the next round where nothing is left
    before it; any other call as it is.
    """
    runs = adaptive(call.matrix.spec.runs)
    if runs is None or call.spec_digest is not None or call.todo():
        return call
    stored = call.grown or call.store.sweep()
    grown = _grown(stored, call.store, runs, call.matrix.spec, call.options.only)
    if grown is None:
        return call
    matrix = call.matrix.in_order(grown.order)
    return replace(call, matrix=matrix, grown=grown, chosen=choose(matrix.plan, call.options.only))


def next_round(ready: Ready) -> Ready | None:
    """The sweep with the round that its results ask for, which is stored; None where there is none, or where
    cells are left that come before it.
    """
    runs = adaptive(ready.matrix.spec.runs)
    if runs is None or ready.bench is None:
        return None
    stored = ready.store.sweep()
    grown = _grown(stored, ready.store, runs, ready.matrix.spec, ready.only)
    if grown is None:
        return None
    ready.store.write_sweep(grown)
    matrix = ready.matrix.in_order(grown.order)
    had = set(stored.order)
    todo = [
        cell for cell in matrix.plan.cells if cell.cell_id not in had and matches(cell.cell_id, ready.only)
    ]
    _tell(ranking_of(grown, ready.store, runs), todo)
    return with_known(replace(ready, matrix=matrix, chosen=(*ready.chosen, *todo), todo=todo))


def _grown(
    stored: SweepRecord, store: CellStore, runs: AdaptiveRuns, spec: SweepSpec, only: Collection[str]
) -> SweepRecord | None:
    """The sweep's record with its next round; None where that has to wait, or there is none."""
    # Imported here, as above.
    from orchestrator.analysis.ranking import upcoming

    refused = {cell.cell_id for cell in incompatible_cells(store)}
    finished = store.finished()
    if any(cell_id not in finished and cell_id not in refused for cell_id in stored.order):
        return None
    cells = upcoming(stored.order, finished, runs, refused)
    if not any(matches(cell_id, tuple(only)) for cell_id in cells):
        return None
    return add_round(stored, cells, spec.seed)


def _tell(ranking: Ranking, todo: list[PlannedCell]) -> None:
    pairs = f"{ranking.decided} of {plural(len(ranking.comparisons), 'pair')} told apart"
    contestants = len({less_run(cell.cell_id)[0].rsplit("/", 2)[0] for cell in todo})
    run = f"run {todo[0].key.run} of {plural(contestants, 'contestant')}"
    console(stderr=True).print(safe_line(f"{pairs}; next is {run}"), soft_wrap=True)
