"""A directory outside the container, to which the evidence of a cell is given once everything has ended.

Its owner may be the very user that the agent runs as. So the cell's own directory is made, for root alone,
before there is an agent; it is held by its descriptor, and nothing in it is ever looked up by a path.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from orchestrator.errors import EnvironmentFault, StoreError
from orchestrator.sandbox.inplace.confine import FILES_SINCE, landlock_version

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Out:
    """The new directory `name` in `above`. Raises EnvironmentFault where it cannot be made."""

    def __init__(self, above: Path, name: str) -> None:
        self.above, self.name = above, name
        try:
            self._above = os.open(above, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise EnvironmentFault(
                error.strerror or str(error), place=str(above), mend='mount a directory: -v "$PWD"/out:/out'
            ) from None
        try:
            self._held = self._make(name)
        except FileExistsError:
            os.close(self._above)
            raise EnvironmentFault(
                f"{name} is there already", place=str(above), mend="remove it, or give another --run"
            ) from None
        except OSError as error:
            os.close(self._above)
            raise EnvironmentFault(
                error.strerror or str(error), place=str(above), mend="mount it so that root may write there"
            ) from None

    def _make(self, name: str) -> int:
        with suppress(OSError):  # of a run that was killed: it holds nothing
            os.rmdir(name, dir_fd=self._above)
        os.mkdir(name, 0o700, dir_fd=self._above)
        return os.open(name, _DIRECTORY, dir_fd=self._above)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):  # only while it is empty: what was given stays
            if self._in_place():
                os.rmdir(self.name, dir_fd=self._above)
        os.close(self._held)
        os.close(self._above)

    def give(self, evidence: Path) -> Path:
        """Copy the files of a cell's directory there, owned as what lies around it. The place where they are:
        another than `name` where an agent has put something in its stead.

        Raises StoreError where they cannot be written.
        """
        try:
            if not self._in_place():
                os.close(self._held)
                self.name = f"{self.name}-{os.urandom(4).hex()}"
                self._held = self._make(self.name)
            owner = os.fstat(self._above)
            for path in sorted(evidence.iterdir()):
                self._copy(path, owner)
            os.fchmod(self._held, 0o755)
            self._hand_over(self._held, owner)
        except OSError as error:
            raise StoreError(
                f"evidence cannot be written: {error.strerror or error}",
                place=str(self.above / self.name),
                mend="see that there is space, and that root may write there",
            ) from None
        return self.above / self.name

    def hidden(self) -> Path:
        """The directory above, by its real path: an agent is not to read what earlier cells left there.

        Raises EnvironmentFault where something is there, and the kernel cannot hide it.
        """
        with os.scandir(self._above) as found:
            others = any(entry.name != self.name for entry in found)
        if others and landlock_version() < FILES_SINCE:
            raise EnvironmentFault(
                "the agent could read what is in it: this kernel has no Landlock that hides it",
                place=str(self.above),
                mend="mount an empty directory",
            )
        return self.above.resolve()

    def _in_place(self) -> bool:
        """Whether the directory is still where it was made."""
        try:
            found = os.stat(self.name, dir_fd=self._above, follow_symlinks=False)
        except OSError:
            return False
        return os.path.samestat(found, os.fstat(self._held))

    def _copy(self, path: Path, owner: os.stat_result) -> None:
        with (
            path.open("rb") as source,
            os.fdopen(os.open(path.name, _NEW_FILE, 0o644, dir_fd=self._held), "wb") as to,
        ):
            shutil.copyfileobj(source, to)
            self._hand_over(to.fileno(), owner)

    def _hand_over(self, fd: int, owner: os.stat_result) -> None:
        # Not every file system lets root give files away, as where root of a container is nobody outside.
        with suppress(PermissionError):
            os.fchown(fd, owner.st_uid, owner.st_gid)
