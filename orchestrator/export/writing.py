"""How an export reaches its file: whole or not at all, to a place that holds nothing else."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from orchestrator.errors import InputError
from orchestrator.store.files import store_errors, temporary_of

STDOUT = Path("-")


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A temporary file beside `path`, which takes its place when the block ends well; else it is removed.

    Raises InputError where something stands there that is no file, as a device or a pipe: it would be
    replaced. StoreError where it cannot be written.
    """
    if path.exists() and not path.is_file():
        raise InputError("is no file", place=str(path), mend="name a file; - is standard output")
    path = path.resolve()
    temporary = temporary_of(path)
    with store_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield temporary
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def new_directory(path: Path) -> Iterator[Path]:
    """The same for a directory. `path` may be an empty one; raises InputError where it holds something."""
    temporary = temporary_of(path)
    with store_errors(path):
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise InputError("holds something already", place=str(path), mend="name a new directory")
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        try:
            yield temporary
            temporary.replace(path)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def write_chunks(path: Path, chunks: Iterable[bytes]) -> None:
    """Write what comes, piece by piece; `-` is standard output."""
    if path == STDOUT:
        for chunk in chunks:
            sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
        return
    with new_file(path) as temporary, temporary.open("wb") as file:
        for chunk in chunks:
            file.write(chunk)
