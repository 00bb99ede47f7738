"""A plan as a list: what would run, in its order, and what is skipped."""

from __future__ import annotations

import json

from orchestrator.report.columns import Column, fit
from orchestrator.report.table import print_skipped
from orchestrator.report.text import console, plural
from orchestrator.run.start import Matrix

_NAME_LEAST = 20


def print_plan(matrix: Matrix, *, as_json: bool) -> None:
    """Print the cells of a plan in the order in which they would start."""
    plan = matrix.plan
    if as_json:
        cells = [{"cell_id": cell.cell_id, "endpoint": cell.endpoint} for cell in plan.cells]
        skipped = [{"cell_id": cell_id, "reason": reason} for cell_id, reason in plan.skipped]
        print(json.dumps({"sweep_id": matrix.sweep_id, "cells": cells, "skipped": skipped}))  # noqa: T201
        return
    keys = [cell.key for cell in plan.cells]
    columns = [
        Column("#", [str(cell.order_index + 1) for cell in plan.cells]),
        Column("CLI", [key.cli for key in keys], right=False),
        Column("model", [key.model for key in keys], right=False, least=_NAME_LEAST),
        Column("task", [key.task for key in keys], right=False, least=_NAME_LEAST),
        Column(
            "claim at most", ["citable" if c.endpoint else "pipeline_only" for c in plan.cells], right=False
        ),
    ]
    if any(key.run > 1 for key in keys):
        columns.insert(-1, Column("run", [str(key.run) for key in keys]))
    out = console()
    table, _ = fit(columns, f"{matrix.sweep_id}: {plural(len(plan.cells), 'cell')}, in this order", out)
    out.print(table)
    print_skipped(plan.skipped, out)
