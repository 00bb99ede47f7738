"""Bounded scratch directories for cells.

A cell's workdir, HOME and sockets live here, on the host's disk, and are bind-mounted into its containers. As
root a cell gets a file system of its own (ext4 in a sparse file, loop-mounted), which bounds its bytes and
inodes; otherwise, or where the kernel refuses the mount, a plain directory, and its record says so.

A cell's directory is locked (flock) for as long as its process lives. The kernel drops that lock however the
process ends, a reboot included, so what is not locked is dead: no pid to be reused, no boot to be compared.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import EnvironmentFault

# Not /tmp: that is often memory, and swept while cells run. The uid keeps users apart on a shared machine.
_DEFAULT_ROOT = "/var/tmp/cab-{uid}"

_IMAGE = "image"
_FILES = "files"
_MKFS = ("mkfs.ext4", "-q", "-F", "-m", "0", "-O", "^has_journal,^resize_inode")
# Inode tables are written neither when the file system is made nor, by a kernel thread, afterwards.
_MKFS_LAZY = ("-E", "lazy_itable_init=1,nodiscard")
_MOUNT = ("mount", "-t", "ext4", "-o", "loop,nosuid,nodev,noatime,noinit_itable")


@dataclass(frozen=True)
class Scratch:
    """`path` is empty and the owner's. `bounded`: it holds no more than the bytes and inodes asked for."""

    path: Path
    bounded: bool


def default_root() -> Path:
    """CAB_SCRATCH, or a directory of this user's under /var/tmp."""
    return Path(os.environ.get("CAB_SCRATCH") or _DEFAULT_ROOT.format(uid=os.geteuid()))


class ScratchRoot:
    """Holds all scratch of one user. Paths in it are short and say nothing of what they are for.

    With `bounds` a cell's has a file system of its own where that can be had, without never. `mode` is that
    of all directories above a cell's files: 0711 where another user is to reach those by their path.

    Raises EnvironmentFault when the directory cannot be made, or others could write to it.
    """

    def __init__(self, path: Path, *, bounds: bool = True, mode: int = 0o700) -> None:
        self._bounds, self._mode = bounds, mode
        try:
            path.mkdir(mode=mode, parents=True, exist_ok=True)
            found = path.lstat()
        except OSError as error:
            raise EnvironmentFault(
                f"cannot be made: {error.strerror}",
                place=str(path),
                mend="set CAB_SCRATCH to another directory",
            ) from error
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise EnvironmentFault(
                "is not a directory that only this user can write to",
                place=str(path),
                mend="set CAB_SCRATCH to another directory",
            )
        self.path = path

    @classmethod
    def default(cls) -> ScratchRoot:
        """This user's own."""
        return cls(default_root())

    @contextmanager
    def cell(self, size_bytes: int, inodes: int, owner_uid: int) -> Iterator[Scratch]:
        """An empty scratch directory of `owner_uid`'s, removed with all it holds on the way out.

        Raises EnvironmentFault when it cannot be given to `owner_uid`, or the disk is full.
        """
        directory, lock = self._claim()
        try:
            try:
                scratch = self._furnish(directory, size_bytes, inodes)
                if owner_uid != os.geteuid():
                    os.chown(scratch.path, owner_uid, -1)
            except OSError as error:
                raise EnvironmentFault(
                    f"no scratch for uid {owner_uid}: {error.strerror}",
                    place=str(directory),
                    mend="run cab as root or as that uid, and see that the disk has room",
                ) from error
            yield scratch
        finally:
            _dismantle(directory)
            os.close(lock)

    def sweep_dead(self) -> list[str]:
        """Removes the scratch of processes that have died; returns the names of what was removed."""
        removed = []
        for directory in sorted(self.path.iterdir()):
            if directory.is_symlink() or not directory.is_dir():
                continue
            with self._locked():
                lock = _try_lock(directory)
            if lock is not None:
                try:
                    _dismantle(directory)
                finally:
                    os.close(lock)
                removed.append(directory.name)
        return removed

    def _claim(self) -> tuple[Path, int]:
        # Under the root's lock, so that nobody sees a directory between its making and its locking as dead.
        with self._locked():
            directory = self.path / secrets.token_hex(6)
            directory.mkdir(mode=self._mode)
            lock = _try_lock(directory)
        assert lock is not None
        return directory, lock

    @contextmanager
    def _locked(self) -> Iterator[None]:
        root = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(root, fcntl.LOCK_EX)
            yield
        finally:
            os.close(root)

    def _furnish(self, directory: Path, size_bytes: int, inodes: int) -> Scratch:
        files = directory / _FILES
        files.mkdir(mode=0o755)
        if not self._bounds or os.geteuid() != 0:
            return Scratch(files, bounded=False)
        image = directory / _IMAGE
        _copy_sparse(self._template(size_bytes, inodes), image)
        if subprocess.run([*_MOUNT, image, files], capture_output=True, check=False).returncode != 0:
            image.unlink()
            return Scratch(files, bounded=False)
        (files / "lost+found").rmdir()
        return Scratch(files, bounded=True)

    def _template(self, size_bytes: int, inodes: int) -> Path:
        """An empty file system, made once: copying its few written blocks is quicker than mkfs."""
        template = self.path / f"{size_bytes}-{inodes}.ext4"
        with self._locked():
            if not template.exists():
                unfinished = template.with_suffix(".new")
                with unfinished.open("wb") as file:
                    file.truncate(size_bytes)
                command = [*_MKFS, *_MKFS_LAZY, "-N", str(inodes)]
                made = subprocess.run([*command, unfinished], capture_output=True, text=True, check=False)
                if made.returncode != 0:
                    raise EnvironmentFault(
                        f"mkfs.ext4 failed: {made.stderr.strip()}",
                        place=str(unfinished),
                        mend="install e2fsprogs",
                    )
                unfinished.rename(template)
        return template


