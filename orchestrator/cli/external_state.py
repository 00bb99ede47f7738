"""`cab external import` and `attribute`: sessions of one's own as tasks, and what an outcome hangs on."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.cli.options import json_option
from orchestrator.errors import InputError


@click.command("import")
@click.argument("cli", metavar="CLI", type=click.Choice(["codex", "claude-code"]))
@click.argument("log", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="LOG")
@click.option(
    "--repo",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    required=True,
    metavar="DIR",
    help="The repository that the session worked in, as it left it.",
)
@click.option("--base", metavar="REV", help="What it started from.  [the log's commit, else HEAD]")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Instead of stdout.",
)
def import_(cli: str, log: Path, repo: Path, base: str | None, output: Path | None) -> None:
    """Make a task file of an interrupted session: LOG is what CLI itself logged of it.

    It is for --tasks-json: patches can be generated from it, the harness has no tests for it.
    """
    import json

    from orchestrator.context.importers import import_log
    from orchestrator.external.session_task import session_task
    from orchestrator.report.text import safe_line
    from orchestrator.store.files import store_errors, write_durably

    made = session_task(cli, log, import_log(cli, log), repo, base)
    text = json.dumps([made.row], indent=1) + "\n"
    if output is None:
        click.echo(text, nl=False)
    else:
        with store_errors(output):
            write_durably(output, text.encode())
    for note in made.notes:
        click.echo(safe_line(note), err=True)


@click.command()
@click.argument("out", type=click.Path(path_type=Path, file_okay=False), metavar="OUT")
@json_option
@click.option("--markdown", is_flag=True, help="Print it as Markdown on stdout.")
def attribute(out: Path, as_json: bool, markdown: bool) -> None:
    """Show which groups of the state mattered in the run in OUT: stateplane beside stateplane-no_GROUP.

    Below the claim harness_evaluated, and while the harness has not judged all, no outcome is shown.
    """
    if as_json and markdown:
        raise InputError("are two ways to print", place="--json, --markdown", mend="give one")
    from orchestrator.external.attributed import print_attribution
    from orchestrator.external.attribution import attribute as attributed
    from orchestrator.external.scorecard import read_scorecard

    print_attribution(attributed(read_scorecard(out)), as_json=as_json, as_markdown=markdown)
