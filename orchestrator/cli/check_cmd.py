"""`cab check`: one cell with a CLI that is installed on this machine, without Docker."""

from __future__ import annotations

import os
import re
import signal
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from orchestrator.cli.cell_options import asked_of, cell_options, hosted
from orchestrator.cli.cell_options import check_key as check_sendable
from orchestrator.cli.options import images_dir_option, json_option
from orchestrator.errors import InputError

if TYPE_CHECKING:
    from orchestrator.gateway.contract import Endpoint
    from orchestrator.run.check import Installed
    from orchestrator.store.out import Out

NOT_CITABLE = "provisional, not for citation: it ran on this machine, in no container (docs/check.md)"


@click.command()
@cell_options
@click.option("--endpoint", metavar="URL", help="The base URL of the model's endpoint.")
@click.option(
    "--key-env",
    metavar="NAME",
    help="The variable that holds the endpoint's key. A key itself is never given here.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Leave all evidence in a new directory there, for `cab cell show`.",
)
@images_dir_option
@json_option
def check(
    endpoint: str | None,
    key_env: str | None,
    out: Path | None,
    images_dir: Path | None,
    as_json: bool,
    **values: Any,
) -> None:
    """Run one task with a CLI that is installed on this machine, without Docker.

    A provisional look, not for citation: the CLI runs here, as you. embedded/reference, a scripted model,
    needs no endpoint. Exit code 1 when the cell ended in an error that is not the agent's.
    """
    # Before anything else is imported or started: no other process is to be given it.
    key = _key(key_env)
    # A terminal that is closed ends it as Ctrl-C does.
    signal.signal(signal.SIGHUP, signal.getsignal(signal.SIGTERM))
    from orchestrator.fleet import Fleet
    from orchestrator.report.cell import print_alone
    from orchestrator.run.alone import run_alone
    from orchestrator.run.check import check_key, look, nothing_left
    from orchestrator.sandbox.scratch import scratch_alone

    asked = replace(
        asked_of(values, _endpoint(endpoint, key, key_env, values)), fleet=Fleet(elsewhere=images_dir)
    )
    if key:
        check_key()
    with ExitStack() as stack:
        stack.enter_context(nothing_left())
        with scratch_alone(0o711 if os.geteuid() == 0 else 0o700) as probing:
            installed = look(asked, os.environ, probing)
        [cell] = asked.matrix().plan.cells
        given = _out(stack, out, "~".join(cell.key.path().parts))
        evidence = stack.enter_context(scratch_alone())
        _say_where(installed)
        record = run_alone(asked, installed.place, evidence, on_stage=_say)
        print_alone(evidence, given.give(evidence) if given else None, as_json=as_json)
        click.echo(NOT_CITABLE, err=as_json)
    sys.exit(0 if record.outcome.counted else 1)


def _key(name: str | None) -> str:
    """The key that a variable holds, which this process has no longer. Raises InputError, which does not
    repeat what may be a key.
    """
    if name is None:
        return ""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        mend = "put the key into a variable, and give that variable's name"
        raise InputError("takes the name of a variable, not a key", place="--key-env", mend=mend)
    key = os.environ.pop(name, "")
    if not key:
        mend = "export it, or give the name of the variable that holds the key"
        raise InputError("no such variable is set", place=f"--key-env {name}", mend=mend)
    check_sendable(key, f"--key-env {name}")
    return key


def _endpoint(url: str | None, key: str, key_env: str | None, values: dict[str, Any]) -> Endpoint | None:
    """Where the model is. Raises InputError where it has to be said and is not, or the other way round."""
    from orchestrator.gateway.contract import Endpoint

    if not hosted(values["model"]):
        for option, value in (("--endpoint", url), ("--key-env", key_env)):
            if value is not None:
                raise InputError(f"is nothing to {values['model']}", place=option, mend="leave it out")
        return None
    if url is None:
        mend = "give --endpoint URL and --key-env NAME; embedded/reference needs neither"
        raise InputError("has no endpoint", place=f"--model {values['model']}", mend=mend)
    at = urlsplit(url)
    if at.scheme not in ("http", "https") or not at.hostname:
        raise InputError("is no http:// or https:// URL", place="--endpoint", mend="see --help")
    if at.username or at.password or at.query:
        # Not repeated: it may be a key.
        mend = "give the key by --key-env NAME"
        raise InputError(
            "is a URL with a user or a query, which may be a secret", place="--endpoint", mend=mend
        )
    return Endpoint(name="endpoint", base_url=url, key=key, wire=values["wire"])


def _out(stack: ExitStack, out: Path | None, name: str) -> Out | None:
    """Where the evidence goes, made now; None where it is not asked for."""
    from orchestrator.store.files import make_dirs
    from orchestrator.store.out import Out

    if out is None:
        return None
    make_dirs(out)
    return stack.enter_context(Out(out, name))


def _say_where(installed: Installed) -> None:
    from orchestrator.run.check import held_back

    uid = installed.place.users[0][0] if installed.place.users else os.geteuid()
    user = "you" if uid == os.geteuid() else f"uid {uid}, which is nobody's"
    version = f"{installed.version}, {installed.difference or 'the version that cab knows'}"
    click.echo(f"cab: {installed.cli} at {installed.program}, {version}", err=True)
    click.echo(f"cab: it runs on this machine as {user}, in no container, with a HOME of its own", err=True)
    for line in held_back():
        click.echo(f"cab: {line}", err=True)


def _say(stage: str) -> None:
    from orchestrator.report.text import stage_in_words
    from orchestrator.run.alone import REFERENCE

    said = "the task's own solution" if stage == REFERENCE else stage_in_words(stage)
    click.echo(f"cab: {said}", err=True)
