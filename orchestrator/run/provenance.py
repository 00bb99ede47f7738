"""Which cab, on what kind of machine: the part of a record that no cell changes. Nothing here names a host or
a user.
"""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path

from orchestrator import __version__
from orchestrator.paths import INSTALLED, ROOT

USED = ("images", "orchestrator", "scorers", "tasks")
"""Directories whose files decide results, whether git knows them or not."""


@dataclass(frozen=True)
class Provenance:
    """`commit` is None outside a git checkout; `dirty` when tracked files differ from it, or when files
    that git does not know (nor ignore) stand where adapters, images, tasks and code are found.
    """

    version: str
    commit: str | None
    dirty: bool | None
    platform: str
    kernel: str
    cores: int
    memory_bytes: int

    @classmethod
    def read(cls, root: Path = ROOT) -> Provenance:
        """Read it off this machine and checkout."""
        # What an installed cab lies in may be somebody else's checkout.
        commit = None if INSTALLED else _git(root, "rev-parse", "HEAD")
        return cls.of_build(__version__, commit, _dirty(root) if commit else None)

    @classmethod
    def of_build(cls, version: str, commit: str | None, dirty: bool | None) -> Provenance:
        """A build whose checkout is known from elsewhere, on this machine."""
        return cls(
            version=version,
            commit=commit,
            dirty=dirty,
            platform=f"{platform.system().lower()}/{platform.machine()}",
            kernel=platform.release(),
            cores=os.cpu_count() or 1,
            memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        )


def _dirty(root: Path) -> bool | None:
    tracked = _git(root, "status", "--porcelain", "--untracked-files=no")
    used = _git(root, "status", "--porcelain", "--untracked-files=all", "--", *USED)
    return None if tracked is None or used is None else bool(tracked or used)


def _git(root: Path, *args: str) -> str | None:
    done = subprocess.run(["git", *args], cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None
