"""Runs one command at a time in place: in the container that cab itself is root in, or on the machine."""

from __future__ import annotations

import json
import os
import pty
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Literal

import orchestrator
from orchestrator.errors import CellFault
from orchestrator.sandbox.config import RUN_DIR
from orchestrator.sandbox.contract import ContainerEnd, ContainerSpec, Mount, OutputSink, RunningContainer
from orchestrator.sandbox.control import ControlLine, Ready, Started
from orchestrator.sandbox.inplace.confine import TCP_SINCE, Order, landlock_version
from orchestrator.sandbox.inplace.mounts import listed, moved, remove_left
from orchestrator.sandbox.inplace.output import DescriptorReader
from orchestrator.sandbox.steered import END_GRACE_S, Steered

START_TIMEOUT_S = 60.0

SHARED_DIRS = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/run/lock")
"""Where any user may leave something for another."""
WRITABLE_DIRS = ("/tmp", "/dev/shm", "/dev/mqueue")
"""Those of them that a command may write to, as in a container of its own."""

_PROGRAM = (
    "import sys; sys.path.insert(0, sys.argv.pop(1));"
    " from orchestrator.sandbox.inplace.supervisor import main; main()"
)


class InPlaceSandbox:
    """`Sandbox` without an engine: one command at a time.

    With `alone`, cab is root in a container that nothing else runs in: mounts are moved to their targets,
    and all that a command's uid left is removed when it has ended. Without, on a machine, targets are called
    by their sources (a variable that names one, too), /tmp is a directory in `run_dir` for whoever heeds
    TMPDIR, and only what the command started is ended.

    `port` is the gateway's, the only one that a command with `model_socket` may connect to where the kernel
    has Landlock; any other command connects nowhere. `environment` is what every command's begins with.
    `hidden` is a directory whose files no command reads, as far as the kernel has Landlock.
    Of a spec, `image_id`, `limits`, `names` and `labels` say nothing here.
    """

    def __init__(
        self,
        *,
        alone: bool,
        port: int,
        environment: Mapping[str, str],
        landlock: int | None = None,
        hidden: Path | None = None,
    ) -> None:
        self._alone = alone
        self._port = port
        self._environment = dict(environment)
        self._hidden = hidden
        self._landlock = landlock_version() if landlock is None else landlock

    @property
    def answers(self) -> bool:
        """It is the machine that cab runs on."""
        return True

    @property
    def egress(self) -> Literal["tcp-restricted", "open"]:
        """What a command reaches besides the gateway."""
        return "tcp-restricted" if self._landlock >= TCP_SINCE else "open"

    def inside(self, mount: Mount) -> str:
        """What a command calls a mount."""
        return mount.target if self._alone else str(mount.source)

    def remove_leftovers(self, labels: dict[str, str]) -> list[str]:
        """Nothing carries a label here, and nothing outlives `run`."""
        del labels
        return []

    def run(
        self,
        spec: ContainerSpec,
        *,
        sink: OutputSink | None = None,
        on_start: Callable[[RunningContainer], None] | None = None,
    ) -> ContainerEnd:
        """Runs `spec` to its end; all its output was handed to `sink` before this returns.

        Raises CellFault("engine"), NotStarted where the command is the cause, EnvironmentFault where a target
        is taken, and what `sink` or `on_start` raise; then nothing of the command runs.
        """
        if not self._alone:
            tmp = _tmp_of(spec)
            tmp.mkdir(exist_ok=True)
            if os.geteuid() == 0:
                os.chown(tmp, *spec.user)
        with self._mounted(spec), self._swept(spec.user[0]):
            run = _Run(spec, self._order(spec))
            try:
                return run.to_the_end(sink, on_start)
            finally:
                run.close()

    def _mounted(self, spec: ContainerSpec) -> AbstractContextManager[None]:
        return moved([Mount(spec.run_dir, RUN_DIR), *spec.mounts]) if self._alone else nullcontext()

    @contextmanager
    def _swept(self, uid: int) -> Iterator[None]:
        """Leave nothing of the uid's in directories that others look at, as far as the uid is not cab's own
        and all that is new there, where nobody else is.
        """
        before = listed(SHARED_DIRS) if self._alone else None
        try:
            yield
        finally:
            if self._alone or uid != os.geteuid():
                remove_left(SHARED_DIRS, of=uid, before=before)

    def _order(self, spec: ContainerSpec) -> Order:
        places = {mount.target: self.inside(mount) for mount in spec.mounts}
        writable = [self.inside(mount) for mount in spec.mounts if not mount.read_only]
        env = {**self._environment, **spec.env}
        if not self._alone:
            places["/tmp"] = str(_tmp_of(spec))
            writable.append(places["/tmp"])
            env = {name: places.get(value, value) for name, value in env.items()} | {"TMPDIR": places["/tmp"]}
        return Order(
            argv=list(spec.argv),
            env=env,
            cwd=places.get(spec.workdir, spec.workdir),
            user=spec.user,
            limit_s=spec.time_limit_s,
            tty=spec.tty is not None,
            alone=self._alone,
            landlock=self._landlock,
            ports=[self._port] if spec.model_socket else [],
            writable=[*writable, *WRITABLE_DIRS],
            hidden=str(self._hidden) if self._hidden else None,
        )


