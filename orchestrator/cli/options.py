"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.paths import RESULTS

results_option = click.option(
    "-r",
    "--results",
    type=click.Path(path_type=Path, file_okay=False),
    default=RESULTS,
    show_default=True,
    help="Where sweeps are stored.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")
