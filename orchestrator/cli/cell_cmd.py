"""`cab cell show | score`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from orchestrator.cli.options import Group, json_option, results_option
from orchestrator.report.text import print_json

cell_argument = click.argument("cell")


@click.group(cls=Group)
def cell() -> None:
    """Show one finished cell, or score it again.

    CELL is a cell id as tables print it (free-20261127/oracle/none/polyglot/…#run1), or a directory.
    """


@cell.command()
@cell_argument
@results_option
@json_option
def show(cell: str, results: Path, as_json: bool) -> None:
    """Show what came of CELL and why: verdict, failed tests, axes, time, model calls, diff, files."""
    from orchestrator.report.cell import print_cell
    from orchestrator.store.cells import find_cell

    print_cell(find_cell(results, cell), as_json=as_json)


@cell.command()
@cell_argument
@results_option
@json_option
def score(cell: str, results: Path, as_json: bool) -> None:
    """Score the stored evidence of CELL again, without Docker.

    Exit code 1 when a number differs from the record.
    """
    from orchestrator.run.rescore import rescore
    from orchestrator.store.cells import find_cell

    again = rescore(find_cell(results, cell))
    if as_json:
        differences = {key: {"stored": old, "now": new} for key, (old, new) in again.differences.items()}
        print_json({"cell_id": again.record.cell_id, "scores": again.scores, "differences": differences})
    else:
        from orchestrator.report.scores import print_scores
        from orchestrator.report.text import plural, safe_line

        print_scores(again.scores)
        for key, (old, new) in again.differences.items():
            click.echo(safe_line(f"{key}: stored {old!r}, now {new!r}"))
        differ = plural(len(again.differences), "number")
        click.echo(f"{differ} not as stored" if again.differences else "same as stored")
    sys.exit(1 if again.differences else 0)