@contextmanager
def scratch_alone(mode: int = 0o700, above: str = "/var/tmp") -> Iterator[Path]:
    """A directory in `above`, or in CAB_SCRATCH, for a cell without a sweep; it goes on the way out with all
    it holds. What this user's dead processes left of theirs goes first.

    Raises EnvironmentFault where it cannot be made.
    """
    prefix, place = f"cab-alone-{os.geteuid()}-", Path(os.environ.get("CAB_SCRATCH") or above)
    try:
        for dead in sorted(place.glob(f"{prefix}*")):
            _remove_dead(dead)
        directory, lock = _made_and_locked(place, prefix)
    except OSError as error:
        mend = "set CAB_SCRATCH to another directory"
        raise EnvironmentFault(f"no scratch: {error.strerror}", place=str(place), mend=mend) from error
    try:
        directory.chmod(mode)
        yield directory
    finally:
        _dismantle(directory)
        os.close(lock)


def _made_and_locked(above: Path, prefix: str) -> tuple[Path, int]:
    """A new directory and its lock. Another process may take it for a dead one's until it is locked."""
    while True:
        directory = Path(tempfile.mkdtemp(prefix=prefix, dir=above))
        lock = _try_lock(directory)
        if lock is not None:
            if directory.exists():
                return directory, lock
            os.close(lock)


def _remove_dead(directory: Path) -> None:
    """Remove a directory of this user's whose process has died."""
    found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        return
    lock = _try_lock(directory)
    if lock is not None:
        try:
            _dismantle(directory)
        finally:
            os.close(lock)


def _try_lock(directory: Path) -> int | None:
    """A descriptor that holds the directory's lock, or None when a living process has it (or it is gone)."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _copy_sparse(source: Path, target: Path) -> None:
    with source.open("rb") as reading, target.open("xb") as writing:
        size = os.fstat(reading.fileno()).st_size
        writing.truncate(size)
        end = 0
        while True:
            try:
                start = os.lseek(reading.fileno(), end, os.SEEK_DATA)
            except OSError:  # ENXIO: nothing but a hole is left
                return
            end = os.lseek(reading.fileno(), start, os.SEEK_HOLE)
            os.pwrite(writing.fileno(), os.pread(reading.fileno(), end - start, start), start)


def _dismantle(directory: Path) -> None:
    files = directory / _FILES
    if files.is_mount():
        # Lazily: who still holds a file in it keeps the disk space, but not the cell's directory.
        subprocess.run(["umount", "-l", files], capture_output=True, check=True)
    if (directory / _IMAGE).exists():
        (directory / _IMAGE).unlink()
        files.rmdir()
        directory.rmdir()
        return
    # An agent may have left directories without permissions, or nested deeper than a recursion goes.
    if os.geteuid() != 0:
        subprocess.run(["chmod", "-R", "u+rwX", "--", directory], capture_output=True, check=False)
    subprocess.run(["rm", "-rf", "--one-file-system", "--", directory], capture_output=True, check=True)
