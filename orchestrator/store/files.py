"""Durable file operations: one that returns is on the disk, one that fails leaves nothing half-written."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from orchestrator.errors import StoreError

_MENDS = {
    errno.ENOSPC: "free disk space, then give the same command again",
    errno.EDQUOT: "raise the disk quota, then give the same command again",
    errno.EACCES: "give this user the right to read and write there",
    errno.EPERM: "give this user the right to read and write there",
    errno.EROFS: "use a results directory on a writable file system",
}


@contextmanager
def store_errors(place: Path) -> Iterator[None]:
    """Turn an OSError into a StoreError of one line that names the file and the mend."""
    try:
        yield
    except OSError as error:
        where = str(error.filename) if isinstance(error.filename, str | os.PathLike) else str(place)
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise StoreError(reason, place=where, mend=_MENDS.get(error.errno or 0, "")) from error


def write_all(fd: int, data: bytes) -> None:
    """Write every byte; a short write is followed by another, which then says why it was short."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def temporary_of(path: Path) -> Path:
    """Where `write_durably` gathers the content of `path`; a crash may leave it behind."""
    return path.with_name(f".{path.name}.tmp")


def write_durably(path: Path, data: bytes) -> None:
    """Put `data` at `path` whole or not at all: temporary file, fsync, rename, fsync of the directory."""
    temporary = temporary_of(path)
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o644)
    try:
        write_all(fd, data)
        os.fsync(fd)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        raise
    finally:
        os.close(fd)
    temporary.replace(path)
    sync_dir(path.parent)


def sync_dir(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_tree(root: Path) -> None:
    """fsync every regular file and directory below `root`, and `root`; symbolic links are not followed."""
    for directory, _, names in os.walk(root, topdown=False):
        for name in names:
            path = Path(directory, name)
            if not stat.S_ISREG(path.lstat().st_mode):
                continue
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        sync_dir(Path(directory))


def make_dirs(path: Path) -> None:
    """Create `path` and its missing parents so that they survive a power cut. Threads may do so at once."""
    missing = []
    while not path.is_dir():
        missing.append(path)
        path = path.parent
    for directory in reversed(missing):
        directory.mkdir(exist_ok=True)
        sync_dir(directory.parent)