class _Run(Steered):
    """One command, from the start of its supervisor to its end."""

    def __init__(self, spec: ContainerSpec, order: Order) -> None:
        super().__init__(spec)
        self._order = order
        self._process: subprocess.Popen[bytes] | None = None

    def to_the_end(
        self, sink: OutputSink | None, on_start: Callable[[RunningContainer], None] | None
    ) -> ContainerEnd:
        self._start(sink)
        deadline = time.monotonic() + START_TIMEOUT_S
        self._expect(Ready, deadline)
        self._send("go")
        self._started = self._expect(Started, deadline).at
        if on_start is not None:
            on_start(self)
        end = self._ended(heard=False)
        self._send("bye")
        self._finish_output()
        return end

    def close(self) -> None:
        """Leaves nothing: a supervisor whose line ends, ends what it started."""
        if self._line is not None:
            self._line.close()
        if self._process is not None:
            try:
                self._process.wait(END_GRACE_S)
            except subprocess.TimeoutExpired:  # something that cannot be killed, as in a system call
                self._process.kill()
                self._process.wait()
        if self._output is not None:
            self._output.stop(0)
        self._wake.close()

    def _start(self, sink: OutputSink | None) -> None:
        ours, its = socket.socketpair()
        self._line = ControlLine(ours)
        root = str(Path(orchestrator.__file__).parent.parent)
        read, given = self._terminal() if self._spec.tty else _pipes()
        with its:
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", _PROGRAM, root, str(its.fileno())],
                    stdin=given[0],
                    stdout=given[1],
                    stderr=given[2],
                    pass_fds=(its.fileno(),),
                    env={},
                    cwd="/",
                    # What a terminal sends to all of a job, as Ctrl-C, is for cab, which ends this in order.
                    start_new_session=True,
                )
            except OSError as error:
                raise CellFault("engine", f"cannot start: {error.strerror}", place=self._spec.name) from error
            finally:
                for descriptor in {fd for fd in given if fd >= 0}:
                    os.close(descriptor)
        reader = DescriptorReader(read, sink=sink, notify=self._wake.set)
        self._output = reader
        reader.start()
        with suppress(OSError):  # a supervisor that is gone is noticed by who waits for its word
            ours.sendall(json.dumps(asdict(self._order)).encode() + b"\n")

    def _terminal(self) -> tuple[dict[int, str], tuple[int, int, int]]:
        """A pseudo-terminal of the command's user: what is read of it, and stdin, stdout and stderr."""
        assert self._spec.tty is not None
        ours, its = pty.openpty()
        termios.tcsetwinsize(its, (self._spec.tty.rows, self._spec.tty.columns))
        if os.geteuid() == 0:
            os.fchown(its, self._spec.user[0], -1)
        return {ours: "stdout"}, (its, its, its)

    def _broken(self) -> CellFault:
        return CellFault("engine", "the command's supervisor ended before it", place=self._spec.name)


def _tmp_of(spec: ContainerSpec) -> Path:
    """What stands for /tmp on a machine."""
    return spec.run_dir / "tmp"


def _pipes() -> tuple[dict[int, str], tuple[int, int, int]]:
    (out, its_out), (err, its_err) = os.pipe(), os.pipe()
    return {out: "stdout", err: "stderr"}, (subprocess.DEVNULL, its_out, its_err)
