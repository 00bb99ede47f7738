"""`cab explain composite`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from orchestrator.cli.cell_cmd import cell_argument
from orchestrator.cli.options import Group, json_option, results_option

FORMULAS = ("cab-1", "published-0.1")


@click.group(cls=Group)
def explain() -> None:
    """Show how a number came about."""


@explain.command()
@cell_argument
@click.option(
    "--formula",
    type=click.Choice(FORMULAS),
    default=FORMULAS[0],
    show_default=True,
    help="Which composite; published-0.1 is for comparison with published cells.",
)
@results_option
@json_option
def composite(cell: str, formula: str, results: Path, as_json: bool) -> None:
    """Show the composite of CELL term by term, and whether the terms give what is stored.

    Exit code 1 when they do not.
    """
    from orchestrator.analysis.explain import explain as terms_of
    from orchestrator.report.explained import print_explanation
    from orchestrator.store.cells import find_cell, read_cell
    from orchestrator.store.evidence import load_facts

    cell_dir = find_cell(results, cell)
    record = read_cell(cell_dir)
    facts = None if record.imported is not None else load_facts(cell_dir)
    said = terms_of(record.scores, formula, facts)
    print_explanation(record.cell_id, said, as_json=as_json)
    sys.exit(1 if said.holds is False else 0)
