"""`cab import published`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from orchestrator.cli.options import Group, json_option


@click.group(cls=Group, name="import")
def import_() -> None:
    """Import results that others published."""


@import_.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="The results directory to store them in.",
)
@click.option("--replace", is_flag=True, help="Replace sweeps that were imported before.")
@json_option
def published(file: Path, output: Path, replace: bool, as_json: bool) -> None:
    """Store the published cells of FILE as sweeps of their own, and recompute their composites.

    Exit code 1 when a recomputed composite is not the printed one, 2 for a file or a directory that will not
    do; nothing is stored then.
    """
    from orchestrator.report.imported import comparisons, print_import
    from orchestrator.report.summary import write_summary
    from orchestrator.run.import_published import import_published
    from orchestrator.store.cells import CellStore
    from orchestrator.store.published import read_published

    sweeps = import_published(read_published(file), file, output, replace=replace)
    for sweep in sweeps:
        write_summary(CellStore(output, sweep.sweep_id))
    print_import(sweeps, output, as_json=as_json)
    sys.exit(1 if any(one.reproduces is False for one in comparisons(sweeps)) else 0)
