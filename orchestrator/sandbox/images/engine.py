"""What the building of images asks of the engine."""

from __future__ import annotations

import io
import re
import shlex
import tarfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, ContainerError, DockerException, ImageNotFound, NotFound
from docker.models.images import Image
from requests.exceptions import RequestException

from orchestrator.errors import EnvironmentFault
from orchestrator.sandbox.docker import no_engine

READS_LABEL = "cab.reads."
"""`LABEL cab.reads.<tool>="<command>"`: the command whose first line tells the tool's version."""

AGENT_UID = 1000
_READ_TIMEOUT_S = 600
_CACHED = "---> Using cache"
_COMMAND = re.compile(r"Step \d+/\d+ : RUN\b")
_TAIL_LINES = 15


def connect() -> docker.DockerClient:
    """A client of the engine. Raises EnvironmentFault when none answers."""
    try:
        client = docker.from_env(timeout=_READ_TIMEOUT_S)
        client.ping()
    except DockerException as error:
        raise no_engine(error) from None
    return client


@dataclass(frozen=True)
class Built:
    """An image without a tag. `seconds` is what its build took; None where a command of it was not run, since
    the engine had what it makes in its cache.
    """

    image_id: str
    seconds: float | None


def build(
    client: docker.DockerClient,
    context: bytes,
    *,
    name: str,
    arguments: Mapping[str, str],
    labels: Mapping[str, str],
    use_cache: bool,
    log: Path,
    say: Callable[[str], None],
    hear: Callable[[str], None],
) -> Built:
    """Build one image; it has no tag yet. All that the engine prints goes to `log`, each step
    also to `say`, and the last line of any other output to `hear`.

    Raises EnvironmentFault with the end of the log.
    """
    image_id, step, cached, start = "", "", False, time.monotonic()
    with log.open("w", encoding="utf-8") as file:
        stream = client.api.build(
            fileobj=io.BytesIO(context),
            custom_context=True,
            buildargs=dict(arguments),
            labels=dict(labels),
            nocache=not use_cache,
            rm=True,
            forcerm=True,
            decode=True,
        )
        for event in _events(stream, name, log):
            text = event.get("stream", "")
            file.write(text)
            if text.startswith("Step "):
                step = text.strip()
                say(step)
            elif text.strip() == _CACHED:
                cached = cached or bool(_COMMAND.match(step))
            elif lines := text.strip().splitlines():
                hear(lines[-1])
            if "error" in event:
                file.write(f"{event['error']}\n")
                file.flush()
                raise EnvironmentFault(
                    f"image {name} cannot be built: {event['error']}",
                    place=str(log),
                    mend=f"see the end of that file, then run `cab images build {name}`",
                )
            image_id = event.get("aux", {}).get("ID", image_id)
    if not image_id:
        raise EnvironmentFault(
            f"the engine told no id for image {name}", place=str(log), mend="see that file"
        )
    return Built(image_id, None if cached else time.monotonic() - start)


def _events(stream: Iterator[dict[str, Any]], name: str, log: Path) -> Iterator[dict[str, Any]]:
    """What a build tells. Raises EnvironmentFault where the engine refuses it, or goes away."""
    try:
        yield from stream
    except (DockerException, RequestException) as error:
        raise EnvironmentFault(
            f"image {name} cannot be built: {error}",
            place=str(log),
            mend=f"see its Dockerfile, and that the engine runs; then run `cab images build {name}`",
        ) from error


def log_tail(log: Path) -> list[str]:
    """The last lines of a build's log."""
    if not log.is_file():
        return []
    return log.read_text(encoding="utf-8", errors="replace").splitlines()[-_TAIL_LINES:]


def find_image(client: docker.DockerClient, name: str) -> Image | None:
    """The image of a tag or an id, if the engine has it."""
    try:
        return client.images.get(name)
    except ImageNotFound:
        return None


def read_versions(client: docker.DockerClient, image_id: str, parent_id: str | None) -> dict[str, str]:
    """Run each command of the image's own `cab.reads.*` labels as the agent's uid, read-only, no network.

    Labels from its parent are the parent's to answer for. Raises EnvironmentFault when a command fails.
    """
    parent = find_image(client, parent_id) if parent_id else None
    inherited = parent.labels if parent else {}
    return {
        label.removeprefix(READS_LABEL): _first_line(client, image_id, command)
        for label, command in sorted(client.images.get(image_id).labels.items())
        if label.startswith(READS_LABEL) and inherited.get(label) != command
    }


def _first_line(client: docker.DockerClient, image_id: str, command: str) -> str:
    try:
        output = client.containers.run(
            image_id,
            shlex.split(command),
            remove=True,
            network_mode="none",
            read_only=True,
            user=f"{AGENT_UID}:{AGENT_UID}",
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            tmpfs={"/tmp": "exec", "/home/agent": f"exec,uid={AGENT_UID},gid={AGENT_UID}"},
            environment={"HOME": "/home/agent"},
        )
    except (ContainerError, APIError) as error:
        reason = str(error).strip().splitlines()[-1]
        raise EnvironmentFault(
            f"`{command}` fails as uid {AGENT_UID} with a read-only root: {reason}", place=image_id
        ) from error
    lines = output.decode(errors="replace").strip().splitlines()
    return lines[0].strip() if lines else ""


def copy_out(client: docker.DockerClient, image_id: str, source: str) -> bytes:
    """The content of one file of an image. Raises EnvironmentFault when it is not there."""
    container = client.containers.create(image_id, command=[source], network_mode="none")
    try:
        stream, _ = container.get_archive(source)
        with tarfile.open(fileobj=io.BytesIO(b"".join(stream))) as tar:
            member = tar.next()
            file = tar.extractfile(member) if member else None
            if file is None:
                raise EnvironmentFault(f"{source} is not a file", place=image_id)
            return file.read()
    except NotFound:
        raise EnvironmentFault(f"holds no {source}", place=image_id, mend="see its Dockerfile") from None
    finally:
        container.remove(force=True)
