"""Which cab, on what kind of machine: the part of a record that no cell changes. Nothing here names a host or
a user.
"""

from __future__ import annotations

import os
import platform
import subprocess
from dataclasses import dataclass

from orchestrator import __version__
from orchestrator.paths import ROOT


@dataclass(frozen=True)
class Provenance:
    """`commit` is None outside a git checkout; `dirty` when tracked files differ from it."""

    version: str
    commit: str | None
    dirty: bool | None
    platform: str
    kernel: str
    cores: int
    memory_bytes: int

    @classmethod
    def read(cls) -> Provenance:
        """Read it off this machine and checkout."""
        commit = _git("rev-parse", "HEAD")
        status = _git("status", "--porcelain", "--untracked-files=no") if commit else None
        return cls(
            version=__version__,
            commit=commit,
            dirty=None if status is None else bool(status),
            platform=f"{platform.system().lower()}/{platform.machine()}",
            kernel=platform.release(),
            cores=os.cpu_count() or 1,
            memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        )


def _git(*args: str) -> str | None:
    done = subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None
