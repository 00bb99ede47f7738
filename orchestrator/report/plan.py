"""A plan as a list: what would run, in its order, and what is skipped."""

from __future__ import annotations

import json

from rich.table import Table

from orchestrator.report.text import console
from orchestrator.run.start import Matrix


def print_plan(matrix: Matrix, *, as_json: bool) -> None:
    """Print the cells of a plan in the order in which they would start."""
    plan = matrix.plan
    if as_json:
        cells = [{"cell_id": cell.cell_id, "endpoint": cell.endpoint} for cell in plan.cells]
        skipped = [{"cell_id": cell_id, "reason": reason} for cell_id, reason in plan.skipped]
        print(json.dumps({"sweep_id": matrix.sweep_id, "cells": cells, "skipped": skipped}))  # noqa: T201
        return
    table = Table(title=f"{matrix.sweep_id}: {len(plan.cells)} cells", title_justify="left")
    table.add_column("#", justify="right")
    for name in ("CLI", "model", "task", "run", "claim at most"):
        table.add_column(name, overflow="fold")
    for cell in plan.cells:
        key = cell.key
        claim = "citable" if cell.endpoint else "pipeline_only"
        table.add_row(str(cell.order_index + 1), key.cli, key.model, key.task, str(key.run), claim)
    out = console()
    out.print(table)
    for cell_id, reason in plan.skipped:
        out.print(f"skipped: {cell_id}: {reason}")
