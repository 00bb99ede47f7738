"""Reading files that an agent, or code under test, left behind.

Nothing is followed and nothing can block: a symlink, a FIFO or a device reads as no file at all.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def opened(path: Path | str) -> Iterator[io.BufferedReader | None]:
    """A regular file, open for reading; None for anything else, or when it is gone."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        yield None
        return
    with os.fdopen(descriptor, "rb") as file:
        yield file


def read(path: Path | str, max_bytes: int) -> bytes | None:
    """Up to `max_bytes` of a regular file; None for anything else."""
    with opened(path) as file:
        return None if file is None else file.read(max_bytes)
