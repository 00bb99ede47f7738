"""Where everything is in the site, by name: nobody writes a path by hand.

All paths are relative to the site's root and have `/` between their parts; templates make them relative to
their own page by `href`. In file names '/' of a name is written '~', and ':' is written '=', which no name
may hold and which every file system and static host takes.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from pathlib import PurePosixPath
from urllib.parse import quote

from orchestrator.store.names import NO_STACK, CellKey, escape

INDEX = "index.html"
MATRIX = "matrix.html"
PARETO = "pareto.html"
GUIDE = "guide.html"
COMPARE = "compare.html"
GALLERY = "gallery.html"
METHODOLOGY = "methodology.html"
GLOSSARY = "glossary.html"
PROVENANCE = "provenance.html"
SNAPSHOTS = "snapshots.html"
APPEALS = "appeals.html"
RECORDS_JSON = "data/records.json"
RECORDS_SUMS = "data/SHA256SUMS"

_MAX_PART = 240
"""Characters of a name in a path; file systems take 255 bytes with all that follows it."""

_VERSIONED = re.compile(r"(.+) \((\w+)\)")
"""A task's name where tasks of different content have it: with the beginning of its digest."""


@lru_cache(maxsize=1 << 12)
def slug(name: str) -> str:
    """A name as one part of a path. Raises InputError for what is no name."""
    versioned = _VERSIONED.fullmatch(name)
    plain, digest = versioned.groups() if versioned else (name, "")
    return _bounded(escape(plain).replace(":", "=") + (f",{digest}" if digest else ""))


def pareto_page(axis: str) -> str:
    """What was passed against one axis; `PARETO` shows the first that anybody has a number of."""
    return f"pareto/{axis}.html"


def cli_page(contestant: str) -> str:
    """The page of a CLI; with a stack or condition, of these together (`opencode+rules@large`)."""
    return f"cli/{_contestant(contestant)}.html"


def model_page(model: str) -> str:
    return f"model/{slug(model)}.html"


def pair_page(contestant: str, model: str) -> str:
    return f"pair/{_contestant(contestant)}/{slug(model)}.html"


def task_page(task: str) -> str:
    """The page of a task, whichever of its contents is named: in its category's folder."""
    _, _, name = bare_task(task).partition("/")
    return f"task/{slug(category_of(task))}/{slug(name or task)}.html"


def bare_task(task: str) -> str:
    """A task's name without the digest that tells its contents apart."""
    versioned = _VERSIONED.fullmatch(task)
    return versioned[1] if versioned else task


def category_page(category: str) -> str:
    return f"category/{slug(category)}.html"


def category_of(task: str) -> str:
    """The category of a task: its name's first part."""
    return task.partition("/")[0]


def condition_page(sweep_id: str) -> str:
    """A sweep's conditions beside each other."""
    return f"condition/{slug(sweep_id)}.html"


def sweep_page(sweep_id: str) -> str:
    return f"sweep/{slug(sweep_id)}.html"


@lru_cache(maxsize=1 << 16)
def cell_page(sweep_id: str, key: CellKey) -> str:
    return f"cell/{slug(sweep_id)}/{key.folder().replace(':', '=')}.html"


def attached(page: str, name: str) -> str:
    """A file that belongs to a page: it lies beside it. A folder of its own for each such file would take as
    long to make as all of them to write. What parts the two names is in none of a page.
    """
    return f"{page.removesuffix('.html')},{name}"


def sweep_record(sweep_id: str) -> str:
    """The record of a sweep, as a file."""
    return f"data/sweep/{slug(sweep_id)}.json"


def document_page(name: str) -> str:
    """The page of one of cab's documents that has no name of its own above."""
    return f"docs/{name}.html"


def badge(page: str) -> str:
    """The badge of what a page is about."""
    return attached(page, "badge.svg")


def card(page: str) -> str:
    """What other sites may frame, of what a page is about."""
    return attached(page, "card.html")


def contestant(key: CellKey) -> str:
    """A CLI, or a CLI with a stack (`opencode+rules`), as pages name it."""
    return key.cli if key.stack == NO_STACK else f"{key.cli}+{key.stack}"


def root_of(path: str) -> str:
    """The site's root as seen from a page: `../` for each folder that the page is in."""
    return "../" * (len(PurePosixPath(path).parts) - 1)


@lru_cache(maxsize=4096)
def url(path: str) -> str:
    """A path as part of an address."""
    return quote(path, safe="/~+@=:!$,")


def _contestant(name: str) -> str:
    """A CLI with its stack and condition as a part of a path; what parts them is in no name."""
    parts = re.split("([+@])", name)
    return _bounded("".join(part if part in "+@" else slug(part) for part in parts))


def _bounded(part: str) -> str:
    """A part of a path, with room for `,card.html` and what a file's name ends with while it is written."""
    if len(part) <= _MAX_PART:
        return part
    return f"{part[: _MAX_PART - 17]},{hashlib.sha256(part.encode()).hexdigest()[:16]}"
