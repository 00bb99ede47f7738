"""What an image is made from: a folder under images/ with a Dockerfile, and the images it names as parents.

A parent is an `ARG` ahead of the first `FROM`: `ARG NODE` stands for the image of images/node, `ARG ROOT` for
the root file system (`root.py`), and so does `ARG BASE` in images/base itself.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from orchestrator.adapter import Adapter
from orchestrator.errors import InputError
from orchestrator.fleet import ADAPTER, DOCKERFILE, Fleet
from orchestrator.nearest import nearest
from orchestrator.sandbox.images import cell
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
_FACTS = {
    "cli_version": "version of the CLI",
    "cab_version": "cab's version",
    "commit": "cab's commit",
    "dirty": "cab differs from its commit",
}
"""Facts among the inputs, as a person reads them."""

_NOT_INPUTS = frozenset({"adapter.py", "base.pin", "README.md"})


@dataclass(frozen=True)
class Recipe:
    """One image.

    `parents` maps each build argument to the name of the image whose id it gets; `stands_on` is the one
    that the last stage starts from, or takes its files from when it starts from scratch. `beside` are input
    files from outside the folder, by their path in the build context. `facts` is what a CLI's image for
    run-cell says of itself, None of any other image.
    """

    name: str
    folder: Path
    parents: Mapping[str, str]
    stands_on: str | None
    adapter: Adapter | None
    beside: Mapping[str, Path] = field(default_factory=dict)
    facts: Mapping[str, Any] | None = None

    @property
    def for_run_cell(self) -> bool:
        """Whether it is there for `cab run-cell` alone; no sweep needs it."""
        return self.facts is not None or self.name == cell.CELL

    @property
    def version(self) -> str | None:
        """The version of the CLI that its adapter pins; None where there is no CLI in it."""
        return self.adapter.version if self.adapter else None

    def version_problem(self, versions: Mapping[str, str]) -> str | None:
        """How the versions read back differ from the adapter's; None: not at all, or no CLI is in it. An
        image for run-cell has its CLI from the one it stands on, whose versions were read.
        """
        return version_problem(self.adapter, versions) if self.adapter and not self.for_run_cell else None

    def tag(self, inputs_hash: str) -> str:
        """`cab/<name>:<version of the CLI>`, or the inputs' hash where there is no CLI in it."""
        return f"cab/{self.name.replace('+', '-')}:{self.version or inputs_hash[:12]}"

    def files(self) -> dict[str, Path]:
        """The build's input files by path in its context. Adapter and README are in no image of a CLI."""
        own = {
            path.relative_to(self.folder).as_posix(): path
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and "__pycache__" not in path.parts and path.name not in _NOT_INPUTS
        }
        return {**own, **self.beside}

    def inputs_hash(self, parent_ids: Mapping[str, str]) -> str:
        """sha256 of all that decides what is built: files (names, modes, contents), facts, parents' ids."""
        digest = hashlib.sha256(f"{self.name}\n".encode())
        for name, path in self.files().items():
            digest.update(_line(name, path))
        for argument, parent in sorted(self.parents.items()):
            digest.update(f"{argument}={parent_ids[parent]}\n".encode())
        if self.facts is not None:
            digest.update(json.dumps(self.facts, sort_keys=True).encode())
        return digest.hexdigest()

    def inputs(self, parent_ids: Mapping[str, str]) -> dict[str, str]:
        """The same in parts, to tell later which of them changed: of each file and of each folder a sha256,
        of each parent its id, by `ARG NAME`, and which cab it holds.
        """
        parts: dict[str, Any] = {}
        for name, path in self.files().items():
            parts.setdefault(name.partition("/")[0], hashlib.sha256()).update(_line(name, path))
        parents = {f"{ARG}{argument}": parent_ids[name] for argument, name in sorted(self.parents.items())}
        facts = {told: str(self.facts.get(fact)) for fact, told in _FACTS.items()} if self.facts else {}
        return {**{name: part.hexdigest() for name, part in parts.items()}, **parents, **facts}

    def context(
        self, host_files: Mapping[str, bytes], made: Mapping[str, bytes] = MappingProxyType({})
    ) -> bytes:
        """The build context as a tar file: the input files, what is `made` for it, and `host/`. Times and
        owners are fixed.
        """
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            for name, path in self.files().items():
                _add(tar, name, path.read_bytes(), _mode(path))
            for name, content in made.items():
                _add(tar, name, content, 0o644)
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
    """All images under `images_dir` and `elsewhere`, parents before children; and each CLI's for run-cell,
    where all that it is made of lies beside `images_dir`.

    Raises InputError when a parent is missing or images stand on each other in a ring.
    """
    fleet = Fleet(images_dir, elsewhere)
    recipes = {
        name: _load(fleet, folder / DOCKERFILE)
        for name, folder in fleet.folders.items()
        if (folder / DOCKERFILE).is_file()
    }
    carrier = recipes.pop(cell.CELL, None)
    if carrier is not None and cell.has_all(images_dir.parent):
        recipes[cell.CELL] = replace(carrier, beside=cell.carried_files(images_dir.parent))
        clis = [name for name in fleet.runnable if name in recipes]
        facts = cell.cab_facts(images_dir.parent, {name: fleet.adapter_file(name) for name in clis})
        for name in clis:
            child = _child(recipes[name], carrier.folder / cell.CHILD, facts[name])
            recipes[child.name] = child
    for recipe in recipes.values():
        for argument, parent in recipe.parents.items():
            if parent != ROOT and parent not in recipes:
                raise InputError(
                    f"ARG {argument} stands for the image of images/{parent}, which is not there",
                    place=str(recipe.folder / "Dockerfile"),
                    mend=f"an ARG ahead of FROM names a parent: {', '.join(recipes)}",
                )
    return {name: recipes[name] for name in _ordered(recipes)}


def _child(of: Recipe, folder: Path, cab: Mapping[str, Any]) -> Recipe:
    """The image for run-cell of a CLI."""
    return Recipe(
        name=cell.child_name(of.name),
        folder=folder,
        parents={"CLI": of.name, "CELL": cell.CELL},
        stands_on=of.name,
        adapter=of.adapter,
        beside={f"cab/images/{of.name}/{ADAPTER}": of.folder / ADAPTER},
        facts={"cli": of.name, "cli_version": of.version, **cab},
    )


def with_children(recipes: Mapping[str, Recipe], names: Iterable[str]) -> list[str]:
    """The names, and after each CLI's its image for run-cell."""
    found: dict[str, None] = {}
    for name in names:
        child = cell.child_name(name)
        found.update(dict.fromkeys([name, child] if child in recipes else [name]))
    return list(found)


def with_needed(recipes: Mapping[str, Recipe], names: Iterable[str]) -> list[str]:
    """The names, and what the CLIs among them need besides: their images for run-cell, and PID 1."""
    found = with_children(recipes, names)
    cells = any(recipes[name].adapter is not None for name in found if name in recipes)
    return [*found, INIT] if cells and INIT in recipes and INIT not in found else found


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
            known = [known for known in recipes if "+" not in known]
            raise InputError(f"no image {name!r}", place="images/", mend=nearest(name, known))
        wanted.add(name)
        for parent in recipes[name].parents.values():
            if parent != ROOT:
                want(parent)

    for name in recipes if names is None else names:
        want(name)
    return [recipe for name, recipe in recipes.items() if name in wanted]
