"""images.lock: which images this machine built or pulled, by id. The build writes it; it is not committed."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from orchestrator.adapter import Adapter
from orchestrator.errors import EnvironmentFault
from orchestrator.paths import INSTALLED

MEND = "run `cab images build`"
PIN_REPOSITORY = "cab/pin"


def pin_tag(image_id: str) -> str:
    """The tag that keeps an image for as long as a sweep may be pinned to it."""
    return f"{PIN_REPOSITORY}:{image_id.removeprefix('sha256:')[:12]}"


def version_problem(adapter: Adapter, versions: Mapping[str, str]) -> str | None:
    """How what an image's tools told differs from the version that its adapter pins; None: not at all.

    A CLI that asks no model may have no version to tell, but something of its image was read back.
    """
    told = versions.get(adapter.name)
    if told is None and (adapter.uses_model or not versions):
        return f"{adapter.name} told no version, its adapter pins {adapter.version!r}"
    if told is not None and adapter.version not in told.split():
        return f"{adapter.name} says {told!r}, its adapter pins {adapter.version!r}"
    return None


def version_number(told: str) -> str | None:
    """The number in what a tool told of its version: `1.24.4` of `go version go1.24.4 linux/amd64`."""
    found = re.search(r"(?<![\d.])\d+(?:\.\d+)+", told)
    return found[0] if found else None


class LockedImage(BaseModel):
    """One image as it was resolved.

    `id` is what runs. `parent` is the id of the image it stands on. `versions` was read back from the image
    itself. `size` is in bytes. `build_s` is what its build took here; None where that is not known: it was
    taken over or pulled, or the engine had some of its commands in its cache. `inputs` are what
    `inputs_hash` is of, by name (`Recipe.inputs`); empty in a lock that was written before they were kept.
    `manifests` are the manifest digests that it was pushed or pulled by, by repository. Of a CLI's image for
    run-cell `cell` is the id of the image whose cab and tasks it has; that one has `tasks`, each task's
    digest by name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    tag: str
    inputs_hash: str
    parent: str | None
    versions: dict[str, str]
    built_at: str
    size: int
    build_s: float | None = None
    inputs: dict[str, str] = {}
    manifests: dict[str, str] = {}
    cell: str | None = None
    tasks: dict[str, str] | None = None

    @property
    def tools(self) -> str:
        """Its tools and their version numbers, as far as they told one."""
        numbers = {tool: version_number(told) for tool, told in sorted(self.versions.items())}
        return ", ".join(f"{tool} {number}" for tool, number in numbers.items() if number)


class Lock(BaseModel):
    """All images that this machine has resolved."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = 1
    images: dict[str, LockedImage] = {}

    def image(self, name: str) -> LockedImage:
        """The image of images/<name>. Raises EnvironmentFault when it is not in the lock."""
        if name not in self.images:
            raise EnvironmentFault(
                f"no image {name!r}", place="images.lock", mend=f"run `cab images build {name}`"
            )
        return self.images[name]

    def stands_on(self, name: str, image_id: str) -> bool:
        """Whether the image of images/<name> stands on that one, or is it, as far as the lock has what lies
        between. Raises EnvironmentFault when it is not in the lock.
        """
        by_id = {image.id: image for image in self.images.values()}
        found: LockedImage | None = self.image(name)
        while found is not None and found.id != image_id:
            found = by_id.get(found.parent or "")
        return found is not None

    def with_image(self, name: str, image: LockedImage) -> Lock:
        """This lock with one image added or replaced."""
        return self.model_copy(update={"images": {**self.images, name: image}})


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with one locked image, and its mend. `differences` is, a line for each, what is
    other in the image that is there instead, where that is known.
    """

    image: str
    problem: str
    mend: str
    differences: tuple[str, ...] = ()


def load_lock(path: Path) -> Lock:
    """Read images.lock. Raises EnvironmentFault where it is missing or unreadable, or cab came as a wheel."""
    check_checkout()
    try:
        return Lock.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise EnvironmentFault("no image was built yet", place=str(path), mend=MEND) from None
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise EnvironmentFault(
            f"{field}: {first['msg']}", place=str(path), mend=f"remove it, then {MEND}"
        ) from None


def check_checkout() -> None:
    """Raises EnvironmentFault where this cab came as a wheel, of which no image is built."""
    if INSTALLED:
        raise EnvironmentFault(
            "this cab was installed from a wheel, and images are built in a checkout of its repository",
            mend="run `make setup` in one, and cab there; `cab check` needs no image",
        )


def known_lock(path: Path) -> Lock:
    """images.lock, empty where no image was built yet. Raises EnvironmentFault when it cannot be read, or cab
    came as a wheel.
    """
    check_checkout()
    return load_lock(path) if path.exists() else Lock()


def save_lock(lock: Lock, path: Path) -> None:
    """Replace images.lock in one step, so that a reader never sees half of it."""
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", dir=path.parent, prefix=".images.lock-", delete=False
    ) as file:
        file.write(lock.model_dump_json(indent=2) + "\n")
    staged = Path(file.name)
    staged.chmod(0o644)
    staged.replace(path)
