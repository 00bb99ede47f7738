"""The runner's end of the line to PID 1 (`images/init`): the lines, and the socket they travel on.

Every wait ends at a deadline of `time.monotonic()` or when its `Wake` is set, whichever is first, so a
thread that waits here can be told that something else happened.
"""

from __future__ import annotations

import os
import re
import select
import socket
import struct
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from orchestrator.errors import CellFault, EnvironmentFault
from orchestrator.sandbox.contract import AskedName, ContainerEnd
from orchestrator.unix_socket import bound

CONTROL_SOCKET = "control.sock"

# A line of PID 1's has at most some 300 bytes; more without an end is not PID 1.
_MAX_LINE = 1024

Command = Literal["go", "pause", "resume", "kill", "bye"]


@dataclass(frozen=True)
class Ready:
    """PID 1 does its part; with `names` it also hears which host names are asked for."""

    names: bool = False


@dataclass(frozen=True)
class Started:
    """argv was started at `at`, in seconds of `time.monotonic()`."""

    at: float


@dataclass(frozen=True)
class Failed:
    """argv could not be started, or PID 1 could not do its part."""

    errno: int
    text: str


@dataclass(frozen=True)
class Asked:
    """A host name that was looked up; all of them are said before the end."""

    asked: AskedName


@dataclass(frozen=True)
class Ended:
    end: ContainerEnd


@dataclass(frozen=True)
class Closed:
    """The line broke: PID 1 is gone."""


Message = Ready | Started | Failed | Asked | Ended | Closed

_STARTED = re.compile(r"started (\d{1,19})")
_FAILED = re.compile(r"failed (\d{1,4}) ([ -~]+)")
_ASKED = re.compile(r"asked (\d{1,19}) (\d{1,9}) ([a-z0-9_.-]{1,253})")
_END = re.compile(
    r"end exit=(\d{1,3}|-) signal=(\d{1,3}|-) timeout=([01]) oom=(\d{1,10})"
    r" cpu_ms=(\d{1,16}) rss_kb=(\d{1,16}) start=(\d{1,19}) end=(\d{1,19})"
)


def parse_line(line: bytes) -> Message:
    """One line of PID 1's, without its newline. Raises CellFault("engine") for what is no message."""
    text = line.decode("ascii", "backslashreplace")
    if text in ("ready", "ready names"):
        return Ready(names=text != "ready")
    if match := _STARTED.fullmatch(text):
        return Started(at=int(match[1]) / 1e9)
    if match := _FAILED.fullmatch(text):
        return Failed(errno=int(match[1]), text=match[2])
    if match := _ASKED.fullmatch(text):
        return Asked(AskedName(name=match[3], first=int(match[1]) / 1e9, count=int(match[2])))
    if match := _END.fullmatch(text):
        exit_code, signal, timeout, oom, cpu_ms, rss_kb, start, end = match.groups()
        if (exit_code == "-") != (signal == "-"):
            return Ended(
                ContainerEnd(
                    exit_code=None if exit_code == "-" else int(exit_code),
                    signal=None if signal == "-" else int(signal),
                    timed_out=timeout == "1",
                    oom_kills=int(oom),
                    cpu_s=int(cpu_ms) / 1000,
                    max_rss_bytes=int(rss_kb) * 1024,
                    start=int(start) / 1e9,
                    end=int(end) / 1e9,
                )
            )
    raise CellFault(
        "engine", f"PID 1 said {text[:200]!r}, which is not in the protocol", place="control line"
    )


class Wake:
    """Ends another thread's wait. `set` may be called from any thread, also after `close`."""

    def __init__(self) -> None:
        self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._open = True
        self._lock = threading.Lock()

    def fileno(self) -> int:
        return self._fd

    def set(self) -> None:
        with self._lock:
            if self._open:
                os.eventfd_write(self._fd, 1)

    def clear(self) -> None:
        os.eventfd_read(self._fd)

    def close(self) -> None:
        with self._lock:
            self._open = False
            os.close(self._fd)


class ControlLine:
    """The one accepted connection. `send` may be called from any thread, `receive` from one."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._buffer = b""
        self._sending = threading.Lock()

    def send(self, command: Command) -> bool:
        """False when the line is broken; `receive` then says Closed, after what PID 1 still said."""
        with self._sending:
            try:
                # A dozen bytes into an empty socket buffer: not taking them means that nobody reads.
                self._connection.sendall(f"{command}\n".encode(), socket.MSG_DONTWAIT)
            except OSError:
                return False
        return True

    def receive(self, until: float | None, wake: Wake) -> Message | None:
        """The next message, or None at `until` (None: no deadline) or once `wake` is set."""
        while b"\n" not in self._buffer:
            if not _readable(self._connection, until, wake):
                return None
            try:
                data = self._connection.recv(4096)
            except OSError:
                data = b""
            if not data:
                return Closed()
            self._buffer += data
            if b"\n" not in self._buffer and len(self._buffer) > _MAX_LINE:
                raise CellFault("engine", "PID 1 sent a line without an end", place="control line")
        line, _, self._buffer = self._buffer.partition(b"\n")
        return parse_line(line)

    def close(self) -> None:
        """Ends the line, and with it a container that still runs."""
        self._connection.close()


class ControlSocket:
    """Listens on `run_dir`/control.sock for one connection by `user`, then is gone from the file system.

    Raises EnvironmentFault when the socket cannot be made or given to `user`.
    """

    def __init__(self, run_dir: Path, user: tuple[int, int]) -> None:
        self._path = run_dir / CONTROL_SOCKET
        self._uid = user[0]
        try:
            self._listener = bound(self._path)
            self._give(user)
        except OSError as error:
            raise EnvironmentFault(
                f"cannot offer a socket to uid {user[0]}: {error.strerror}",
                place=str(self._path),
                mend="run cab as root, or containers as cab's own uid",
            ) from error

    def _give(self, user: tuple[int, int]) -> None:
        try:
            self._path.chmod(0o600)
            if os.geteuid() != self._uid or os.getegid() != user[1]:
                os.chown(self._path, *user)
            self._listener.listen(1)
        except OSError:
            self._listener.close()
            raise

    def accept(self, until: float | None, wake: Wake) -> ControlLine | None:
        """The line to PID 1, or None at `until` or once `wake` is set. Raises CellFault for a stranger."""
        if not _readable(self._listener, until, wake):
            return None
        connection, _ = self._listener.accept()
        self.close()
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        _, uid, _ = struct.unpack("3i", credentials)
        if uid != self._uid:
            connection.close()
            raise CellFault("engine", f"uid {uid} connected instead of {self._uid}", place="control line")
        return ControlLine(connection)

    def close(self) -> None:
        self._path.unlink(missing_ok=True)
        self._listener.close()


def _readable(source: socket.socket, until: float | None, wake: Wake) -> bool:
    """True when `source` can be read; False at `until` or once `wake` is set (which is then cleared)."""
    poller = select.poll()
    poller.register(source, select.POLLIN)
    poller.register(wake, select.POLLIN)
    timeout_ms = None if until is None else max(0.0, until - time.monotonic()) * 1000
    ready = {fd for fd, _ in poller.poll(timeout_ms)}
    if wake.fileno() in ready:
        wake.clear()
    return source.fileno() in ready
