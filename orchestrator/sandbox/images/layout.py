"""Where the files of a checkout are that images are made of, and that their making leaves."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from orchestrator import paths
from orchestrator.fleet import Fleet
from orchestrator.sandbox.images.lock import check_checkout
from orchestrator.sandbox.images.recipe import BASE, Recipe, load_recipes


@dataclass(frozen=True)
class Layout:
    """Where things are in a checkout, and the folder elsewhere that holds more CLIs' folders."""

    repo: Path = paths.ROOT
    elsewhere: Path | None = None

    def __post_init__(self) -> None:
        """Raises EnvironmentFault where there is no checkout."""
        check_checkout()

    @property
    def images(self) -> Path:
        return self.repo / "images"

    @cached_property
    def fleet(self) -> Fleet:
        """Its CLIs, and those elsewhere."""
        return Fleet(self.images, self.elsewhere)

    @property
    def recipes(self) -> dict[str, Recipe]:
        """What its images are made from, parents before children."""
        return load_recipes(self.images, self.elsewhere)

    @property
    def lock(self) -> Path:
        return self.repo / "images.lock"

    @property
    def pin(self) -> Path:
        return self.images / BASE / "base.pin"

    @property
    def logs(self) -> Path:
        return self.repo / "build" / "logs"

    @property
    def sboms(self) -> Path:
        """The lists of what is in each image."""
        return self.repo / "build" / "sbom"

    @property
    def init(self) -> Path:
        """The binary that is PID 1 of every container."""
        return self.repo / "build" / "init"

    @contextmanager
    def one_at_a_time(self) -> Iterator[None]:
        """Wait until no other process makes images here or writes images.lock, and keep others waiting."""
        self.logs.mkdir(parents=True, exist_ok=True)
        with (self.logs / ".lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
