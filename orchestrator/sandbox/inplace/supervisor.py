"""What stands for a container's PID 1 where there is none: starts one command, keeps its limit, and ends
everything that came of it.

It imports the standard library and `confine` alone. Its line is that of `images/init`, as the document
docs/architecture.md has it, after one line more: what to run, as the JSON of an `Order`. It is the subreaper
of all that it starts, so that nothing gets away from it. Where it is root, the command can neither signal nor
read it.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from orchestrator.sandbox.inplace.confine import (
    PR_SET_CHILD_SUBREAPER,
    Order,
    become,
    prctl,
    remove_ipc,
    ruleset,
)

CONTROL_LOST, UNFIT = 10, 12
BYE_S = 5.0
BROOM_UID = 65533
"""Nobody's. A process whose real and saved uid it is cannot be signalled by the uid that it acts as."""

PR_SET_DUMPABLE = 4
OOM_COUNTERS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")


class Broom:
    """A process that acts as the command's uid, started before it: it kills all of that uid at once, however
    fast they multiply, and removes what only their owner may.
    """

    def __init__(self, user: tuple[int, int]) -> None:
        mine, its = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                mine.close()
                self._serve(its, user)
            finally:
                os._exit(0)
        its.close()
        self._line = mine

    def sweep(self) -> None:
        """Kill every process of the uid."""
        self._ask(b"k")

    def clean(self) -> None:
        """Remove the System V IPC objects of the uid, and end."""
        self._ask(b"c")
        self._line.close()
        os.waitpid(self.pid, 0)

    def _ask(self, what: bytes) -> None:
        self._line.send(what)
        if not self._line.recv(1):
            sys.exit(UNFIT)

    @staticmethod
    def _serve(line: socket.socket, user: tuple[int, int]) -> None:
        os.setgroups([])
        os.setresgid(user[1], user[1], user[1])
        os.setresuid(BROOM_UID, user[0], BROOM_UID)
        while what := line.recv(1):
            if what == b"k":
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(-1, signal.SIGKILL)
            else:
                remove_ipc(user[0])
            line.send(what)


