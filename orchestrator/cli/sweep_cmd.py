"""`cab sweep plan | preflight | run | resume | status`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestrator.cli import INTERRUPTED
from orchestrator.cli.complete import sweeps
from orchestrator.cli.options import Group, images_dir_option, json_option, results_option

if TYPE_CHECKING:
    from orchestrator.plan.spec import Requirement
    from orchestrator.run.start import Prepared, Ready

spec_argument = click.argument("spec", type=click.Path(path_type=Path))
runs_option = click.option(
    "--runs", type=click.IntRange(1, 1000), metavar="N", help="Runs of each cell, instead of the file's."
)
only_option = click.option(
    "--only",
    multiple=True,
    metavar="GLOB",
    help="Only cells of these ids, as 'opencode/*' or '*/polyglot/*'; may be given again.",
)
concurrency_option = click.option(
    "--concurrency", type=click.IntRange(1, 1024), metavar="N", help="Cells at a time, for this call."
)
budget_tokens_option = click.option(
    "--budget-tokens",
    type=click.IntRange(1),
    metavar="N",
    help="Tokens of the whole sweep after which no further cell starts, instead of the file's.",
)
budget_usd_option = click.option(
    "--budget-usd",
    type=click.FloatRange(0, min_open=True),
    metavar="USD",
    help="The same in USD.",
)
dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Show what would run and what is finished; run and write nothing."
)
preflight_option = click.option(
    "--preflight/--no-preflight",
    default=True,
    show_default=True,
    help="Whether each CLI first shows, with each model, that it can make one small edit.",
)


@click.group(cls=Group)
def sweep() -> None:
    """Plan, run, resume and look at sweeps."""


@sweep.command()
@spec_argument
@runs_option
@only_option
@images_dir_option
@json_option
def plan(spec: Path, runs: int | None, only: tuple[str, ...], images_dir: Path | None, as_json: bool) -> None:
    """Show the cells that SPEC expands to, in their order, and what is skipped. Runs nothing."""
    from orchestrator.plan.only import choose
    from orchestrator.plan.spec import load_spec
    from orchestrator.report.plan import print_plan
    from orchestrator.run.start import Options, plan_of

    matrix = plan_of(load_spec(spec), options=Options(runs=runs, images_dir=images_dir))
    matrix.check_proved()
    print_plan(matrix, choose(matrix.plan, only), as_json=as_json)


id_option = click.option("--id", "sweep_id", help="Sweep id instead of <name>-<date>.")


@sweep.command()
@spec_argument
@id_option
@concurrency_option
@only_option
@click.option("--again", is_flag=True, help="Repeat the handshakes whose result is known.")
@click.option(
    "--all",
    "scripted",
    is_flag=True,
    help="Also with embedded/reference, which proves CLI, image and gateway.",
)
@images_dir_option
@results_option
@json_option
def preflight(
    spec: Path,
    sweep_id: str | None,
    concurrency: int | None,
    only: tuple[str, ...],
    again: bool,
    scripted: bool,
    images_dir: Path | None,
    results: Path,
    as_json: bool,
) -> None:
    """Have each CLI of SPEC make one small edit with each model, within three tries. Keeps what came of it.

    `sweep run` does so too, but for local models, and does not repeat what is known. Exit code 0 when every
    pair is compatible, 1 when one is not or an endpoint did not tell, 2 for bad input or a machine that lacks
    something, 130 when interrupted.
    """
    from orchestrator.report.preflight import check, print_preflight
    from orchestrator.run.start import Options, of_file, started
    from orchestrator.store.preflight import read_preflight

    options = Options(concurrency=concurrency, only=only, images_dir=images_dir)
    call = of_file(spec, results, sweep_id, options)
    with started(call) as whole:
        ready, interrupted = check(whole, again=again, local=True, scripted=scripted)
        record = read_preflight(ready.store.root)
    print_preflight(ready.matrix, record, as_json=as_json)
    if interrupted:
        sys.exit(INTERRUPTED)
    sys.exit(1 if ready.incompatible or ready.held else 0)


@sweep.command()
@spec_argument
@id_option
@runs_option
@concurrency_option
@only_option
@budget_tokens_option
@budget_usd_option
@click.option(
    "--require",
    multiple=True,
    type=click.Choice(["tokens.wire", "price"]),
    help="Count no cell, or start nothing, where this is not measured; may be given again.",
)
@preflight_option
@dry_run_option
@images_dir_option
@results_option
@json_option
def run(
    spec: Path,
    sweep_id: str | None,
    runs: int | None,
    concurrency: int | None,
    only: tuple[str, ...],
    budget_tokens: int | None,
    budget_usd: float | None,
    require: tuple[Requirement, ...],
    preflight: bool,
    dry_run: bool,
    images_dir: Path | None,
    results: Path,
    as_json: bool,
) -> None:
    """Run the sweep of SPEC, or what is not finished of it.

    Exit code 0 when every cell of the call has ended, 1 when some ended in an error that is not the agent's
    or the budget was used up before, 2 for bad input or a machine that lacks something, 130 when interrupted.
    Ctrl-C once finishes the cells under way, twice stops them.
    """
    from orchestrator.plan.spec import Spending
    from orchestrator.run.start import Options, of_file

    budget = Spending(tokens=budget_tokens, usd=budget_usd)
    options = Options(runs, concurrency, only, budget, require, images_dir)
    call = of_file(spec, results, sweep_id, options)
    _execute(call, preflight=preflight, dry_run=dry_run, as_json=as_json)


@sweep.command()
@click.argument("sweep_id", shell_complete=sweeps)
@click.option(
    "--runs", type=click.IntRange(1, 1000), metavar="N", help="Add runs, until each cell has N of them."
)
@concurrency_option
@only_option
@budget_tokens_option
@budget_usd_option
@preflight_option
@dry_run_option
@images_dir_option
@results_option
@json_option
def resume(
    sweep_id: str,
    runs: int | None,
    concurrency: int | None,
    only: tuple[str, ...],
    budget_tokens: int | None,
    budget_usd: float | None,
    preflight: bool,
    dry_run: bool,
    images_dir: Path | None,
    results: Path,
    as_json: bool,
) -> None:
    """Run what is not finished of the stored sweep SWEEP_ID, with its own pins and order."""
    from orchestrator.plan.spec import Spending
    from orchestrator.run.start import Options, of_stored

    budget = Spending(tokens=budget_tokens, usd=budget_usd)
    options = Options(runs, concurrency, only, budget, images_dir=images_dir)
    call = of_stored(results, sweep_id, options)
    _execute(call, preflight=preflight, dry_run=dry_run, as_json=as_json)


@sweep.command()
@click.argument("sweep_id", required=False, shell_complete=sweeps)
@results_option
@json_option
def status(sweep_id: str | None, results: Path, as_json: bool) -> None:
    """Show SWEEP_ID (default: the newest sweep) as far as it is; while it runs, also what is under way."""
    from orchestrator.report.table import print_sweep
    from orchestrator.store.cells import CellStore, newest_sweep
    from orchestrator.store.running import runner_of

    store = CellStore(results, sweep_id or newest_sweep(results))
    print_sweep(store, as_json=as_json, runner=runner_of(store.root))


def _execute(call: Prepared, *, preflight: bool, dry_run: bool, as_json: bool) -> None:
    """Run a sweep to its end, show what came of it, and say by the exit code how it went."""
    if dry_run:
        from orchestrator.report.plan import print_dry_run
        from orchestrator.report.rounds import with_round

        print_dry_run(with_round(call), as_json=as_json)
        return
    from orchestrator.report.live import watch
    from orchestrator.report.rounds import next_round, with_round
    from orchestrator.report.summary import write_summary
    from orchestrator.report.table import print_sweep
    from orchestrator.run.start import started

    with started(call, with_round) as whole:
        ready, interrupted = whole, False
        if preflight and whole.bench is not None:
            from orchestrator.report.preflight import check

            ready, interrupted = check(whole)
        elif whole.bench is not None:
            from orchestrator.run.preflight.pairs import with_known

            ready = with_known(whole)
        coming: Ready | None = None if interrupted else ready
        while coming is not None:
            ready = coming
            interrupted = watch(ready)
            coming = None if interrupted else next_round(ready)
        write_summary(ready.store)
    print_sweep(ready.store, as_json=as_json)
    if interrupted:
        sys.exit(INTERRUPTED)
    finished = ready.store.finished()
    ended = [finished[cell.cell_id] for cell in ready.chosen if cell.cell_id in finished]
    not_run = len(ended) + len(ready.incompatible) < len(ready.chosen)
    # A night in which nothing can be measured must not look like a good one.
    nothing = bool(ready.incompatible) and not ended
    sys.exit(1 if nothing or not_run or any(not entry.counted for entry in ended) else 0)
