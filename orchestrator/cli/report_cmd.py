"""`cab report` and `cab compare`."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli import complete
from orchestrator.cli.options import json_option, results_option

KEYS = ("cli", "model", "pair", "category", "task", "stack", "condition")
SPLITS = ("cli", "model", "pair", "category", "stack", "condition")

markdown_option = click.option("--markdown", "as_markdown", is_flag=True, help="Print Markdown on stdout.")
sweeps_argument = click.argument("sweeps", metavar="[SWEEP]...", nargs=-1, shell_complete=complete.sweeps)


@click.command()
@sweeps_argument
@click.option(
    "--by", type=click.Choice(KEYS), default="pair", show_default=True, help="What each line is about."
)
@click.option("--methodology", metavar="VERSION", help="Only results of this version of the methodology.")
@markdown_option
@results_option
@json_option
def report(
    sweeps: tuple[str, ...],
    by: str,
    methodology: str | None,
    as_markdown: bool,
    results: Path,
    as_json: bool,
) -> None:
    """Show rates with their intervals, and what they took, of SWEEP… (default: the newest sweep).

    SWEEP is a sweep's id, its directory, or a directory of sweeps.
    """
    from orchestrator.analysis.reading import read
    from orchestrator.analysis.summary import BYS, summarise
    from orchestrator.analysis.units import units_of
    from orchestrator.errors import InputError
    from orchestrator.nearest import nearest
    from orchestrator.report.rates import print_report

    found = read(sweeps, results)
    known = sorted({cell.methodology for cell in found.cells})
    if methodology is not None and methodology not in known:
        mend = nearest(methodology, known)
        raise InputError(f"no result is of version {methodology!r}", place="--methodology", mend=mend)
    [key] = [it for it in BYS if it == by]
    made = summarise(units_of(found.cells), key, methodology=methodology, skipped=found.skipped)
    print_report(made, found, as_json=as_json, as_markdown=as_markdown)


@click.command()
@click.argument("a", shell_complete=complete.sweeps)
@click.argument("b", shell_complete=complete.sweeps)
@sweeps_argument
@click.option(
    "--by",
    type=click.Choice(SPLITS),
    help="Compare each of these for itself, corrected for how many they are.",
)
@markdown_option
@results_option
@json_option
def compare(
    a: str, b: str, sweeps: tuple[str, ...], by: str | None, as_markdown: bool, results: Path, as_json: bool
) -> None:
    """Say whether B is better than A, over the tasks that both share.

    A and B are two sweeps; or two CLIs, models, stacks or conditions of SWEEP… (default: the newest
    sweep), by name or as cli=NAME,model=NAME,stack=NAME,condition=NAME,sweep=ID.
    """
    from orchestrator.analysis.compare import SPLITS as KNOWN
    from orchestrator.analysis.compare import compare as compared
    from orchestrator.analysis.reading import read_sides
    from orchestrator.report.compared import print_comparison

    found = read_sides(a, b, sweeps, results)
    split = next((it for it in KNOWN if it == by), None)
    print_comparison(compared(*found, split), as_json=as_json, as_markdown=as_markdown)