class Supervisor:
    """One command, from its order to `bye`."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._heard = b""
        while b"\n" not in self._heard:
            self._heard += self._line.recv(1 << 16) or sys.exit(CONTROL_LOST)
        order, _, self._heard = self._heard.partition(b"\n")
        self._order = Order(**json.loads(order))
        self._left = self._order.limit_s
        self._running_since: float | None = None
        self._paused = self._killed = self._expired = False
        self._pid = 0
        self._status: int | None = None
        self._start = self._end = 0
        self._broom = Broom(self._order.user) if self._order.alone else None
        self._ooms = oom_kills() if self._order.alone else 0
        self._children, told = socket.socketpair()
        for end in (self._children, told):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
        self._told = told

    def run(self) -> NoReturn:
        """Serve the line until the command has ended and all is said."""
        self._say("ready")
        poller = select.poll()
        for source in (self._line, self._children):
            poller.register(source, select.POLLIN)
        while True:
            self._obey()
            if self._status is not None or self._killed or self._expired:
                self._finish()
            ready = {fd for fd, _ in poller.poll(self._patience_ms())}
            if self._line.fileno() in ready:
                self._hear()
            if self._children.fileno() in ready:
                self._children.recv(4096)
            self._reap()
            self._expired = self._running_since is not None and self._rest() <= 0

    # ---- the control line ----

    def _say(self, text: str) -> None:
        try:
            self._line.sendall(f"{text}\n".encode())
        except OSError:
            sys.exit(CONTROL_LOST)

    def _hear(self) -> None:
        try:
            data = self._line.recv(4096)
        except OSError:
            data = b""
        self._heard += data or sys.exit(CONTROL_LOST)

    def _obey(self) -> None:
        while b"\n" in self._heard:
            command, _, self._heard = self._heard.partition(b"\n")
            if command == b"go" and not self._pid:
                self._begin()
            elif command == b"pause" and self._running_since is not None:
                self._left, self._running_since = self._rest(), None
            elif command == b"resume" and self._running_since is None and self._pid:
                self._running_since = time.monotonic()
            elif command == b"kill" and self._pid:
                self._killed = True

    def _rest(self) -> float:
        """Seconds that are left of the limit."""
        since = self._running_since
        return self._left if since is None else self._left - (time.monotonic() - since)

    def _patience_ms(self) -> float | None:
        return None if self._running_since is None else max(0.0, self._rest()) * 1000

    # ---- the command ----

    def _begin(self) -> None:
        rules = ruleset(self._order)
        reader, writer = os.pipe()
        self._start = time.monotonic_ns()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            try:
                become(self._order, rules)
                os.execvpe(self._order.argv[0], self._order.argv, self._order.env)
            except OSError as error:
                os.write(writer, str(error.errno).encode())
            finally:
                os._exit(127)
        os.close(writer)
        if rules is not None:
            os.close(rules)
        failed = os.read(reader, 16)  # closed by a successful exec
        os.close(reader)
        if failed:
            os.waitpid(pid, 0)
            self._say(f"failed {int(failed)} {os.strerror(int(failed))}")
            sys.exit(UNFIT)
        self._pid, self._running_since = pid, time.monotonic()
        self._say(f"started {self._start}")

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self._pid and self._status is None:
                    self._status, self._end = status, time.monotonic_ns()

    # ---- the end ----

    def end_all(self) -> None:
        """Kill and reap until nothing is left of what the command started."""
        kept = {self._broom.pid} if self._broom else set()
        while True:
            if self._broom is not None:
                self._broom.sweep()
            self._reap()
            left = descendants() - kept
            if not left:
                self._reap()  # what has died since
                return
            if self._broom is None:
                freeze_and_kill(left)
            time.sleep(0.001)

    def _finish(self) -> NoReturn:
        self.end_all()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        if self._broom is not None:
            self._broom.clean()
            self._broom = None
        status = self._status or 0
        code, number = "-", "-"
        if os.WIFSIGNALED(status):
            number = str(os.WTERMSIG(status))
        else:
            code = str(os.WEXITSTATUS(status))
        # A command that ended by itself while the limit struck was in time.
        timeout = self._expired and number == str(int(signal.SIGKILL))
        ooms = oom_kills() - self._ooms if self._order.alone else 0
        self._say(
            f"end exit={code} signal={number} timeout={int(timeout)} oom={ooms}"
            f" cpu_ms={int((used.ru_utime + used.ru_stime) * 1000)} rss_kb={used.ru_maxrss}"
            f" start={self._start} end={self._end}"
        )
        self._line.settimeout(BYE_S)
        with suppress(OSError):
            while self._line.recv(4096) not in (b"", b"bye\n"):
                continue
        sys.exit(0)


def descendants() -> set[int]:
    """All processes below this one that are not dead already."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - hot path
        if not name.isdigit():
            continue
        try:
            stat = Path(f"/proc/{name}/stat").read_bytes()
        except OSError:
            continue
        state, parent = stat.rpartition(b")")[2].split()[:2]
        # A dead one may have living children until its parent has asked for it, so it stays in the tree.
        children.setdefault(int(parent), []).append(-int(name) if state in (b"Z", b"X") else int(name))
    found, pending = set(), [os.getpid()]
    while pending:
        for child in children.get(pending.pop(), ()):
            pending.append(abs(child))
            if child > 0:
                found.add(child)
    return found


def freeze_and_kill(processes: set[int]) -> None:
    """Kill processes that may be starting others: stopped, they start none meanwhile."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        if number == signal.SIGKILL and descendants() - processes:
            return  # there are more of them already: those are stopped first
        for pid in processes:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)


def oom_kills() -> int:
    """Processes that the kernel killed for want of memory in this container."""
    for path in OOM_COUNTERS:
        with suppress(OSError, ValueError, StopIteration):
            lines = Path(path).read_text("ascii").splitlines()
            return int(next(line for line in lines if line.startswith("oom_kill ")).split()[1])
    return 0


def main() -> NoReturn:
    """Serve the line whose descriptor is the only argument."""
    line = socket.socket(fileno=int(sys.argv[1]))
    line.set_inheritable(False)
    prctl(PR_SET_DUMPABLE, 0)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    supervisor = Supervisor(line)
    try:
        supervisor.run()
    finally:
        supervisor.end_all()
