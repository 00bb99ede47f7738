"""More runs for a stored sweep, as `cab sweep resume ID --runs N` asks for them.

Run 1 of every cell starts before run 2 of any, so what is added comes last in the sweep's order, which stays
what it would have been from the start.
"""

from __future__ import annotations

from orchestrator.errors import InputError
from orchestrator.plan.expand import Plan
from orchestrator.plan.spec import SweepSpec
from orchestrator.store.record import SkippedCell, SweepRecord


def grow(stored: SweepRecord, spec: SweepSpec, runs: int, plan: Plan) -> SweepRecord:
    """The record of a sweep of `spec` whose cells are to have `runs` runs each; `plan` is that of so many.

    Only what was part of the sweep grows: a model that was skipped stays so. Raises InputError for fewer runs
    than there are.
    """
    had = spec.runs
    if runs < had:
        raise InputError(
            f"{stored.sweep_id} has runs: {had}", place=f"--runs {runs}", mend="runs can only be added"
        )
    members = {_less_run(cell_id)[0] for cell_id in stored.order}
    # With what cannot be run here now: that it is part of the sweep is told when it is asked for.
    planned = [cell.cell_id for cell in plan.cells] + [cell_id for cell_id, _ in plan.skipped]
    added = [
        cell_id for cell_id in planned if _less_run(cell_id)[0] in members and _less_run(cell_id)[1] > had
    ]
    reasons = {_less_run(cell.cell_id)[0]: cell.reason for cell in stored.skipped}
    skipped = [
        SkippedCell(cell_id=f"{name}#run{run}", reason=reason)
        for name, reason in reasons.items()
        for run in range(had + 1, runs + 1)
    ]
    return stored.model_copy(
        update={
            "order": (*stored.order, *added),
            "spec": spec.model_copy(update={"runs": runs}).model_dump(mode="json"),
            "skipped": (*stored.skipped, *skipped),
        }
    )


def _less_run(cell_id: str) -> tuple[str, int]:
    """A cell's id without its run, and the run."""
    name, _, run = cell_id.rpartition("#run")
    return name, int(run)
