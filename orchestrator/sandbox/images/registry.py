"""Where images are pushed to and pulled from.

A registry is where repositories are, `HOST[:PORT][/PATH]`; each image has one there, `HOST/PATH/<name>`. An
image has up to three tags in it: the hash of its inputs, by which a checkout finds it; the version of its
CLI, for people; and its id, so that a manifest keeps a tag of its own when the others move on.
"""

from __future__ import annotations

import ipaddress
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType

from docker.models.images import Image

from orchestrator.errors import CabError, InputError
from orchestrator.sandbox.images.progress import Teller
from orchestrator.sandbox.images.recipe import ROOT, Recipe, with_needed, with_parents

_HOST = r"(?:[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*|\[[0-9a-fA-F:]+\])(?::\d+)?"
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_ADDRESS = re.compile(rf"{_HOST}(?:/{_PART})*")
_DIGITS = 12


@dataclass(frozen=True)
class Registry:
    """`HOST[:PORT][/PATH]`. Raises InputError for anything else."""

    address: str

    def __post_init__(self) -> None:
        if not _ADDRESS.fullmatch(self.address):
            raise InputError(
                "is no place in a registry",
                place=self.address,
                mend="give HOST[:PORT][/PATH], such as localhost:5000/cab, without a scheme and a tag",
            )

    @property
    def is_loopback(self) -> bool:
        """Whether it is on the engine's own machine, by its address alone: no name is resolved."""
        host = re.sub(r":\d+$", "", self.address.partition("/")[0]).strip("[]")
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    def repository(self, tag: str) -> str:
        """The repository of an image that is tagged `cab/<name>:…` here."""
        return f"{self.address}/{tag.partition(':')[0].removeprefix('cab/')}"


def inputs_tag(inputs_hash: str) -> str:
    """The tag by which a checkout finds the image of its inputs."""
    return inputs_hash[:_DIGITS]


def id_tag(image_id: str) -> str:
    """The tag that stays with an image."""
    return f"id-{image_id.removeprefix('sha256:')[:_DIGITS]}"


def keep_digest(image: Image, repository: str) -> None:
    """Keep a digest for as long as the image: the engine forgets it with the last tag of its repository."""
    image.tag(repository, id_tag(str(image.id)))


def with_root(
    recipes: Mapping[str, Recipe],
    names: Sequence[str] | None,
    locked: Collection[str] | None = None,
    unavailable: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """The named images (all when None) and all that they stand on, in building order; with a CLI what it
    needs besides, its image for run-cell and PID 1, where no lock is given or it is in that.
    """
    if names is not None:
        found = with_needed(recipes, names)
        names = [name for name in found if name in names or locked is None or name in locked]
    wanted = with_parents(recipes, names, unavailable)
    on_root = any(ROOT in recipe.parents.values() for recipe in wanted)
    return [*([ROOT] if on_root else []), *(recipe.name for recipe in wanted)]


@contextmanager
def reported(tell: Teller, name: str) -> Iterator[Callable[[str], str]]:
    """Tell that an image begins, and how it ends: with the reference that is given to what this yields, which
    gives it back, or with an error.
    """
    start = time.monotonic()
    tell(name, "started")

    def done(reference: str) -> str:
        tell(name, "built", reference, seconds=time.monotonic() - start)
        return reference

    try:
        yield done
    except CabError as error:
        tell(name, "failed", str(error), seconds=time.monotonic() - start)
        raise
