"""`cab run-cell`: one cell inside one container, of its CLI's image."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from orchestrator.adapter import Wire
from orchestrator.cli.options import json_option
from orchestrator.errors import EnvironmentFault, InputError

if TYPE_CHECKING:
    from orchestrator.in_image import ThisImage

KEY_ENV, ENDPOINT_ENV = "CAB_KEY", "CAB_ENDPOINT"
OUT = Path("/out")
SETTINGS: dict[str, Any] = {
    "temperature": float,
    "top_p": float,
    "max_output_tokens": int,
    "reasoning_effort": str,
    "seed": int,
}
"""Generation settings by cab's names, each an option."""


def cell_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say which cell is meant, as far as a sweep file can say it."""
    options = [
        click.option("--tui", "cli", required=True, metavar="CLI", help="The coding-agent CLI."),
        click.option(
            "--model", default="none", metavar="ID", help="A model at the endpoint, or embedded/NAME; a baseline has none."
        ),
        click.option("--task", required=True, metavar="NAME", help="As `cab task list` has it."),
        click.option("--run", type=click.IntRange(min=1), default=1, help="The cell's run number."),
        click.option("--stack", metavar="NAME=PLUGIN,…", help="Plugins that the CLI gets, and their stack's name."),
        click.option(
            "--wire", type=click.Choice(get_args(Wire)), default="chat", help="What the endpoint speaks."
        ),
        *(
            click.option(f"--{name.replace('_', '-')}", name, type=kind, help="Set on every request.")
            for name, kind in SETTINGS.items()
        ),
        click.option("--timeout", "timeout_s", type=float, metavar="S", help="Instead of the task's own."),
        click.option("--max-tokens", type=int, metavar="N", help="What the cell may spend, in and out."),
        click.option("--max-usd", type=float, metavar="USD", help="The same in money; wants a --price."),
        click.option(
            "--price",
            "prices",
            multiple=True,
            metavar="input=USD,output=USD",
            help="For a million tokens; also cached_read, cache_write, and above=TOKENS for further ones.",
        ),
        click.option(
            "--require",
            multiple=True,
            type=click.Choice(["tokens.wire"]),
            help="Do not count a cell of which a call's tokens were not stated.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@click.command("run-cell")
@cell_options
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Leave all evidence in a new directory there; /out where that is mounted.",
)
@json_option
def run_cell(out: Path | None, as_json: bool, **asked: Any) -> None:
    """Run one cell inside this container, as `docker run … IMAGE run-cell` does, and show what came of it.

    CAB_ENDPOINT is the base URL of the model's endpoint and CAB_KEY its key; an embedded model needs neither.
    Exit code 1 when the cell ended in an error that is not the agent's.
    """
    # At once, and before anything is started: no other process is to find it.
    key = os.environ.pop(KEY_ENV, "")
    from orchestrator.in_image import this_image

    image = this_image()
    _check_container(image, asked["cli"])
    from contextlib import ExitStack

    from orchestrator.plan.one_cell import OneCell
    from orchestrator.run.outcome import TABLE
    from orchestrator.store.out import Out

    cell = OneCell(
        settings={name: value for name in SETTINGS if (value := asked.pop(name)) is not None}, **asked
    )
    raise NotImplementedError(key, cell, TABLE, Out, ExitStack, out, as_json)


def _check_container(image: ThisImage, cli: str) -> None:
    """Raises InputError and EnvironmentFault where no cell of that CLI can be run here."""
    if cli != image.cli:
        raise InputError(
            f"this image holds {image.cli}, not {cli!r}",
            place="--tui",
            mend=f"give --tui {image.cli}, or take the image of the other CLI",
        )
    if os.geteuid() != 0:
        raise EnvironmentFault(
            "run-cell keeps agent and grader apart from itself, and has to be root for that",
            place=f"uid {os.geteuid()}",
            mend="leave --user out of docker run",
        )
    if os.statvfs("/").f_flag & os.ST_RDONLY:
        raise EnvironmentFault(
            "the root file system is read-only", place="/", mend="leave --read-only out of docker run"
        )


_ = sys
