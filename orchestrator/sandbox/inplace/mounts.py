"""Bind mounts without mounting: where nobody else uses a container, what is to be mounted is moved there."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from orchestrator.errors import CellFault, EnvironmentFault
from orchestrator.sandbox.contract import Mount


@contextmanager
def moved(mounts: Sequence[Mount]) -> Iterator[None]:
    """Have each source at its target, and back at its place on the way out.

    Raises EnvironmentFault where a target holds something already.
    """
    with ExitStack() as stack:
        for mount in mounts:
            target = Path(mount.target)
            target.parent.mkdir(parents=True, exist_ok=True)
            _clear(target)
            _move(mount.source, target)
            stack.callback(_move, target, mount.source)
        yield


def _clear(target: Path) -> None:
    try:
        target.rmdir()
    except FileNotFoundError:
        return
    except OSError as error:
        raise EnvironmentFault(
            f"cannot be used as a place for a cell: {error.strerror}",
            place=str(target),
            mend="start a fresh container, with nothing mounted there",
        ) from error


def _move(source: Path, target: Path) -> None:
    """Rename a directory; across file systems copy it, whatever is in it."""
    try:
        source.rename(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _program("mv", "-T", "--", str(source), str(target))


def listed(directories: Sequence[str]) -> dict[str, set[str]]:
    """The names in each of these directories that is there."""
    there = [Path(path) for path in directories if Path(path).is_dir()]
    return {str(path): {entry.name for entry in path.iterdir()} for path in there}


def remove_left(directories: Sequence[str], *, of: int, before: dict[str, set[str]] | None) -> None:
    """Remove what belongs to the user `of` in these directories and, with what was `listed` there before,
    whatever is new since. Without, other people's files that come meanwhile stay.
    """
    for directory in listed(directories):
        known = None if before is None else before.get(directory, set())
        with os.scandir(directory) as entries:
            gone = [
                entry.path
                for entry in entries
                if (known is not None and entry.name not in known) or _belongs(entry, of)
            ]
        if gone:
            # A program, since an agent may have nested directories deeper than a recursion goes.
            _program("rm", "-rf", "--one-file-system", "--", *gone)


def _belongs(entry: os.DirEntry[str], uid: int) -> bool:
    """Whether it is this user's; what another process has removed meanwhile is nobody's."""
    try:
        return entry.stat(follow_symlinks=False).st_uid == uid
    except FileNotFoundError:
        return False


def _program(*argv: str) -> None:
    """Run one to its end. Raises CellFault("disk")."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CellFault("disk", f"{argv[0]} failed: {done.stderr.strip()[:500]}")
