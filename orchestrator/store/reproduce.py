"""The one command that runs a cell again: in one container, of its CLI's image for `cab run-cell`."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.adapter import Wire
from orchestrator.gateway.settings import GenerationSettings
from orchestrator.sandbox.contract import Limits
from orchestrator.store.names import NO_MODEL, NO_STACK
from orchestrator.store.record import Identity, Reproduce
from scorers.evidence import Price, Rates

CAB_ROOT = "/opt/cab"
"""Where cab and its tasks are in an image for run-cell."""

NOT_BUILT = "no image for run-cell was built of this one: cab images build {cli}"
NOT_PUSHED = "not portable: this image was never pushed"
LOCAL_MODEL = "a local model is served where its file is: only a sweep can"
REPLAY = "a replay: cab cell replay runs it again"
CONDITION = "under a condition: the `cab external run` of its directory runs it again"
_LOOPBACK = re.compile(r"(localhost|127(\.\d+){3}|\[[0:]*:0*1\])(:\d+)?/")


@dataclass(frozen=True)
class CellImage:
    """A CLI's image for run-cell: its id, the digest of each task in it by name, and by repository the
    manifest digests that it was pushed or pulled under.
    """

    id: str
    tasks: Mapping[str, str] = field(default_factory=dict)
    manifests: Mapping[str, str] = field(default_factory=dict)

    @property
    def reference(self) -> str:
        """What `docker run` is given: `REPOSITORY@DIGEST`, else the bare id."""
        return reference_of(self.id, self.manifests)


@dataclass(frozen=True)
class Asked:
    """What a sweep asked of a cell and its identity does not tell: the wire of its endpoint (None: it has
    none), the model's price, a time limit other than the task's, whether tokens had to be stated.
    """

    wire: Wire | None = None
    price: Price | None = None
    timeout_s: float | None = None
    require_tokens: bool = False


def reference_of(image_id: str, manifests: Mapping[str, str]) -> str:
    """How `docker run` is told of an image: by a manifest digest where it has one, at a registry that others
    can reach first, else by its bare id.
    """
    known = sorted(manifests.items(), key=lambda item: (_LOOPBACK.match(item[0]) is not None, item))
    return "@".join(known[0]) if known else image_id


def reproduce(identity: Identity, asked: Asked, image: CellImage | None) -> Reproduce:
    """The command for one cell, or why there is none."""
    if identity.model.startswith("local/"):
        return Reproduce(note=LOCAL_MODEL)
    if identity.model.startswith("replay/"):
        return Reproduce(note=REPLAY)
    if identity.condition is not None:
        return Reproduce(note=CONDITION)
    if image is None:
        return Reproduce(note=NOT_BUILT.format(cli=identity.cli))
    words = ["docker", "run", "--rm", *_docker_limits(identity)]
    if asked.wire is not None:
        words += ["-e", "CAB_ENDPOINT", "-e", "CAB_KEY"]
    mounts = []
    if image.tasks.get(identity.task) != identity.task_content_hash:
        # The shell's own word for where it is: a path of this machine has no place in a record.
        inside = shlex.quote(f"/tasks/{identity.task}:{CAB_ROOT}/tasks/{identity.task}:ro")
        mounts = [f'-v "$PWD"{inside}']
    command = " ".join(
        [shlex.join(words), *mounts, shlex.join([image.reference, *_run_cell(identity, asked)])]
    )
    pushed = bool(image.manifests)
    return Reproduce(
        command=command,
        image_digest=image.reference.rpartition("@")[2],
        digest_kind="manifest" if pushed else "image_id",
        note=None if pushed else NOT_PUSHED,
    )


def as_pushed(found: Reproduce, lock_file: Path) -> Reproduce:
    """The same by manifest digest, where its image has been pushed or pulled since it was written."""
    if found.digest_kind != "image_id" or found.command is None or found.image_digest is None:
        return found
    manifests = _manifests(lock_file, found.image_digest)
    if not manifests:
        return found
    reference = reference_of(found.image_digest, manifests)
    return Reproduce(
        command=found.command.replace(found.image_digest, reference, 1),
        image_digest=reference.rpartition("@")[2],
        digest_kind="manifest",
    )


def _manifests(lock_file: Path, image_id: str) -> dict[str, str]:
    """Those of an image in images.lock, read as plain JSON: its own reader imports the engine's client."""
    try:
        images = json.loads(lock_file.read_bytes())["images"].values()
        return next((dict(it.get("manifests", {})) for it in images if it["id"] == image_id), {})
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return {}


def _docker_limits(identity: Identity) -> Iterator[str]:
    """A sweep's own limits of a container. Its usual ones are left to whoever runs the command."""
    limits, usual = identity.limits, Limits()
    if limits is None:
        return
    if limits.memory_bytes != usual.memory_bytes:
        yield from ("--memory", str(limits.memory_bytes))
    if limits.cpus is not None and limits.cpus != usual.cpus:
        yield from ("--cpus", _number(limits.cpus))
    if limits.pids != usual.pids:
        yield from ("--pids-limit", str(limits.pids))


def _run_cell(identity: Identity, asked: Asked) -> Iterator[str]:
    yield from ("run-cell", "--tui", identity.cli)
    if identity.model != NO_MODEL:
        yield from ("--model", identity.model)
    yield from ("--task", identity.task)
    if identity.run != 1:
        yield from ("--run", str(identity.run))
    if identity.stack != NO_STACK:
        yield from ("--stack", f"{identity.stack}={','.join(it.name for it in identity.plugins)}")
    if asked.wire not in (None, "chat"):
        yield from ("--wire", str(asked.wire))
    for name, value in identity.settings_set.items():
        yield from (setting_option(name), f"{value}")
    yield from _limits(identity, asked)
    if asked.require_tokens:
        yield from ("--require", "tokens.wire")


def _limits(identity: Identity, asked: Asked) -> Iterator[str]:
    limits = identity.limits
    if asked.timeout_s is not None:
        yield from ("--timeout", _number(asked.timeout_s))
    if limits is not None and limits.max_tokens is not None:
        yield from ("--max-tokens", str(limits.max_tokens))
    if limits is not None and limits.max_usd is not None:
        yield from ("--max-usd", _number(limits.max_usd))
    if asked.price is not None:
        yield from _prices(asked.price.rates)


def _prices(rates: Sequence[Rates]) -> Iterator[str]:
    for rate in rates:
        given = rate.model_dump(exclude_none=True, exclude_defaults=True)
        yield from ("--price", ",".join(f"{name}={_number(value)}" for name, value in given.items()))


def _number(value: float) -> str:
    """Every digit of it, and none that says nothing."""
    return repr(value).removesuffix(".0")


def setting_option(name: str) -> str:
    """The option of run-cell for a generation setting."""
    assert name in GenerationSettings.model_fields
    return f"--{name.replace('_', '-')}"
