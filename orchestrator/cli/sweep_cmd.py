"""`cab sweep plan | run | resume | status`."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestrator.cli import INTERRUPTED
from orchestrator.cli.options import Group, json_option, results_option

if TYPE_CHECKING:
    from orchestrator.run.start import Ready

spec_argument = click.argument("spec", type=click.Path(path_type=Path))


@click.group(cls=Group)
def sweep() -> None:
    """Plan, run, resume and look at sweeps."""


@sweep.command()
@spec_argument
@json_option
def plan(spec: Path, as_json: bool) -> None:
    """Show the cells that SPEC expands to, in their order, and what is skipped. Runs nothing."""
    from orchestrator.plan.spec import load_spec
    from orchestrator.report.plan import print_plan
    from orchestrator.run.start import plan_of

    matrix = plan_of(load_spec(spec))
    matrix.check_proved()
    print_plan(matrix, as_json=as_json)


@sweep.command()
@spec_argument
@click.option("--id", "sweep_id", help="Sweep id instead of <name>-<date>.")
@results_option
@json_option
def run(spec: Path, sweep_id: str | None, results: Path, as_json: bool) -> None:
    """Run the sweep of SPEC, or what is not finished of it.

    Exit code 0 when every cell has ended, 1 when some ended in an error that is not the agent's, 2 for bad
    input or a machine that lacks something, 130 when interrupted. Ctrl-C once finishes the cells under way,
    twice stops them.
    """
    from orchestrator.run import start

    _execute(start.run(spec, results, sweep_id), as_json=as_json)


@sweep.command()
@click.argument("sweep_id")
@results_option
@json_option
def resume(sweep_id: str, results: Path, as_json: bool) -> None:
    """Run what is not finished of the stored sweep SWEEP_ID, with its own pins and order."""
    from orchestrator.run import start

    _execute(start.resume(results, sweep_id), as_json=as_json)


@sweep.command()
@click.argument("sweep_id", required=False)
@results_option
@json_option
def status(sweep_id: str | None, results: Path, as_json: bool) -> None:
    """Show the cells of SWEEP_ID (default: the newest sweep) as far as they are."""
    from orchestrator.report.table import print_sweep
    from orchestrator.store.cells import CellStore, newest_sweep

    print_sweep(CellStore(results, sweep_id or newest_sweep(results)), as_json=as_json)


def _execute(starting: AbstractContextManager[Ready], *, as_json: bool) -> None:
    """Run a sweep to its end, show what came of it, and say by the exit code how it went."""
    from orchestrator.report.live import watch
    from orchestrator.report.summary import write_summary
    from orchestrator.report.table import print_sweep

    with starting as ready:
        interrupted = watch(ready)
        write_summary(ready.store)
    print_sweep(ready.store, as_json=as_json)
    if interrupted:
        sys.exit(INTERRUPTED)
    sys.exit(1 if any(not entry.counted for entry in ready.store.finished().values()) else 0)
