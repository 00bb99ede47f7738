"""How a reader runs a cell: in one container, with an endpoint of their own, without a container."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from orchestrator.adapter import Adapter, LaunchContext
from orchestrator.errors import CabError
from orchestrator.fleet import Fleet
from orchestrator.report.reproduce import MAX_COMMAND, reproduced
from orchestrator.site.cell.bounded import line
from orchestrator.store.names import NO_MODEL
from orchestrator.store.record import CellRecord

URL = "https://YOUR-ENDPOINT"
KEY = "YOUR-KEY"
MODEL = "YOUR-MODEL"
PROMPT = "PROMPT"
HOME = "/home/YOU"
SCRIPTED = ("embedded/", "replay/")


@dataclass(frozen=True)
class OneContainer:
    """The command of a cell in one container. `pull` is None where no registry has the image; then, or where
    there is no `command`, `note` says why.
    """

    command: str | None
    pull: str | None
    note: str


@dataclass(frozen=True)
class Own:
    """How a CLI is given an endpoint: files in HOME (path, content), variables and the command; `wire` is
    what the CLI speaks. None of it but `note` where it cannot be told.
    """

    wire: str = ""
    files: Sequence[tuple[str, str]] = ()
    variables: Sequence[str] = ()
    command: str = ""
    note: str = ""


@dataclass(frozen=True)
class Check:
    """The command, or in `note` why there is none."""

    command: str | None
    note: str


def one_container(record: CellRecord) -> OneContainer:
    """The command as of now: an image may have been pushed since the cell ran."""
    found = reproduced(record)
    if record.imported is not None:
        return OneContainer(
            None, None, "only its publisher can; to measure the same, run a sweep of your own"
        )
    if found is None:
        return OneContainer(None, None, "the record was written before cab kept such commands")
    if found.command is None:
        return OneContainer(None, None, line(str(found.note)))
    command = line(found.command, MAX_COMMAND)
    image = _image(found.command) if found.digest_kind == "manifest" else None
    pull = None if image is None else f"docker pull {image}"
    return OneContainer(command, pull, line(found.note or ""))


def own_endpoint(record: CellRecord) -> Own:
    """The CLI's own configuration, as this cab's adapter writes it, with places for address and key, and for
    the model where that is none of an endpoint's.
    """
    identity = record.identity
    scripted = identity.model == NO_MODEL or identity.model.startswith((*SCRIPTED, "local/"))
    own, digest = _own(identity.cli, MODEL if scripted else identity.model)
    ran_with = identity.adapter_digest
    if own.command and digest != ran_with:
        said = (
            "which adapter this cell ran with is not known"
            if ran_with is None
            else "this cell ran with another"
        )
        return Own(own.wire, own.files, own.variables, own.command, f"As this cab's adapter has it; {said}.")
    return own


def check_command(record: CellRecord) -> Check:
    """`cab check` for the same CLI, model and task."""
    identity = record.identity
    if record.imported is not None:
        return Check(None, "its task and its CLI's version are the publisher's")
    if identity.model.startswith("replay/"):
        return Check(None, "cab cell replay runs a replay again")
    if identity.model.startswith("local/"):
        return Check(None, "a local model is served where its file is: only a sweep can")
    words = ["cab", "check", "--tui", identity.cli]
    if identity.model != NO_MODEL:
        words += ["--model", identity.model]
    words += ["--task", identity.task]
    if identity.model != NO_MODEL and not identity.model.startswith("embedded/"):
        words += ["--endpoint", f"{URL}/v1", "--key-env", "CAB_KEY"]
    return Check(line(shlex.join(words), MAX_COMMAND), "")


def adapter_digest(cli: str) -> str:
    """That of the adapter which this cab has for a CLI; "" where it has none. It decides what a page says."""
    return _own(cli, MODEL)[1]


def _image(command: str) -> str | None:
    """The image that a command runs: the word before `run-cell`."""
    try:
        words = shlex.split(command)
        return shlex.quote(words[words.index("run-cell") - 1])
    except ValueError:
        return None


@lru_cache(maxsize=1)
def _fleet() -> Fleet:
    return Fleet()


@lru_cache(maxsize=256)
def _adapter(cli: str) -> tuple[Adapter, str]:
    fleet = _fleet()
    raw = fleet.adapter_file(cli).read_bytes() if cli in fleet.runnable else b""
    return fleet.adapter(cli), f"sha256:{hashlib.sha256(raw).hexdigest()}"


@lru_cache(maxsize=4096)
def _own(cli: str, model: str) -> tuple[Own, str]:
    try:
        adapter, digest = _adapter(cli)
    except CabError:
        return Own(note=f"This cab has no adapter for {line(cli, 80)}."), ""
    if adapter.wire is None:
        return Own(note="This CLI asks no model: there is no endpoint to bring."), digest
    launch = adapter.launch(
        LaunchContext(prompt=PROMPT, model=model, credential=KEY, base_url=URL, home=HOME, workdir=".")
    )
    return Own(
        wire=adapter.wire,
        files=[(f"~/{path}", content.rstrip("\n")) for path, content in sorted(launch.files.items())],
        variables=[f"export {name}={shlex.quote(value)}" for name, value in sorted(launch.env.items())],
        command=shlex.join(launch.argv),
    ), digest
