"""A plan as a list: what would run, in its order, and what is skipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rich.console import Console

from orchestrator.plan.expand import PlannedCell, shown_stack
from orchestrator.plan.runs import adaptive
from orchestrator.report.called import as_called
from orchestrator.report.columns import Column, fit
from orchestrator.report.table import print_skipped
from orchestrator.report.text import console, plural, print_json, safe_line
from orchestrator.run.start import Matrix, Prepared, ended
from orchestrator.store.names import NO_STACK
from orchestrator.store.preflight import incompatible_cells

_NAME_LEAST = 20
RUN, FINISHED, LEFT_OUT, INCOMPATIBLE = "run", "finished", "left out", "incompatible"


def print_plan(matrix: Matrix, cells: Sequence[PlannedCell] | None = None, *, as_json: bool) -> None:
    """Print cells of a plan, all by default, in the order in which they would start."""
    _print(matrix, matrix.plan.cells if cells is None else cells, {}, as_json=as_json)


def print_dry_run(call: Prepared, *, as_json: bool) -> None:
    """Print a plan with what a call would do about each cell of it, and which images it lacks. Raises what
    the call would, too.
    """
    call.todo()
    _print(call.matrix, call.matrix.plan.cells, _states(call), call.images_to_build(), as_json=as_json)


def _states(call: Prepared) -> dict[str, str]:
    """By cell: whether it would run (again, where its outcome says so), is finished, was left out, or is not
    to run since its CLI and model cannot work together.
    """
    finished, chosen = call.store.finished(), {cell.cell_id for cell in call.chosen}
    refused = {cell.cell_id for cell in incompatible_cells(call.store)}
    states = {}
    for cell in call.matrix.plan.cells:
        entry = finished.get(cell.cell_id)
        if ended(entry):
            states[cell.cell_id] = FINISHED
        elif cell.cell_id not in chosen:
            states[cell.cell_id] = LEFT_OUT
        elif cell.cell_id in refused:
            states[cell.cell_id] = INCOMPATIBLE
        else:
            states[cell.cell_id] = RUN if entry is None else f"{RUN} again ({entry.outcome})"
    return states


def _print(
    matrix: Matrix,
    cells: Sequence[PlannedCell],
    states: Mapping[str, str],
    unbuilt: Collection[str] = (),
    *,
    as_json: bool,
) -> None:
    plan = matrix.plan
    runs = _runs_of(matrix)
    if as_json:
        print_json(_as_data(matrix, cells, states, unbuilt, runs))
        return
    if states:
        cells = [cell for cell in cells if states[cell.cell_id] != LEFT_OUT]
    keys = [cell.key for cell in cells]
    columns = [
        Column("#", [str(cell.order_index + 1) for cell in cells]),
        Column("CLI", [key.cli for key in keys], right=False),
        Column("model", [key.model for key in keys], right=False, least=_NAME_LEAST),
        Column("task", [key.task for key in keys], right=False, least=_NAME_LEAST),
        Column("claim at most", ["citable" if c.endpoint else "pipeline_only" for c in cells], right=False),
    ]
    if states:
        columns[-1] = Column("would", [states[cell.cell_id] for cell in cells], right=False)
    if any(key.stack != NO_STACK for key in keys):
        columns.insert(-1, Column("stack", [shown_stack(key.stack) for key in keys], right=False))
    if any(key.run > 1 for key in keys):
        columns.insert(-1, Column("run", [str(key.run) for key in keys]))
    out = console()
    of_all = "" if len(cells) == len(plan.cells) else f" of {len(plan.cells)}"
    said = f"{plural(len(cells), 'cell')}{of_all}, in this order"
    if states:
        amounts = Counter(state.partition(" (")[0] for state in states.values())
        said = ", ".join(f"{amount} {state}" for state, amount in amounts.items())
        said = f"{said}; nothing was run or written"
    table, _ = fit(columns, f"{matrix.sweep_id}: {said}", out)
    out.print(table)
    _print_runs(runs, out)
    print_skipped(plan.skipped, out)
    for (cli, stack), plugins_less in matrix.plugins_skipped.items():
        for plugin, reason in plugins_less:
            out.print(safe_line(f"{cli}+{stack} runs without plugin {plugin}: {reason}"), soft_wrap=True)
    if unbuilt:
        build = as_called(matrix.fleet.build_command(unbuilt))
        out.print(safe_line(f"to be built before: {build}"), soft_wrap=True)


def _as_data(
    matrix: Matrix,
    cells: Sequence[PlannedCell],
    states: Mapping[str, str],
    unbuilt: Collection[str],
    runs: Mapping[str, Any] | None,
) -> dict[str, Any]:
    listed = [
        {"cell_id": cell.cell_id, "endpoint": cell.endpoint}
        | ({"state": states[cell.cell_id]} if states else {})
        for cell in cells
    ]
    skipped = [{"cell_id": cell_id, "reason": reason} for cell_id, reason in matrix.plan.skipped]
    less = [
        {"cli": cli, "stack": stack, "plugin": plugin, "reason": reason}
        for (cli, stack), plugins in matrix.plugins_skipped.items()
        for plugin, reason in plugins
    ]
    data: dict[str, Any] = {"sweep_id": matrix.sweep_id, "cells": listed, "skipped": skipped}
    data |= {"plugins_skipped": less} if matrix.stacks else {}
    data |= {"runs": runs} if runs else {}
    return data | ({"images_to_build": sorted(unbuilt)} if states else {})


def _print_runs(it: Mapping[str, Any] | None, out: Console) -> None:
    """How far adaptive runs may go, and whether they can tell anything at all; nothing of other runs."""
    if it is None:
        return
    said = f"runs: {it['min']} to {it['max']}, until the {it['until']} is decided"
    out.print(f"{said}: {it['cells_min']} to {plural(it['cells_max'], 'cell')}", soft_wrap=True)
    if it["decided_earliest"] is None:
        out.print("no two contestants are ranked: each has the fewest runs", soft_wrap=True)
    elif it["decided_earliest"] > it["max"]:
        least = plural(it["decided_earliest"], "run")
        out.print(f"with so few tasks no pair can be told apart before {least}: give more", soft_wrap=True)


def _runs_of(matrix: Matrix) -> dict[str, Any] | None:
    """Adaptive runs with the cells that they may come to; None of other runs. `decided_earliest` is the run
    after which a pair can be told apart at the earliest: where one passes every task, and the other none.
    """
    runs = adaptive(matrix.spec.runs)
    if runs is None:
        return None
    # Imported here: plans of a fixed number of runs need no statistics.
    from orchestrator.analysis.ranking import cells_at_most, decided_earliest

    first = [cell.cell_id for cell in matrix.plan.cells if cell.key.run == 1]
    return {
        **runs.model_dump(),
        "cells_min": len(first) * runs.min,
        "cells_max": cells_at_most(first, runs),
        "decided_earliest": decided_earliest(first),
    }
