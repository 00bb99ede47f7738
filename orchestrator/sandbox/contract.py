"""What the rest of cab asks of a sandbox, and what it answers. No Docker in here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class TtySize:
    columns: int = 120
    rows: int = 40


@dataclass(frozen=True)
class Mount:
    """A bind mount. `source` is a neutral scratch path: the container can read it in /proc/self/mountinfo."""

    source: Path
    target: str
    read_only: bool = True


@dataclass(frozen=True)
class Limits:
    """Effective limits of one container, stored in the record."""

    memory_bytes: int = 4 << 30
    cpus: float = 2.0
    pids: int = 512
    tmp_bytes: int = 1 << 30
    scratch_bytes: int = 4 << 30
    scratch_inodes: int = 200_000


@dataclass(frozen=True)
class FoundLimits:
    """Those of a container or machine that cab found itself in; None is no limit."""

    memory_bytes: int | None = None
    cpus: float | None = None
    pids: int | None = None
    tmp_bytes: int | None = None


@dataclass(frozen=True)
class ContainerSpec:
    """One hardened container: no network, read-only root, no capabilities, cab's PID 1.

    `image_id` is a bare `sha256:…`; it is what runs, and an engine refuses anything else. With
    `model_socket`, PID 1 offers that Unix socket of the gateway as 127.0.0.1:GATEWAY_PORT and dies when its
    own connection ends.
    With `names`, PID 1 is the container's name server, which knows no name and tells which were asked for.
    `time_limit_s` is kept by PID 1 (it may be paused); the engine's own kill comes later.
    """

    name: str
    image_id: str | None
    argv: tuple[str, ...]
    env: dict[str, str]
    workdir: str
    user: tuple[int, int]
    mounts: tuple[Mount, ...]
    run_dir: Path
    time_limit_s: float
    limits: Limits = Limits()
    tty: TtySize | None = None
    model_socket: bool = False
    names: bool = False
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class AskedName:
    """A host name that was looked up in a container: when first, by `time.monotonic()`, and how often."""

    name: str
    first: float
    count: int


@dataclass(frozen=True)
class ContainerEnd:
    """How a container's command ended, by PID 1's own mark.

    `start` and `end` are `time.monotonic()` of the command itself; `exit_code` is None after a signal.
    `asked` are the host names that were looked up, None where nobody listened.
    """

    exit_code: int | None
    signal: int | None
    timed_out: bool
    oom_kills: int
    cpu_s: float
    max_rss_bytes: int
    start: float
    end: float
    asked: tuple[AskedName, ...] | None = None


OutputSink = Callable[[str, float, bytes], None]
"""Called with ("stdout" | "stderr", monotonic time, bytes) as output arrives; a TTY has only stdout."""


class RunningContainer(Protocol):
    """A started container, for whoever has to pause its clock or stop it from another thread."""

    def pause_clock(self) -> None: ...

    def resume_clock(self) -> None: ...

    def kill(self, reason: str) -> None: ...


class Sandbox(Protocol):
    """Where commands run, each to its end.

    `run` raises CellFault(cause="engine") when the engine, PID 1 or the container fails through no fault of
    the command, and PinMismatch when the engine would run another image than `image_id`.
    """

    @property
    def answers(self) -> bool:
        """Whether further commands could run at this moment."""
        ...

    def inside(self, mount: Mount) -> str:
        """What a command calls a mount: its target, or its source where nothing can be mounted."""
        ...

    def run(
        self,
        spec: ContainerSpec,
        *,
        sink: OutputSink | None = None,
        on_start: Callable[[RunningContainer], None] | None = None,
    ) -> ContainerEnd: ...

    def remove_leftovers(self, labels: dict[str, str]) -> list[str]:
        """End and remove what is left of commands with these labels; their names."""
        ...
