"""The root file system under images/base: pulled where a registry answers, else bootstrapped here."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import docker
from docker.errors import APIError, DockerException, ImageNotFound
from docker.models.images import Image
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from requests.exceptions import RequestException

from orchestrator.errors import EnvironmentFault, InputError
from orchestrator.sandbox.images.host import HostAccess

SOURCE_LABEL = "cab.source"
REGISTRY_PROBE_S = 8
"""How long a registry may take to tell a digest before it counts as absent."""


class BasePin(BaseModel):
    """`images/base/base.pin`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    image: str
    suite: str
    epoch: int
    digest: str | None = Field(default=None, pattern=r"^sha256:[0-9a-f]{64}$")

    def inputs(self) -> dict[str, str]:
        """What it says, by field."""
        return {field: str(value) for field, value in self.model_dump(exclude_none=True).items()}

    def inputs_hash(self) -> str:
        """sha256 of the pin."""
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()


def load_pin(path: Path) -> BasePin:
    """Read the pin. Raises InputError that names the field."""
    try:
        return BasePin.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise InputError("is missing", place=str(path), mend="check it out again") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(str(error), place=str(path), mend="it is TOML") from None
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}", place=str(path)) from None


def root_source(image: Image) -> str:
    """Where a root file system came from: what bootstrapped it, or the reference it was pulled by."""
    return image.labels.get(SOURCE_LABEL) or ", ".join(image.attrs["RepoDigests"])


def make_root(
    pin: BasePin,
    client: docker.DockerClient,
    host: HostAccess,
    *,
    tag: str,
    log: Path,
    say: Callable[[str], None],
) -> Image:
    """Pull the pinned image or, where no registry answers, bootstrap the suite; tag it `tag`.

    Raises EnvironmentFault when neither can be done.
    """
    say(f"asking a registry for {pin.image}")
    digest = _registry_digest(pin, client)
    if digest:
        reference = f"{pin.image.partition(':')[0]}@{digest}"
        say(f"pulling {reference}")
        try:
            image = client.images.pull(reference)
        except DockerException as error:
            raise EnvironmentFault(
                f"cannot be pulled: {error}", place=reference, mend="see images/base/base.pin"
            ) from error
        image.tag(tag)
        return image
    say(f"no registry answers: bootstrapping {pin.suite}")
    return _bootstrap(pin, client, host, tag, log)


def _registry_digest(pin: BasePin, client: docker.DockerClient) -> str | None:
    """The digest to pull, or None when no registry answers in time."""
    reference = f"{pin.image.partition(':')[0]}@{pin.digest}" if pin.digest else pin.image
    if pin.digest:
        try:
            client.images.get(reference)
        except ImageNotFound:
            pass
        else:
            return pin.digest
    registry: Any = client.api
    usual, client.api.timeout = client.api.timeout, REGISTRY_PROBE_S
    try:
        return str(registry.inspect_distribution(reference)["Descriptor"]["digest"])
    except (APIError, RequestException):
        return None
    finally:
        client.api.timeout = usual


def _bootstrap(pin: BasePin, client: docker.DockerClient, host: HostAccess, tag: str, log: Path) -> Image:
    if shutil.which("mmdebstrap") is None:
        raise EnvironmentFault(
            f"no registry answers for {pin.image}, and mmdebstrap is not installed",
            place="images/base",
            mend="apt-get install mmdebstrap debian-archive-keyring",
        )
    repository, _, version = tag.partition(":")
    with tempfile.TemporaryDirectory(prefix="cab-root-") as scratch:
        tar = Path(scratch) / "root.tar"
        command = ["mmdebstrap", "--variant=minbase", "--format=tar", pin.suite, str(tar)]
        sources = "".join(f"{line}\n" for line in host.apt_sources)
        if sources:
            command.append("-")
        with log.open("w", encoding="utf-8") as file:
            done = subprocess.run(
                command,
                input=sources,
                text=True,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, "SOURCE_DATE_EPOCH": str(pin.epoch)},
                check=False,
            )
        if done.returncode != 0:
            raise EnvironmentFault(
                f"mmdebstrap ended with {done.returncode}", place=str(log), mend="see the end of that file"
            )
        source = f'LABEL {SOURCE_LABEL}="mmdebstrap {pin.suite}, SOURCE_DATE_EPOCH={pin.epoch}"'
        client.api.import_image_from_file(str(tar), repository=repository, tag=version, changes=[source])
    return client.images.get(tag)
