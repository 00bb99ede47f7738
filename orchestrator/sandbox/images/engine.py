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
from docker.models.containers import Container
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


def push(client: docker.DockerClient, repository: str, tag: str, hear: Callable[[str], None]) -> str:
    """Push what the engine has as `repository:tag`; what has gone over goes to `hear`. Its manifest's digest.

    Raises EnvironmentFault where the registry does not take it.
    """
    reference, digest = f"{repository}:{tag}", ""
    try:
        stream = client.api.push(repository, tag=tag, stream=True, decode=True)
        for event in _transfer(stream, reference, hear):
            digest = event.get("aux", {}).get("Digest", digest)
    except (DockerException, RequestException) as error:
        raise _refused(_said(error), reference) from error
    if not digest:
        raise EnvironmentFault("the engine told no digest", place=reference, mend="see its log")
    return digest


def pull(
    client: docker.DockerClient, repository: str, tag_or_digest: str, hear: Callable[[str], None]
) -> Image | None:
    """Pull an image by tag or digest; what has come over goes to `hear`. None where the registry has none.

    Raises EnvironmentFault where the registry cannot be asked, or the image not be taken.
    """
    reference = f"{repository}{'@' if ':' in tag_or_digest else ':'}{tag_or_digest}"
    try:
        stream = client.api.pull(repository, tag=tag_or_digest, stream=True, decode=True)
        for _ in _transfer(stream, reference, hear):
            pass
    except NotFound as error:
        if "denied" in str(error):
            raise _refused(_said(error), reference) from error
        return None
    except (DockerException, RequestException) as error:
        raise _refused(_said(error), reference) from error
    return client.images.get(reference)


def _transfer(
    stream: Iterator[dict[str, Any]], reference: str, hear: Callable[[str], None]
) -> Iterator[dict[str, Any]]:
    """The events of a push or a pull. Tells how much of the layers that are under way is over."""
    layers: dict[str, tuple[int, int]] = {}
    for event in stream:
        if "error" in event:
            raise _refused(str(event["error"]), reference)
        part = event.get("progressDetail") or {}
        if part.get("total"):
            layers[event["id"]] = min(part["current"], part["total"]), part["total"]
            over, whole = (sum(column) / 1e6 for column in zip(*layers.values(), strict=True))
            hear(f"{event['status'].lower()} {over:.0f} of {whole:.0f} MB")
        yield event


_MENDS = {
    "HTTP response to HTTPS": "it speaks plain HTTP: see `insecure-registries` of the engine",
    "certificate": "see that the engine trusts its certificate",
    "denied": "run `docker login` for it, and see that it lets you",
    "unauthorized": "run `docker login` for it",
    "no basic auth": "run `docker login` for it",
}


def _said(error: Exception) -> str:
    """Without the client's own words about its own address, which say nothing of the registry."""
    explanation = error.explanation if isinstance(error, APIError) else None
    return str(explanation or error)


def _refused(told: str, reference: str) -> EnvironmentFault:
    mend = next((mend for word, mend in _MENDS.items() if word in told), "see that the registry runs there")
    return EnvironmentFault(f"the engine and the registry say: {told}", place=reference, mend=mend)


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


def created(image: Image) -> str:
    """When an image was made: UTC, to the second."""
    return f"{image.attrs['Created'][:19]}+00:00"


def manifests(image: Image) -> dict[str, str]:
    """The manifest digests that an image was pushed or pulled by, by repository."""
    references = (reference.split("@") for reference in image.attrs["RepoDigests"])
    # An engine with containerd's store of images has such a reference for each tag of its own as well.
    return {name: digest for name, digest in references if not name.startswith("cab/")}


def run_and_copy_out(client: docker.DockerClient, image_id: str, argv: list[str], made: str) -> bytes | None:
    """The content of the file that a command makes in an image's container, run as root without a network and
    without other capabilities than to read every file; None, where the image does not hold the command.

    Not what it prints: of that the engine's logs may lack the end. Raises EnvironmentFault where it fails.
    """
    container = client.containers.create(
        image_id,
        argv,
        entrypoint=[],
        user="0:0",
        network_mode="none",
        cap_drop=["ALL"],
        cap_add=["DAC_READ_SEARCH"],
        security_opt=["no-new-privileges"],
    )
    try:
        container.start()
        status = container.wait()["StatusCode"]
        if status != 0:
            raise EnvironmentFault(
                f"`{argv[0]}` ends with {status}", place=image_id, mend="see its Dockerfile"
            )
        return _file_in(container, made, image_id)
    except APIError as error:
        if "executable file not found" in str(error) or "no such file or directory" in str(error):
            return None
        raise EnvironmentFault(f"`{argv[0]}` cannot be run: {error}", place=image_id) from error
    finally:
        container.remove(force=True)


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
        return _file_in(container, source, image_id)
    except NotFound:
        raise EnvironmentFault(f"holds no {source}", place=image_id, mend="see its Dockerfile") from None
    finally:
        container.remove(force=True)


def _file_in(container: Container, source: str, image_id: str) -> bytes:
    stream, _ = container.get_archive(source)
    with tarfile.open(fileobj=io.BytesIO(b"".join(stream))) as tar:
        member = tar.next()
        file = tar.extractfile(member) if member else None
        if file is None:
            raise EnvironmentFault(f"{source} is not a file", place=image_id)
        return file.read()
