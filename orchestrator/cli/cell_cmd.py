"""`cab cell show | score | replay`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from orchestrator.cli import INTERRUPTED
from orchestrator.cli.complete import cells
from orchestrator.cli.options import Group, images_dir_option, json_option, results_option
from orchestrator.report.text import print_json

cell_argument = click.argument("cell", shell_complete=cells)


@click.group(cls=Group)
def cell() -> None:
    """Show one finished cell, score it again, or replay it.

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


@cell.command()
@cell_argument
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the replay as a sweep of its own in this results directory.",
)
@click.option("--paced", is_flag=True, help="Give each answer in the time that it took.")
@images_dir_option
@results_option
@json_option
def replay(
    cell: str, output: Path | None, paced: bool, images_dir: Path | None, results: Path, as_json: bool
) -> None:
    """Run CELL again in its container with the recorded answers: no endpoint, no cost.

    Its image, task and adapter have to be those it was run with. Shows whether outcome, diff and scores are
    the same, or the first request that is not a recorded one. Exit code 1 when something differs.
    """
    from tempfile import TemporaryDirectory

    from orchestrator.report.live import watch
    from orchestrator.report.replay import print_replay
    from orchestrator.run.replay import compare, prepare, started
    from orchestrator.store.cells import find_cell

    call = prepare(find_cell(results, cell), paced=paced, images_dir=images_dir)
    with TemporaryDirectory(prefix="cab-replay-") as shown_only:
        with started(call, output or Path(shown_only)) as ready:
            interrupted = watch(ready)
        if interrupted and not ready.store.finished():
            sys.exit(INTERRUPTED)
        found = compare(call, ready.store)
    print_replay(found, output, as_json=as_json)
    sys.exit(0 if found.same else 1)
