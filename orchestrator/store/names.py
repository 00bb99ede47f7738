"""Names of the matrix and the paths they become, each way.

A name (CLI, model, task) may hold letters, digits and `._:/-`. On disk a name is one path part: '/' is
written '~', which no name may hold, so that the writing has an inverse. Stack and condition follow the task
after '+' and '@', which no name may hold either.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath

from orchestrator.errors import InputError

NO_MODEL = "none"
"""The model of a cell whose CLI talks to no model."""
NO_STACK = "none"

_NAME = re.compile(r"[A-Za-z0-9._:/-]+")
_MAX_PART = 255
_PARTS = 5
"""Of a cell's id at least: sweep, CLI, model, and a task of two."""
_RUN = re.compile(r"run([1-9][0-9]*)")


def check_name(name: str, what: str, *, place: str = "") -> str:
    """Return `name` if it may name a `what`. Raises InputError if it could not be a path part and back."""
    if _is_name(name):
        return name
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{what} {name!r} holds a character that no name may hold",
            place=place,
            mend="use letters, digits and . _ : / -",
        )
    if any(part in ("", ".", "..") for part in name.split("/")):
        raise InputError(
            f"{what} {name!r} has an empty, '.' or '..' part",
            place=place,
            mend="write it without leading, trailing or doubled '/'",
        )
    raise InputError(f"{what} {name[:40]!r}… is longer than {_MAX_PART} characters", place=place)


@lru_cache(maxsize=1 << 12)
def _is_name(name: str) -> bool:
    """Few names make many cells."""
    parts = name.split("/")
    return bool(_NAME.fullmatch(name)) and len(name) <= _MAX_PART and not {"", ".", ".."}.intersection(parts)


def escape(name: str) -> str:
    """The path part of a name. Raises InputError for what is no name."""
    return check_name(name, "name").replace("/", "~")


def unescape(part: str) -> str:
    """The name of a path part: the inverse of `escape`. Raises InputError for what `escape` never writes."""
    if "/" in part:
        raise InputError(f"{part!r} is more than one path part")
    return check_name(part.replace("~", "/"), "name")


@dataclass(frozen=True, order=True)
class CellKey:
    """One point of the matrix, without the sweep it belongs to. `run` counts from 1."""

    cli: str
    model: str
    task: str
    run: int = 1
    stack: str = NO_STACK
    condition: str | None = None

    def __post_init__(self) -> None:
        for what in ("cli", "model", "task", "stack", "condition"):
            if (name := getattr(self, what)) is not None:
                check_name(name, what)
        if "/" in self.cli:
            raise InputError(f"cli {self.cli!r} holds a '/'", mend="a CLI is one folder under images/")
        if self.run < 1:
            raise InputError(f"run {self.run} is below 1")
        if len(part := self._task_part()) > _MAX_PART:
            raise InputError(f"{part[:40]!r}… is too long for a path part", mend="shorten the name")

    def cell_id(self, sweep_id: str) -> str:
        return f"{sweep_id}/{self.matrix_id()}"

    def matrix_id(self) -> str:
        """The cell's id less its sweep: the same on every date."""
        return f"{self.cli}/{self.model}/{self.task}{self._variant()}#run{self.run}"

    @classmethod
    def of_id(cls, cell_id: str) -> tuple[str, CellKey]:
        """The inverse of `cell_id()`, of tasks named `category/name`: the sweep and the key.

        Raises InputError for what it never gives.
        """
        named, hash_, run = cell_id.rpartition("#run")
        named, at, condition = named.partition("@")
        named, plus, stack = named.partition("+")
        parts = named.split("/")
        if len(parts) < _PARTS or not hash_ or not run.isdecimal():
            raise InputError(f"{cell_id!r} is no cell's id", mend="give it as tables print it")
        sweep_id, cli, *model = parts[:-2]
        key = cls(
            cli=cli,
            model="/".join(model),
            task="/".join(parts[-2:]),
            run=int(run),
            stack=stack if plus else NO_STACK,
            condition=condition if at else None,
        )
        return sweep_id, key

    def path(self) -> PurePosixPath:
        """The cell's directory, relative to `cells/`."""
        return PurePosixPath(self.folder())

    def folder(self) -> str:
        """`path()` as text."""
        return f"{self.cli}/{self.model.replace('/', '~')}/{self._task_part()}/run{self.run}"

    @classmethod
    def from_path(cls, path: PurePosixPath) -> CellKey:
        """The inverse of `path()`. Raises InputError for what `path()` never writes."""
        run = _RUN.fullmatch(path.name)
        if len(path.parts) != 4 or run is None:
            raise InputError("is no cell's directory", place=str(path))
        cli, model, rest = path.parts[:3]
        rest, at, condition = rest.partition("@")
        task, plus, stack = rest.partition("+")
        return cls(
            cli=unescape(cli),
            model=unescape(model),
            task=unescape(task),
            run=int(run[1]),
            stack=unescape(stack) if plus else NO_STACK,
            condition=unescape(condition) if at else None,
        )

    def _variant(self) -> str:
        stack = "" if self.stack == NO_STACK else f"+{self.stack}"
        return stack if self.condition is None else f"{stack}@{self.condition}"

    def _task_part(self) -> str:
        return (self.task + self._variant()).replace("/", "~")


def less_run(cell_id: str) -> tuple[str, int]:
    """A cell's id without its run, and the run."""
    name, _, run = cell_id.rpartition("#run")
    return name, int(run)
