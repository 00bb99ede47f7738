"""What a runner has under way, for whoever asks while it runs: read without the sweep's lock.

The lock file names the process that took the lock, and is emptied when it is given back; an owner file beside
each cell's staging directory names the cell, and gets a line for each stage that begins. Those lines are for
watchers alone, so that none of them waits for the disk.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from orchestrator.errors import InputError
from orchestrator.store.names import CellKey

LOCK = "lock"
STAGING = ".staging"


@dataclass(frozen=True)
class Process:
    """A process by its pid and when it started (clock ticks since boot), which no other shares."""

    pid: int
    start: int | None

    @classmethod
    def this(cls) -> Process:
        return cls(os.getpid(), start_ticks(os.getpid()))

    @property
    def alive(self) -> bool:
        return self.start is not None and start_ticks(self.pid) == self.start


@dataclass(frozen=True)
class Owner:
    """An owner file: whose a staging directory is. `since` is a Unix time in seconds, None in older files;
    `stages` are those that have begun.
    """

    key: CellKey
    process: Process
    since: float | None
    stages: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> Owner | None:
        """None for a file that is gone, torn or none of cab's."""
        try:
            first, *stages = path.read_text("utf-8").splitlines()
            said = json.loads(first)
            key = CellKey(**said["cell"])
            return cls(key, Process(said["pid"], said["start"]), said.get("since"), tuple(stages))
        except (OSError, ValueError, KeyError, TypeError, InputError):
            return None

    @staticmethod
    def first_line(key: CellKey) -> bytes:
        """What the file of a cell of this process begins with."""
        process = Process.this()
        said = {"pid": process.pid, "start": process.start, "since": time.time(), "cell": asdict(key)}
        return json.dumps(said).encode() + b"\n"


@dataclass(frozen=True)
class UnderWay:
    """One cell under way: its last stage that began, and the lines of model calls that have ended."""

    key: CellKey
    stage: str | None
    since: float | None
    calls: tuple[bytes, ...]


@dataclass(frozen=True)
class Runner:
    """The process that has a sweep's lock, or had it when it died."""

    process: Process
    cells: tuple[UnderWay, ...]


def runner_of(root: Path) -> Runner | None:
    """Who runs the sweep of this directory; None where nobody does and nobody died of it."""
    process = lock_holder(root / LOCK)
    if process is None:
        return None
    owners = sorted((root / STAGING).glob("*.json")) if (root / STAGING).is_dir() else []
    cells = []
    for path in owners:
        owner = Owner.read(path)
        if owner is not None and owner.process == process:
            stage = owner.stages[-1] if owner.stages else None
            cells.append(UnderWay(owner.key, stage, owner.since, _calls(path.with_suffix(""))))
    return Runner(process, tuple(cells))


def lock_holder(lock: Path) -> Process | None:
    """The process that a lock file names."""
    try:
        pid, start = lock.read_text("ascii").split()
        return Process(int(pid), int(start))
    except (OSError, ValueError):
        return None


def _calls(staged: Path) -> tuple[bytes, ...]:
    try:
        return tuple((staged / "calls.jsonl").read_bytes().split(b"\n")[:-1])
    except OSError:
        return ()


def start_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; with its pid that names it.

    None when it is gone, also where nobody has asked how it ended: a machine's first process may not care.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    state, *rest = stat.rpartition(")")[2].split()
    return None if state in {"Z", "X"} else int(rest[18])
