"""`cab run-cell`: one cell inside one container, of its CLI's image."""

from __future__ import annotations

import os
import re
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli.cell_options import asked_of, cell_options, check_key, hosted
from orchestrator.cli.options import json_option
from orchestrator.errors import EnvironmentFault, InputError, StoreError
from orchestrator.paths import IMAGE_FILE

if TYPE_CHECKING:
    from orchestrator.gateway.contract import Endpoint
    from orchestrator.run.alone import ImageFacts
    from orchestrator.store.out import Out

KEY, ENDPOINT = "CAB_KEY", "CAB_ENDPOINT"
OUT = Path("/out")
CAPABILITIES = {"CHOWN": 0, "DAC_OVERRIDE": 1, "FOWNER": 3, "KILL": 5, "SETGID": 6, "SETUID": 7, "SETPCAP": 8}
"""By which root lays out files for the agent and the grader, becomes them, and ends them."""


@click.command("run-cell")
@cell_options
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Leave all evidence in a new directory there. Default: /out, where that is mounted.",
)
@json_option
def run_cell(out: Path | None, as_json: bool, **values: Any) -> None:
    """Run one cell in this container and show what came of it: docker run IMAGE run-cell …

    CAB_ENDPOINT is the base URL of the model's endpoint, CAB_KEY its key; an embedded model needs neither.
    Exit code 1 when the cell ended in an error that is not the agent's.
    """
    # Before anything else is imported or started: no other process is to be given it.
    key = os.environ.pop(KEY, "")
    from tempfile import TemporaryDirectory

    from orchestrator.report.cell import print_alone
    from orchestrator.run.alone import SCRATCH, run_alone

    image = _image(values["cli"])
    asked = asked_of(values, _endpoint(key, values) if hosted(values["model"]) else None)
    [cell] = asked.matrix().plan.cells
    with ExitStack() as stack:
        given = _out(stack, out, "~".join(cell.key.path().parts))
        evidence = Path(stack.enter_context(TemporaryDirectory(prefix="cab-evidence-", dir=SCRATCH)))
        hidden = given.hidden() if given else None
        record = run_alone(asked, image.place, evidence, on_stage=_say, hidden=hidden)
        kept, fault = None, None
        try:
            kept = given.give(evidence) if given else None
        except StoreError as error:
            fault = error
        # What came of the cell is told all the same: it may have cost money.
        print_alone(evidence, kept, as_json=as_json)
        if fault is not None:
            raise fault
    sys.exit(0 if record.outcome.counted else 1)


def _say(stage: str) -> None:
    from orchestrator.report.text import stage_in_words

    click.echo(f"cab: {stage_in_words(stage)}", err=True)


def _image(cli: str) -> ImageFacts:
    """What this image says of itself. Raises EnvironmentFault and InputError where no cell of `cli` can be
    run in this container.
    """
    if not IMAGE_FILE.is_file():
        raise EnvironmentFault(
            "run-cell runs inside a CLI's image, and this is none",
            place=str(IMAGE_FILE),
            mend="docker run --rm IMAGE run-cell …; `cab cell show CELL` prints the whole command of a cell",
        )
    from orchestrator.run.alone import ImageFacts

    image = ImageFacts.read(IMAGE_FILE)
    if cli != image.cli:
        mend = f"give --tui {image.cli}, or take the image of the other CLI"
        raise InputError(f"this image holds {image.cli}, not {cli!r}", place="--tui", mend=mend)
    if os.statvfs("/").f_flag & os.ST_RDONLY:
        mend = "leave --read-only out of docker run"
        raise EnvironmentFault("the root file system is read-only", place="/", mend=mend)
    if missing := missing_capabilities(Path("/proc/self/status").read_text("ascii", "replace")):
        mend = "leave --cap-drop out of docker run, or give these back with --cap-add"
        raise EnvironmentFault(f"root lacks {', '.join(missing)}", place="capabilities", mend=mend)
    return image


def missing_capabilities(status: str) -> list[str]:
    """Which of CAPABILITIES a process lacks, by its `/proc/<pid>/status`."""
    held = next((int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:")), 0)
    return [name for name, bit in CAPABILITIES.items() if not held >> bit & 1]


def _endpoint(key: str, values: dict[str, Any]) -> Endpoint:
    """Where the model is. Raises InputError where the environment does not say."""
    from orchestrator.gateway.contract import Endpoint

    url = os.environ.get(ENDPOINT)
    if not url:
        mend = f"docker run -e {ENDPOINT} -e {KEY} …, with the base URL; embedded/reference needs none"
        raise InputError(f"{ENDPOINT} is not set", place=f"--model {values['model']}", mend=mend)
    if not re.match(r"https?://[^/]", url):
        mend = "give the base URL of the model's endpoint"
        raise InputError("is no http:// or https:// URL", place=ENDPOINT, mend=mend)
    check_key(key, KEY)
    if not key:
        click.echo(f"cab: {KEY} is not set: none is sent", err=True)
    return Endpoint(name="endpoint", base_url=url, key=key, wire=values["wire"])


def _out(stack: ExitStack, out: Path | None, name: str) -> Out | None:
    """Where the evidence goes, made now; None where it is not asked for."""
    from orchestrator.store.out import Out

    if out is None and not OUT.is_mount():
        return None
    return stack.enter_context(Out(out or OUT, name))
