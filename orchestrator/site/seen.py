"""What a build looks at before it knows what is stale: where none of it has changed, nothing is.

Files are known by their size, times and inode and not opened, so that a build with nothing to do reads no
index. What only looks changed is found by the digests of each page (`build.py`), which decide alone.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from orchestrator.external.agreement import HELD_AGAINST
from orchestrator.external.scorecard import SCORECARD
from orchestrator.paths import DOCS, IMAGES, IMAGES_LOCK, PLUGINS, TASKS
from orchestrator.site.cell.stored import CAST, PUBLISHED_AS
from orchestrator.store.cells import CELLS
from orchestrator.store.evidence import FACTS
from orchestrator.store.files import store_errors

_CODE = Path(__file__).parents[1]
_CAB = (_CODE, _CODE.parent / "scorers", DOCS, IMAGES, IMAGES_LOCK, PLUGINS, TASKS)
"""All of cab that pages are made by or tell of."""
_OF_CELLS = frozenset((*PUBLISHED_AS, CAST, FACTS))
"""The files of a cell that pages are made of; the rest is stored with them and never read for a site."""
_DEPTH = 4
"""CLI, model, task and run."""


def seen(sweeps: Iterable[Path], *given: str) -> str:
    """A digest of the files of cab and of these sweeps as they stand, and of what else was given. Raises
    StoreError where a directory cannot be read.
    """
    whole = hashlib.sha256(ascii(given).encode("ascii"))
    for root in _CAB:
        with store_errors(root):
            whole.update("".join(_tree(root)).encode("utf-8", "surrogateescape"))
    for root in sweeps:
        with store_errors(root):
            whole.update("".join(_sweep(root)).encode("utf-8", "surrogateescape"))
    return whole.hexdigest()


def _sweep(root: Path) -> Iterator[str]:
    """Its records and its index, of each cell the files that pages are made of and, of a run that it belongs
    to, the scorecard and what that is held against.
    """
    run = root.parent.parent
    if (run / SCORECARD).is_file():
        for name in (SCORECARD, *HELD_AGAINST):
            yield from _tree(run / name)
    for entry in _entries(str(root)):
        if entry.name == CELLS:
            yield from _cells(entry.path, _DEPTH)
        elif entry.is_file():
            yield _line(entry.path, entry.stat())


def _cells(folder: str, below: int) -> Iterator[str]:
    """What pages are made of, `below` levels further down."""
    for entry in _entries(folder):
        if not below:
            if entry.name in _OF_CELLS:
                yield _line(entry.path, entry.stat())
        elif entry.is_dir():
            yield from _cells(entry.path, below - 1)


def _tree(root: Path) -> Iterator[str]:
    """A file, or all files below a directory; nothing where there is none."""
    if not root.is_dir():
        yield from _file(root)
        return
    for entry in _entries(str(root)):
        if not entry.is_dir(follow_symlinks=False):
            yield _line(entry.path, entry.stat(follow_symlinks=False))
        elif entry.name != "__pycache__":
            yield from _tree(Path(entry.path))


def _entries(folder: str) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def _file(path: Path) -> Iterator[str]:
    try:
        yield _line(str(path), path.stat())
    except FileNotFoundError:
        return


def _line(path: str, it: os.stat_result) -> str:
    return f"{path}\0{it.st_size} {it.st_mtime_ns} {it.st_ctime_ns} {it.st_ino}\n"
