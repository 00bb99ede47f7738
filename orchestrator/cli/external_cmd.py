"""`cab external …`: benchmarks of others, with the context of earlier work as a condition."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli import INTERRUPTED
from orchestrator.cli.cell_options import SETTINGS, check_key, measured_options, price_of
from orchestrator.cli.external_state import attribute, import_
from orchestrator.cli.options import Group, json_option
from orchestrator.errors import InputError

if TYPE_CHECKING:
    from orchestrator.external.codex_home import CodexSettings
    from orchestrator.external.container_agent import CliAgent
    from orchestrator.external.judging import HarnessRequest
    from orchestrator.external.runner import CommandAsked, RunRequest
    from orchestrator.external.tasks import ExternalTask
    from orchestrator.plan.spec import PriceSpec
    from orchestrator.report.forms import Form

CONDITIONS = "transcript_replay,compact_summary,stateplane"
COMMAND = "command"
COMMAND_TIMEOUT_S = 1800.0


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
@click.option("--runs", type=click.IntRange(1, 100), default=1, show_default=True, help="Of each cell.")
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
    _one_form(as_json, markdown, as_csv)
    from orchestrator.external.report import print_card
    from orchestrator.external.runner import evaluate
    from orchestrator.external.runner import run as run_all

    harness = _harness(values)
    if _sources(values):
        card, interrupted = run_all(_request(values, harness), _say)
    elif harness is not None:
        card, interrupted = evaluate(values["out"], harness, _say), False
    else:
        mend = "give --suite, --tasks-json or --dataset_name; or --run-harness, to judge what is there"
        raise InputError("no tasks are named", place="cab external run", mend=mend)
    print_card(card, as_json=as_json, markdown=markdown, as_rows=as_csv)
    if interrupted:
        sys.exit(INTERRUPTED)
    tasks = len({result.instance_id for result in card.results})
    whole = bool(tasks) and len(card.results) == tasks * len(card.conditions) * card.runs
    judged = harness is None or (card.claim.level == "harness_evaluated" and not card.claim.partial)
    sys.exit(0 if whole and judged else 1)


@external.command()
@click.argument("out", type=click.Path(path_type=Path, file_okay=False), metavar="OUT")
@json_option
@click.option("--markdown", is_flag=True, help="Print it as Markdown on stdout.")
@click.option("--csv", "as_csv", is_flag=True, help="Print a row for each result on stdout.")
def report(out: Path, as_json: bool, markdown: bool, as_csv: bool) -> None:
    """Show what came of a run, as far as its claim allows, from its directory OUT.

    Below the claim harness_evaluated, and while the harness has not judged all, there is no resolved rate.
    """
    _one_form(as_json, markdown, as_csv)
    from orchestrator.external.report import print_card
    from orchestrator.external.scorecard import read_scorecard

    print_card(read_scorecard(out), as_json=as_json, markdown=markdown, as_rows=as_csv)


def _one_form(*forms: bool) -> None:
    """Raises InputError for several ways to print."""
    if sum(forms) > 1:
        raise InputError("are three ways to print", place="--json, --markdown, --csv", mend="give one")


def _say(line: str) -> None:
    from orchestrator.report.text import safe_line

    click.echo(safe_line(line), err=True)


def _sources(values: dict[str, Any]) -> list[str]:
    """The options that name tasks. Raises InputError for several."""
    given = [name for name in ("suite", "tasks_json", "dataset_name") if values[name] is not None]
    if len(given) > 1:
        raise InputError("name different tasks", place=" and ".join(map(_option, given)), mend="give one")
    return given


def _option(name: str) -> str:
    return "--dataset_name" if name == "dataset_name" else f"--{name.replace('_', '-')}"


def _request(values: dict[str, Any], harness: HarnessRequest | None) -> RunRequest:
    """What the options ask for. Raises InputError that names the option."""
    from orchestrator.external.runner import RunRequest

    tasks, source = _tasks(values)
    agent = None if values["dry_run"] else _agent(values)
    return RunRequest(
        out=values["out"],
        benchmark=values["benchmark"],
        source=source,
        tasks=tasks,
        conditions=_conditions(values["conditions"]),
        agent=agent,
        policy=values["policy"],
        profile=values["profile"],
        runs=values["runs"],
        workers=values["max_workers"],
        repos=values["repos_dir"],
        codex=_codex_settings(values),
        harness=harness,
    )


def _conditions(text: str) -> tuple[str, ...]:
    from orchestrator.context.conditions import parse_condition

    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        parse_condition(name)
    if len(set(names)) < len(names):
        raise InputError("names a condition twice", place=f"--conditions {text}", mend="name each once")
    return names


def _tasks(values: dict[str, Any]) -> tuple[tuple[ExternalTask, ...], dict[str, Any]]:
    """The tasks, and what is kept of where they came from: no path."""
    from orchestrator.external import suites, tasks

    ids = tasks.load_ids(values["instance_ids"]) if values["instance_ids"] else None
    if values["benchmark"] == "swe_lancer":
        if not values["dry_run"]:
            mend = "give --dry-run; docs/external.md tells what is not built"
            raise InputError(
                "swe_lancer's tasks are read and dry-run, no more", place="--benchmark", mend=mend
            )
        if values["tasks_json"] is None:
            raise InputError("swe_lancer's tasks come from a file", place="--benchmark", mend="--tasks-json")
        return tasks.chosen(tasks.load_swe_lancer(values["tasks_json"]), ids, "--tasks-json"), {"file": True}
    if values["suite"] is not None:
        return suites.load_suite(values["suite"], ids), {"suite": values["suite"]}
    if values["tasks_json"] is not None:
        return tasks.load_tasks_json(values["tasks_json"], ids), {"file": True}
    name, split = values["dataset_name"], values["split"]
    local = "/" in name and Path(name).exists()
    told = {"dataset": Path(name).name if local else name, "split": split}
    return tasks.load_dataset(name, split, ids), told


def _agent(values: dict[str, Any]) -> CliAgent | CommandAsked:
    if values["agent"] == COMMAND:
        return _command(values)
    if values["agent_command"] is not None:
        raise InputError("is for --agent command", place="--agent-command", mend="leave one of both out")
    from pydantic import ValidationError

    from orchestrator.external.container_agent import KEY, CliAgent
    from orchestrator.fleet import Fleet
    from orchestrator.gateway.settings import GenerationSettings
    from orchestrator.plan.spec import LimitSpec

    cli = values["agent"]
    settings = {name: values[name] for name in SETTINGS if values[name] is not None}
    try:
        agent = CliAgent(
            cli=cli,
            model=_model(values, Fleet(), cli),
            wire=values["wire"],
            keyed=bool(os.environ.get(KEY)),
            settings=GenerationSettings(**settings),
            price=_price(values["prices"]),
            limits=LimitSpec(tokens=values["max_tokens"], usd=values["max_usd"]),
            timeout_s=values["timeout_s"],
            require=tuple(values["require"]),
            stacked=(found := _codex_settings(values)) is not None and bool(found.taken),
        )
        agent.check()
        agent.spec("try", ("benchmark/task",), (), 1, 1)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][-1]) if first["loc"] else "option"
        place = {"tokens": "--max-tokens", "usd": "--max-usd", "timeout_s": "--timeout"}.get(
            name, f"--{name.replace('_', '-')}"
        )
        said = first["msg"].removeprefix("Value error, ")
        raise InputError(said, place=place, mend="see --help") from None
    _check_endpoint(agent, bool(settings or values["prices"]))
    return agent


def _model(values: dict[str, Any], fleet: Any, cli: str) -> str:
    model, codex_model = values["model"], values["codex_model"]
    if codex_model is not None:
        if cli != "codex":
            mend = "give --model"
            raise InputError(f"is for --agent codex, not {cli}", place="--codex-model", mend=mend)
        if model not in (None, codex_model):
            raise InputError("name two models", place="--model and --codex-model", mend="give one")
        return str(codex_model)
    if model is not None:
        return str(model)
    asks = cli not in fleet.known or cli in fleet.unavailable or fleet.adapter(cli).uses_model
    return "embedded/reference" if asks else "none"


def _check_endpoint(agent: CliAgent, set_on_it: bool) -> None:
    """Raises InputError where the environment does not say where the model is."""
    from orchestrator.external.container_agent import ENDPOINT, KEY

    if agent.hosted:
        if not os.environ.get(ENDPOINT):
            mend = f"set {ENDPOINT} and {KEY}; embedded/reference needs none"
            raise InputError(f"{ENDPOINT} is not set", place=f"--model {agent.model}", mend=mend)
        check_key(os.environ.get(KEY, ""), KEY)
    elif set_on_it and not agent.model.startswith("local/"):
        mend = "leave price and settings out"
        raise InputError("an embedded model has neither", place=f"--model {agent.model}", mend=mend)


def _price(texts: tuple[str, ...]) -> PriceSpec | None:
    from orchestrator.plan.spec import PriceSpec

    found = price_of(texts)
    if found is None:
        return None
    if len(found.rates) > 1:
        raise InputError("has no rates above a number of tokens here", place="--price", mend="give one")
    return PriceSpec(**found.rates[0].model_dump(exclude={"above"}))


def _command(values: dict[str, Any]) -> CommandAsked:
    from orchestrator.external.runner import CommandAsked

    line = values["agent_command"]
    if line is None:
        mend = "give it, such as --agent-command 'codex exec --full-auto -'"
        raise InputError("--agent command needs --agent-command", place="--agent", mend=mend)
    for name in ("model", "codex_model", "max_tokens", "max_usd", *SETTINGS):
        if values[name] is not None:
            mend = "say it in the command line itself"
            raise InputError("says nothing to a command on this machine", place=_option(name), mend=mend)
    try:
        words = tuple(shlex.split(line))
    except ValueError as error:
        raise InputError(f"is no command line: {error}", place="--agent-command", mend="quote it") from None
    if not words:
        raise InputError("is empty", place="--agent-command", mend="give a command")
    return CommandAsked(words, values["timeout_s"] or COMMAND_TIMEOUT_S, values["codex_home"])


def _codex_settings(values: dict[str, Any]) -> CodexSettings | None:
    """What is taken from `--codex-home` into cells. A command on this machine gets the directory itself."""
    home = values["codex_home"]
    if home is None or values["agent"] == COMMAND:
        return None
    if values["agent"] != "codex":
        mend = "leave it out"
        raise InputError(f"is for codex, not {values['agent']}", place="--codex-home", mend=mend)
    from orchestrator.external.codex_home import read_codex_home

    return read_codex_home(home)


def _harness(values: dict[str, Any]) -> HarnessRequest | None:
    if not values["run_harness"]:
        for name in ("harness_command", "harness_python"):
            if values[name] is not None:
                raise InputError("is for --run-harness", place=_option(name), mend="give both")
        return None
    from functools import cache

    from orchestrator.external.harness_env import Harness, at, harness_python
    from orchestrator.external.judging import HarnessRequest

    python = values["harness_python"]

    @cache
    def find() -> Harness:
        return harness_python() if python is None else at(python)

    return HarnessRequest(find, values["harness_command"], values["max_workers"])


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
    form, names = _form(as_json, markdown, as_csv), _conditions(conditions)
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
