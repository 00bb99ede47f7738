"""Starting this program again, the environment of what it starts, and the end of all that was started."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from pathlib import Path

from cab_tests.errors import UnusableError

PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
PROGRAM = (sys.executable, "-I", "-B", str(Path(__file__).resolve().parent))
"""This program again: no PYTHON* variables, no user site, and no working directory on the path."""


def become_subreaper() -> None:
    """Make orphaned descendants children of this process, and close it to their tracing."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    _prctl(PR_SET_DUMPABLE, 0)


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise UnusableError(f"prctl({option}) failed: {os.strerror(ctypes.get_errno())}")


def kill_descendants() -> None:
    """Kill and reap until no child is left; the children of a killed child come here next."""
    while True:
        for process in Path("/proc").iterdir():
            if process.name.isdigit() and _parent_of(process) == os.getpid():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(process.name), signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _parent_of(process: Path) -> int | None:
    try:
        return int((process / "stat").read_text(encoding="latin-1").rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return None


def environment(scratch: Path) -> dict[str, str]:
    """What is started sees this: nothing that could change how an interpreter or a compiler works."""
    kept = {key: os.environ[key] for key in ("PATH", "HOME", "RUSTUP_HOME") if key in os.environ}
    return kept | {"LANG": "C.UTF-8", "TMPDIR": str(scratch)}
