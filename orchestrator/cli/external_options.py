"""What the options of `cab external run` ask for; whatever is wrong with one is told by its name."""

from __future__ import annotations

import math
import os
import shlex
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli.cell_options import SETTINGS, check_key, price_of
from orchestrator.errors import InputError

if TYPE_CHECKING:
    from orchestrator.external.codex_home import CodexSettings
    from orchestrator.external.container_agent import CliAgent
    from orchestrator.external.judging import HarnessRequest
    from orchestrator.external.runner import CommandAsked, RunRequest
    from orchestrator.external.tasks import ExternalTask
    from orchestrator.plan.spec import PriceSpec

COMMAND = "command"
COMMAND_TIMEOUT_S = 1800.0


def say(line: str) -> None:
    from orchestrator.report.text import safe_line

    click.echo(safe_line(line), err=True)


def sources(values: dict[str, Any]) -> list[str]:
    """The options that name tasks. Raises InputError for several."""
    given = [name for name in ("suite", "tasks_json", "dataset_name") if values[name] is not None]
    if len(given) > 1:
        raise InputError("name different tasks", place=" and ".join(map(_option, given)), mend="give one")
    return given


def _option(name: str) -> str:
    return "--dataset_name" if name == "dataset_name" else f"--{name.replace('_', '-')}"


def request_of(values: dict[str, Any], harness: HarnessRequest | None) -> RunRequest:
    """What the options ask for. Raises InputError that names the option."""
    from orchestrator.external.runner import RunRequest

    repos: Path | None = values["repos_dir"]
    if repos is not None and not repos.is_dir():
        raise InputError(f"{repos} is no directory", place="--repos-dir", mend="name the one with the clones")
    tasks, source = _tasks(values)
    agent = None if values["dry_run"] else _agent(values)
    return RunRequest(
        out=values["out"],
        benchmark=values["benchmark"],
        source=source,
        tasks=tasks,
        conditions=conditions_of(values["conditions"]),
        agent=agent,
        policy=values["policy"],
        profile=values["profile"],
        runs=values["runs"],
        workers=values["max_workers"],
        repos=repos,
        codex=_codex_settings(values),
        harness=harness,
    )


def conditions_of(text: str) -> tuple[str, ...]:
    from orchestrator.context.conditions import parse_condition

    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        parse_condition(name)
    if len(set(names)) < len(names):
        raise InputError("names a condition twice", place=f"--conditions {text}", mend="name each once")
    return names


def _tasks(values: dict[str, Any]) -> tuple[tuple[ExternalTask, ...], dict[str, Any]]:
    """The tasks, and what is kept of where they came from: no path."""
    from orchestrator.external import suites, swe_lancer, tasks

    ids = tasks.load_ids(values["instance_ids"]) if values["instance_ids"] else None
    if values["benchmark"] == "swe_lancer":
        if not values["dry_run"]:
            mend = "give --dry-run; docs/external.md tells what is not built"
            raise InputError(
                "swe_lancer's tasks are read and dry-run, no more", place="--benchmark", mend=mend
            )
        if values["tasks_json"] is None:
            raise InputError("swe_lancer's tasks come from a file", place="--benchmark", mend="--tasks-json")
        return swe_lancer.load_swe_lancer(values["tasks_json"], ids), {"file": True}
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
    timeout_s = COMMAND_TIMEOUT_S if values["timeout_s"] is None else values["timeout_s"]
    if not 0 < timeout_s < math.inf:
        raise InputError("is no number of seconds above 0", place="--timeout", mend="give one, such as 600")
    return CommandAsked(words, timeout_s, values["codex_home"])


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


def harness_of(values: dict[str, Any]) -> HarnessRequest | None:
    if not values["run_harness"]:
        for name in ("harness_command", "harness_python"):
            if values[name] is not None:
                raise InputError("is for --run-harness", place=_option(name), mend="give both")
        return None

    from orchestrator.external.harness_env import Harness, at, harness_python
    from orchestrator.external.judging import HarnessRequest

    python = values["harness_python"]

    @cache
    def find() -> Harness:
        return harness_python(say=say) if python is None else at(python)

    return HarnessRequest(find, values["harness_command"], values["max_workers"])
