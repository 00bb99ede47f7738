"""More runs for a stored sweep, as `cab sweep resume ID --runs N` or the ranking of adaptive runs asks for.

Run 1 of every cell starts before run 2 of any, so what is added comes last in the sweep's order, which stays
what it would have been from the start.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from orchestrator.errors import InputError
from orchestrator.plan.expand import Plan, interleave
from orchestrator.plan.runs import AdaptiveRuns, adaptive, most
from orchestrator.plan.spec import SweepSpec
from orchestrator.store.names import CellKey, less_run
from orchestrator.store.record import SkippedCell, SweepRecord


def grow(stored: SweepRecord, spec: SweepSpec, runs: int, plan: Plan) -> SweepRecord:
    """The record of a sweep of `spec` whose cells are to have `runs` runs each; `plan` is that of so many.

    Only what was part of the sweep grows: a model that was skipped stays so. Of adaptive runs it is the most
    that is set: which cells come of it depends on the ranking. Raises InputError for fewer runs than there
    are.
    """
    had = most(spec.runs)
    if runs < had:
        raise InputError(
            f"{stored.sweep_id} has runs: {spec.runs}", place=f"--runs {runs}", mend="runs can only be added"
        )
    if limits := adaptive(spec.runs):
        return stored.model_copy(update={"spec": _with_runs(spec, limits.model_copy(update={"max": runs}))})
    members = {less_run(cell_id)[0] for cell_id in stored.order}
    # With what cannot be run here now: that it is part of the sweep is told when it is asked for.
    planned = [cell.cell_id for cell in plan.cells] + [cell_id for cell_id, _ in plan.skipped]
    added = [cell_id for cell_id in planned if less_run(cell_id)[0] in members and less_run(cell_id)[1] > had]
    reasons = {less_run(cell.cell_id)[0]: cell.reason for cell in stored.skipped}
    skipped = [
        SkippedCell(cell_id=f"{name}#run{run}", reason=reason)
        for name, reason in reasons.items()
        for run in range(had + 1, runs + 1)
    ]
    return stored.model_copy(
        update={
            "order": (*stored.order, *added),
            "spec": _with_runs(spec, runs),
            "skipped": (*stored.skipped, *skipped),
        }
    )


def add_round(stored: SweepRecord, cells: Iterable[str], seed: int) -> SweepRecord:
    """The record of a sweep with these cells as well, last in its order and interleaved as all are."""
    keys = interleave((CellKey.of_id(cell_id)[1] for cell_id in cells), seed)
    added = (key.cell_id(stored.sweep_id) for key in keys)
    return stored.model_copy(update={"order": (*stored.order, *added)})


def _with_runs(spec: SweepSpec, runs: int | AdaptiveRuns) -> dict[str, Any]:
    return spec.model_copy(update={"runs": runs}).model_dump(mode="json")
