"""`cab history`."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli import complete
from orchestrator.cli.options import json_option, results_option


@click.command()
@click.argument("sweeps", metavar="[SWEEP|DIR]...", nargs=-1, shell_complete=complete.sweeps)
@click.option(
    "--last", type=click.IntRange(1), default=60, show_default=True, metavar="N", help="Nights at most."
)
@results_option
@json_option
def history(sweeps: tuple[str, ...], last: int, results: Path, as_json: bool) -> None:
    """Show past nights: pass rates, changes of level, flaky tasks, model builds and pins that changed.

    Nights are the sweeps of one spec. SWEEP alone means all of its spec, nothing those of the newest sweep;
    several, or a directory of sweeps, mean exactly these.
    """
    from orchestrator.analysis.history import history as found
    from orchestrator.analysis.nights import nights_of
    from orchestrator.report.history import print_history

    print_history(found(nights_of(sweeps, results)[-last:]), as_json=as_json)
