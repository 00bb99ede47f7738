"""Which CLIs there are: a folder each below images/, and below one folder elsewhere.

A folder with an `adapter.py` is a CLI that can run. One with an `unavailable.txt` instead is a CLI that is
known and cannot: its only line says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path

from orchestrator.adapter import Adapter, load_adapter
from orchestrator.errors import InputError
from orchestrator.paths import IMAGES, cab_command

ADAPTER = "adapter.py"
DOCKERFILE = "Dockerfile"
UNAVAILABLE = "unavailable.txt"


@dataclass(frozen=True)
class Fleet:
    """The folders below `images` and, where it is given, below `elsewhere`.

    Raises InputError where `elsewhere` is no folder, or has one of a name that `images` has.
    """

    images: Path = field(default_factory=lambda: IMAGES)
    elsewhere: Path | None = None

    def __post_init__(self) -> None:
        if self.elsewhere is None:
            return
        if not self.elsewhere.is_dir():
            raise InputError(
                "is not there, or no folder",
                place=str(self.elsewhere),
                mend="give --images-dir with the folder that holds the CLIs' folders",
            )
        for name in sorted(_folders(self.elsewhere).keys() & _folders(self.images).keys()):
            raise InputError(
                f"{name} is a name of {self.images} already",
                place=str(self.elsewhere / name),
                mend="give the folder, and its adapter, another name",
            )

    @cached_property
    def folders(self) -> Mapping[str, Path]:
        """Every folder that makes an image or is a CLI, by name."""
        elsewhere = _folders(self.elsewhere) if self.elsewhere else {}
        return {**_folders(self.images), **elsewhere}

    @cached_property
    def unavailable(self) -> Mapping[str, str]:
        """Why a known CLI cannot run, by name.

        Raises InputError for one that says more or less than a line, or has an adapter all the same.
        """
        return {
            name: _reason(folder) for name, folder in self.folders.items() if (folder / UNAVAILABLE).is_file()
        }

    @cached_property
    def runnable(self) -> tuple[str, ...]:
        """The CLIs that have an adapter, by name."""
        return tuple(name for name, folder in self.folders.items() if (folder / ADAPTER).is_file())

    @property
    def known(self) -> tuple[str, ...]:
        """All CLIs by name: those that can run and those that cannot."""
        return tuple(sorted({*self.runnable, *self.unavailable}))

    def matching(self, globs: Iterable[str]) -> tuple[str, ...]:
        """The names that names or globs stand for, each once, as they come. One that matches nothing stays:
        whoever looks it up says so.
        """
        found: dict[str, None] = {}
        for glob in globs:
            names = [name for name in self.known if fnmatchcase(name, glob)]
            found.update(dict.fromkeys(names or [glob]))
        return tuple(found)

    def build_command(self, names: Iterable[str]) -> str:
        """The command that builds the images of these names, and with them what they stand on."""
        wanted = sorted(names)
        elsewhere = any((found := self.folders.get(name)) and found.parent != self.images for name in wanted)
        option = ("--images-dir", str(self.elsewhere)) if elsewhere else ()
        return cab_command("images", "build", *wanted, *option)

    def adapter_file(self, name: str) -> Path:
        """Where the adapter of a CLI is, or would be."""
        return self.folders.get(name, self.images / name) / ADAPTER

    def adapter(self, name: str) -> Adapter:
        """The adapter of a CLI. Raises InputError where there is none, or it cannot be used."""
        folder = self.folders.get(name)
        if folder is not None and (folder / ADAPTER).is_file():
            return load_adapter(folder.parent, name)
        where = "" if self.elsewhere else "; one in a folder elsewhere wants --images-dir"
        raise InputError(
            f"unknown CLI {name!r}",
            place=str(self.adapter_file(name)),
            mend=f"known CLIs: {', '.join(self.runnable)}{where}",
        )


def where_elsewhere(clis: Iterable[str]) -> tuple[str, ...]:
    """The words that a command about these CLIs wants where some of them are in a folder elsewhere, which
    whoever types it has to name: no record does.
    """
    here = _folders(IMAGES)
    return () if all(name in here for name in clis) else ("--images-dir", "DIR")


def _folders(above: Path) -> dict[str, Path]:
    """The folders below one that hold an image's or a CLI's files, by name."""
    return {
        path.name: path
        for path in sorted(above.iterdir())
        if any((path / file).is_file() for file in (ADAPTER, DOCKERFILE, UNAVAILABLE))
    }


def _reason(folder: Path) -> str:
    path = folder / UNAVAILABLE
    for other in (ADAPTER, DOCKERFILE):
        if (folder / other).is_file():
            raise InputError(
                f"says that the CLI cannot run, and there is a {other}",
                place=str(path),
                mend="remove one of them",
            )
    lines = path.read_text(encoding="utf-8").strip().splitlines()
    if len(lines) != 1:
        raise InputError(f"has {len(lines)} lines", place=str(path), mend="say why in one line")
    return lines[0].strip()
