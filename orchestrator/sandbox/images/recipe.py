"""What an image is made from: a folder under images/ with a Dockerfile, and the images it names as parents.

A parent is an `ARG` ahead of the first `FROM`: `ARG NODE` stands for the image of images/node, `ARG ROOT` for
the root file system (`root.py`), and so does `ARG BASE` in images/base itself.
"""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from orchestrator.adapter import Adapter
from orchestrator.errors import InputError
from orchestrator.fleet import DOCKERFILE, Fleet
from orchestrator.sandbox.images.lock import version_problem

ROOT = "root"
"""The name, in the lock, of the root file system that images/base stands on."""

BASE = "base"
INIT = "init"
HOST_DIR = "host"
"""The folder that each build context gets beside its own files (`host.py`)."""


def buildable(name: str) -> str:
    """The name by which an image is built: the root file system is with what stands on it."""
    return BASE if name == ROOT else name


_PARENT_ARG = re.compile(r"^ARG\s+([A-Z][A-Z0-9_]*)\s*$")
_FROM = re.compile(r"^FROM\s+(\S+)")
ARG = "ARG "
"""What the name of a parent's build argument begins with, among the inputs; no file's does."""

_NOT_INPUTS = frozenset({"adapter.py", "base.pin", "README.md"})


@dataclass(frozen=True)
class Recipe:
    """One image.

    `parents` maps each build argument to the name of the image whose id it gets; `stands_on` is the one
    that the last stage starts from, or takes its files from when it starts from scratch.
    """

    name: str
    folder: Path
    parents: Mapping[str, str]
    stands_on: str | None
    adapter: Adapter | None

    @property
    def version(self) -> str | None:
        """The version of the CLI that its adapter pins; None where there is no CLI in it."""
        return self.adapter.version if self.adapter else None

    def version_problem(self, versions: Mapping[str, str]) -> str | None:
        """How the versions read back differ from the adapter's; None: not at all, or no CLI is in it."""
        return version_problem(self.adapter, versions) if self.adapter else None

    def tag(self, inputs_hash: str) -> str:
        """`cab/<name>:<version of the CLI>`, or the inputs' hash where there is no CLI in it."""
        return f"cab/{self.name}:{self.version or inputs_hash[:12]}"

    def files(self) -> dict[str, Path]:
        """The build's own input files by path in the folder. Adapter and README are in no image."""
        return {
            path.relative_to(self.folder).as_posix(): path
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and "__pycache__" not in path.parts and path.name not in _NOT_INPUTS
        }

    def inputs_hash(self, parent_ids: Mapping[str, str]) -> str:
        """sha256 of all that decides what is built: file names, modes and contents, and the parents' ids."""
        digest = hashlib.sha256(f"{self.name}\n".encode())
        for name, path in self.files().items():
            digest.update(_line(name, path))
        for argument, parent in sorted(self.parents.items()):
            digest.update(f"{argument}={parent_ids[parent]}\n".encode())
        return digest.hexdigest()

    def inputs(self, parent_ids: Mapping[str, str]) -> dict[str, str]:
        """The same in parts, to tell later which of them changed: of each file and of each folder a sha256,
        of each parent its id, by `ARG NAME`.
        """
        parts: dict[str, Any] = {}
        for name, path in self.files().items():
            parts.setdefault(name.partition("/")[0], hashlib.sha256()).update(_line(name, path))
        parents = {f"{ARG}{argument}": parent_ids[name] for argument, name in sorted(self.parents.items())}
        return {**{name: part.hexdigest() for name, part in parts.items()}, **parents}

    def context(self, host_files: Mapping[str, bytes]) -> bytes:
        """The build context as a tar file: the folder's files, and `host/`. Times and owners are fixed."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            for name, path in self.files().items():
                _add(tar, name, path.read_bytes(), _mode(path))
            for name, content in sorted(host_files.items()):
                _add(tar, f"{HOST_DIR}/{name}", content, 0o644)
        return buffer.getvalue()


def _line(name: str, path: Path) -> bytes:
    """A file as it counts among the inputs."""
    content = hashlib.sha256(path.read_bytes()).hexdigest()
    return f"{name}\0{_mode(path):o}\0{content}\n".encode()


def _mode(path: Path) -> int:
    return 0o755 if path.stat().st_mode & 0o100 else 0o644


def _add(tar: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    member.mode = mode
    tar.addfile(member, io.BytesIO(content))


def load_recipes(images_dir: Path, elsewhere: Path | None = None) -> dict[str, Recipe]:
    """All images under `images_dir` and `elsewhere`, parents before children.

    Raises InputError when a parent is missing or images stand on each other in a ring.
    """
    fleet = Fleet(images_dir, elsewhere)
    recipes = {
        name: _load(fleet, folder / DOCKERFILE)
        for name, folder in fleet.folders.items()
        if (folder / DOCKERFILE).is_file()
    }
    for recipe in recipes.values():
        for argument, parent in recipe.parents.items():
            if parent != ROOT and parent not in recipes:
                raise InputError(
                    f"ARG {argument} stands for the image of images/{parent}, which is not there",
                    place=str(recipe.folder / "Dockerfile"),
                    mend=f"an ARG ahead of FROM names a parent: {', '.join(recipes)}",
                )
    return {name: recipes[name] for name in _ordered(recipes)}


def _load(fleet: Fleet, dockerfile: Path) -> Recipe:
    folder = dockerfile.parent
    name = folder.name
    parents: dict[str, str] = {}
    stages: list[str] = []
    for line in dockerfile.read_text(encoding="utf-8").splitlines():
        if match := _FROM.match(line):
            stages.append(match[1].strip("${}"))
        elif not stages and (match := _PARENT_ARG.match(line)):
            parents[match[1]] = ROOT if (name, match[1]) == (BASE, "BASE") else match[1].lower()
    stands_on = next((parents[stage] for stage in reversed(stages) if stage in parents), None)
    adapter = fleet.adapter(name) if name in fleet.runnable else None
    return Recipe(name=name, folder=folder, parents=parents, stands_on=stands_on, adapter=adapter)


def _ordered(recipes: Mapping[str, Recipe]) -> list[str]:
    order: list[str] = []

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise InputError(
                f"stands on itself: {' → '.join((*above, name))}", place=str(recipes[name].folder)
            )
        if name in order or name == ROOT:
            return
        for parent in recipes[name].parents.values():
            visit(parent, (*above, name))
        order.append(name)

    for name in recipes:
        visit(name, ())
    return order


def with_parents(
    recipes: Mapping[str, Recipe],
    names: Iterable[str] | None,
    unavailable: Mapping[str, str] = MappingProxyType({}),
) -> Sequence[Recipe]:
    """The named recipes (all when None) and all that they stand on, in building order.

    Raises InputError for a name that is not there, with the reason where `unavailable` has one.
    """
    wanted: set[str] = set()

    def want(name: str) -> None:
        if name in unavailable:
            raise InputError(
                f"{name} cannot be had: {unavailable[name]}",
                place=f"image {name}",
                mend="leave it out; without a name all others are built",
            )
        if name not in recipes:
            raise InputError(f"no image {name!r}", place="images/", mend=f"there are: {', '.join(recipes)}")
        wanted.add(name)
        for parent in recipes[name].parents.values():
            if parent != ROOT:
                want(parent)

    for name in recipes if names is None else names:
        want(name)
    return [recipe for name, recipe in recipes.items() if name in wanted]
