"""`cab external …`: benchmarks of others, with the context of earlier work as a condition."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli import INTERRUPTED
from orchestrator.cli.cell_options import measured_options
from orchestrator.cli.external_options import conditions_of, harness_of, request_of, say, sources
from orchestrator.cli.external_state import attribute, import_
from orchestrator.cli.options import Group, json_option
from orchestrator.errors import InputError
from orchestrator.external import MAX_RUNS

if TYPE_CHECKING:
    from orchestrator.report.forms import Form

CONDITIONS = "transcript_replay,compact_summary,stateplane"


@click.group(cls=Group)
def external() -> None:
    """Run external benchmarks under context conditions, and look at what came of it."""


external.add_command(import_)
external.add_command(attribute)


@external.command()
@click.option(
    "--benchmark",
    type=click.Choice(["swebench", "swe_lancer"]),
    default="swebench",
    show_default=True,
    help="swe_lancer: its task format is read and dry-run, no more.",
)
@click.option("--suite", metavar="NAME", help="Tasks that cab carries: smoke or continuation.")
@click.option(
    "--tasks-json", type=click.Path(path_type=Path), metavar="FILE", help="Tasks in a file of rows."
)
@click.option("--dataset_name", "--dataset-name", metavar="NAME", help="Tasks of a data set, by its id.")
@click.option("--split", default="test", show_default=True, help="Of --dataset_name.")
@click.option(
    "--instance-ids",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A JSON list of the instances to take.",
)
@click.option(
    "--conditions",
    default=CONDITIONS,
    show_default=True,
    metavar="NAME,…",
    help="How earlier work is packaged.",
)
@click.option("--dry-run", is_flag=True, help="Prompts and made-up patches: no model, engine or network.")
@click.option(
    "--agent",
    default="codex",
    show_default=True,
    metavar="CLI",
    help="A CLI of cab's, in containers; or `command`, on this machine.",
)
@click.option(
    "--agent-command",
    metavar="LINE",
    help="With --agent command: it gets the prompt on stdin, and its file as {prompt_file}.",
)
@click.option(
    "--model", metavar="ID", help="embedded/NAME, local/NAME, or one at CAB_ENDPOINT. [embedded/reference]"
)
@click.option("--codex-model", metavar="ID", help="The same, with --agent codex.")
@measured_options
@click.option(
    "--codex-home",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Take settings that hold no secret from a Codex of your own.",
)
@click.option(
    "--repos-dir",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Clones of the tasks' repositories, each as OWNER__NAME.",
)
@click.option("--runs", type=click.IntRange(1, MAX_RUNS), default=1, show_default=True, help="Of each cell.")
@click.option(
    "--max-workers",
    type=click.IntRange(1, 256),
    default=1,
    show_default=True,
    help="Cells, and instances of the harness, at a time.",
)
@click.option("--run-harness", is_flag=True, help="Have the patches judged; alone with --out, only that.")
@click.option(
    "--harness-command",
    metavar="LINE",
    help="Instead of the harness's own command line: a template (docs/external.md).",
)
@click.option(
    "--harness-python",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A Python with swebench in it; else cab makes one.",
)
@click.option(
    "--stateplane-policy",
    "policy",
    type=click.Choice(["auto", "single_shot", "continuation", "debug", "eval"]),
    default="auto",
    show_default=True,
    help="What of the state is chosen.",
)
@click.option(
    "--stateplane-profile",
    "profile",
    type=click.Choice(["none", "minimal", "compact", "full", "receipt"]),
    help="How much of it is carried.  [the policy's]",
)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), required=True, metavar="DIR", help="The run."
)
@json_option
@click.option("--markdown", is_flag=True, help="Print report.md on stdout.")
@click.option("--csv", "as_csv", is_flag=True, help="Print report.csv on stdout.")
def run(as_json: bool, markdown: bool, as_csv: bool, **values: Any) -> None:
    """Run tasks under conditions: the same tasks, agent and harness, another prompt.

    The same command again goes on where it stopped. CAB_ENDPOINT and CAB_KEY are the endpoint's URL and key.
    Exit code 0 when every attempt has ended, and was judged where that was asked for; 1 when not; 2 for bad
    input or a machine that lacks something; 130 when interrupted.
    """
    _form(as_json, markdown, as_csv)
    from orchestrator.external.report import print_card
    from orchestrator.external.runner import evaluate
    from orchestrator.external.runner import run as run_all

    harness = harness_of(values)
    if sources(values):
        card, interrupted = run_all(request_of(values, harness), say)
    elif harness is not None:
        card, interrupted = evaluate(values["out"], harness, say), False
    else:
        mend = "give --suite, --tasks-json or --dataset_name; or --run-harness, to judge what is there"
        raise InputError("no tasks are named", place="cab external run", mend=mend)
    print_card(card, as_json=as_json, markdown=markdown, as_rows=as_csv)
    if interrupted:
        sys.exit(INTERRUPTED)
    whole = len(card.results) == len(card.tasks) * len(card.conditions) * card.runs
    judged = harness is None or (card.claim.level == "harness_evaluated" and not card.claim.partial)
    sys.exit(0 if whole and judged else 1)


@external.command()
@click.argument("out", type=click.Path(path_type=Path, file_okay=False), metavar="OUT")
@json_option
@click.option("--markdown", is_flag=True, help="Print it as Markdown on stdout.")
@click.option("--csv", "as_csv", is_flag=True, help="Print a row for each result on stdout.")
@click.option(
    "--all", "every", is_flag=True, help="Every two conditions in full, and every task, also of many."
)
def report(out: Path, as_json: bool, markdown: bool, as_csv: bool, every: bool) -> None:
    """Show what came of a run, as far as its claim allows, from its directory OUT.

    Below the claim harness_evaluated, and while the harness has not judged all, there is no resolved rate.
    """
    _form(as_json, markdown, as_csv)
    from orchestrator.external.report import print_card
    from orchestrator.external.scorecard import read_scorecard

    print_card(read_scorecard(out), as_json=as_json, markdown=markdown, as_rows=as_csv, every=every)


_fixtures_option = click.option(
    "--fixtures",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Fixtures of your own, instead of those that cab carries.",
)
_markdown_option = click.option("--markdown", is_flag=True, help="Print Markdown on stdout.")
_csv_option = click.option("--csv", "as_csv", is_flag=True, help="Print CSV on stdout.")


@external.command()
@_fixtures_option
@click.option(
    "--conditions", default=CONDITIONS, show_default=True, metavar="NAME,…", help="What is compared."
)
@json_option
@_markdown_option
@_csv_option
def continuation(fixtures: Path | None, conditions: str, as_json: bool, markdown: bool, as_csv: bool) -> None:
    """Say what of interrupted sessions survives each condition: no model, no engine, the same every time.

    Exit code 0 whatever is found.
    """
    form, names = _form(as_json, markdown, as_csv), conditions_of(conditions)
    from orchestrator.context.continuation import evaluate
    from orchestrator.context.fixtures import FIXTURES, load_fixtures
    from orchestrator.report.continuation import print_continuation

    print_continuation(evaluate(load_fixtures(fixtures or FIXTURES), names), form)


@external.command()
@_fixtures_option
@json_option
@_markdown_option
@_csv_option
def value(fixtures: Path | None, as_json: bool, markdown: bool, as_csv: bool) -> None:
    """Say what each group of the state is worth: the continuation eval with it and without it.

    Exit code 0 whatever is found.
    """
    form = _form(as_json, markdown, as_csv)
    from orchestrator.context.fixtures import FIXTURES, load_fixtures
    from orchestrator.context.value import value as valued
    from orchestrator.report.group_value import print_value

    print_value(valued(load_fixtures(fixtures or FIXTURES)), form)


def _form(as_json: bool, markdown: bool, as_csv: bool) -> Form:
    """The one form that is asked for. Raises InputError for several."""
    if sum((as_json, markdown, as_csv)) > 1:
        raise InputError("are three ways to print", place="--json, --markdown, --csv", mend="give one")
    return "json" if as_json else "markdown" if markdown else "csv" if as_csv else "text"
