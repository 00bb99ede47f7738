"""PID 1 against an agent of its own uid, and its protocol spoken by hand."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest
from harness import GID, UID, Runner

from orchestrator.sandbox.contract import TtySize
from orchestrator.sandbox.control import (
    Closed,
    ControlLine,
    ControlSocket,
    Ended,
    Failed,
    Message,
    Ready,
    Started,
    Wake,
)

# Prints one line for each attack: its name and why it failed, or SUCCEEDED.
ATTACKS = r"""
import ctypes, fcntl, os, resource, signal, socket, sys
libc = ctypes.CDLL(None, use_errno=True)

def call(number, *args):
    if libc.syscall(number, *args) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

class RLimit(ctypes.Structure):
    _fields_ = [("soft", ctypes.c_ulong), ("hard", ctypes.c_ulong)]

zero = ctypes.byref(RLimit(0, 0))
no_policy = ctypes.byref(ctypes.c_int(0))
X32 = 0x40000000

def connect(path):
    socket.socket(socket.AF_UNIX).connect(path)

attacks = {
    "ptrace": lambda: call(101, 16, 1, 0, 0),
    "environ": lambda: open("/proc/1/environ").read(),
    "memory": lambda: open("/proc/1/mem", "r+b"),
    "maps": lambda: open("/proc/1/maps").read(),
    "descriptors": lambda: os.listdir("/proc/1/fd"),
    "root": lambda: os.listdir("/proc/1/root"),
    "pidfd": lambda: call(438, os.pidfd_open(1), 3, 0),
    "read memory": lambda: call(310, 1, None, 0, None, 0, 0) or call(270 + 42, 1, os.getpid(), 0, 3, 3),
    "oom score": lambda: open("/proc/1/oom_score_adj", "w").write("1000"),
    "control": lambda: connect("/run/cab/control.sock"),
    "cpu limit": lambda: resource.prlimit(1, resource.RLIMIT_CPU, (0, 0)),
    "files limit": lambda: resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0)),
    "cpu limit, x32": lambda: call(X32 | 302, 1, 0, zero, None),
    "cpu limit, high bits": lambda: call(302, ctypes.c_ulong(0xdead00000001), 0, zero, None),
    "nice": lambda: os.setpriority(os.PRIO_PROCESS, 1, 19),
    "nice group": lambda: os.setpriority(os.PRIO_PGRP, 1, 19),
    "idle": lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)),
    "affinity": lambda: os.sched_setaffinity(1, {0}),
    "trace a child's way out": lambda: os.unlink("/run/cab/init"),
}
for name, attack in attacks.items():
    try:
        attack()
        print(name, "SUCCEEDED")
    except OSError as error:
        print(name, "failed:", error.strerror)
for number in set(range(1, 65)) - {32, 33}:
    for send in (lambda: os.kill(1, number), lambda: signal.pidfd_send_signal(os.pidfd_open(1), number)):
        send()
resource.prlimit(0, resource.RLIMIT_CPU, (50, 60))
os.setpriority(os.PRIO_PROCESS, 0, 1)
os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
print("its own limits are its own", flush=True)
sys.exit(7)
"""


def test_agent_cannot_touch_pid_1(run: Runner) -> None:
    end, output = run("python3", "-u", "-c", ATTACKS)
    *attacks, last = output.stdout.decode().splitlines()
    assert len(attacks) == 19, output.stderr
    assert [line for line in attacks if "failed: " not in line] == []
    assert last == "its own limits are its own", output.stderr
    assert end.exit_code == 7


def test_agent_with_a_terminal_cannot_end_pid_1(run: Runner) -> None:
    script = (
        "import os, signal, time, termios, fcntl\n"
        "os.write(1, b'\\x03\\x1c\\x1a')\n"
        "for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP): os.kill(1, number)\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN); fcntl.ioctl(0, termios.TIOCNOTTY)\n"
        "os._exit(9)"
    )
    end, _ = run("python3", "-c", script, tty=TtySize())
    assert end.exit_code == 9


def test_agent_that_kills_all_it_can(run: Runner) -> None:
    end, _ = run("sh", "-c", "sleep 100 & kill -9 -1; exit 8")
    assert (end.exit_code, end.signal) == (8, None)


class ByHand:
    """A container with PID 1 whose protocol the test speaks."""

    def __init__(
        self, run: Runner, init: Path, *argv: str, options: tuple[str, ...] = ("--limit-ms", "60000")
    ):
        self.api = docker.APIClient(timeout=20)
        self.run_dir = run.spec(*argv).run_dir
        (self.run_dir / "init").write_bytes(init.read_bytes())
        (self.run_dir / "init").chmod(0o755)
        self.control = ControlSocket(self.run_dir, (UID, GID))
        self.wake = Wake()
        self.id = self.api.create_container(
            run.image,
            entrypoint=["/run/cab/init", *options],
            command=["--", *argv],
            user=f"{UID}:{GID}",
            labels=run.labels,
            host_config=self.api.create_host_config(
                network_mode="none", binds=[f"{self.run_dir}:/run/cab:ro"], cap_drop=["ALL"]
            ),
        )["Id"]
        self.api.start(self.id)
        self.line: ControlLine | None = None

    def accept(self) -> ControlLine:
        self.line = self.control.accept(time.monotonic() + 20, self.wake)
        assert self.line is not None
        assert self.hear() == Ready()
        return self.line

    def hear(self) -> Message:
        assert self.line is not None
        message = self.line.receive(time.monotonic() + 20, self.wake)
        assert message is not None
        return message

    def exit_code(self) -> int:
        return int(self.api.wait(self.id)["StatusCode"])

    def processes(self) -> list[str]:
        return [process[-1].split()[0] for process in self.api.top(self.id)["Processes"]]

    def close(self) -> None:
        self.api.remove_container(self.id, force=True)
        self.control.close()
        if self.line:
            self.line.close()
        self.wake.close()
        self.api.close()


@pytest.fixture
def by_hand(run: Runner, init_binary: Path) -> Iterator[Any]:
    made: list[ByHand] = []

    def make(*argv: str, **options: Any) -> ByHand:
        made.append(ByHand(run, init_binary, *argv, **options))
        return made[-1]

    yield make
    for container in made:
        container.close()


def test_everything_is_dead_before_the_end_is_said(by_hand: Any) -> None:
    hiding = "(setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 1000; done' &) ; sleep 0.2; exit 3"
    container = by_hand("sh", "-c", hiding)
    line = container.accept()
    line.send("go")
    assert isinstance(container.hear(), Started)
    ended = container.hear()
    assert isinstance(ended, Ended)
    assert ended.end.exit_code == 3
    assert container.processes() == ["/run/cab/init"]
    line.send("bye")
    assert container.exit_code() == 0


def test_nothing_starts_before_go(by_hand: Any) -> None:
    container = by_hand("sleep", "100")
    line = container.accept()
    assert container.processes() == ["/run/cab/init"]
    line.close()
    assert container.exit_code() == 10


@pytest.mark.parametrize("words", [["nonsense\n"], ["go\n", "go\n"], ["kill\n"], ["bye\n"], ["x" * 300]])
def test_what_is_not_the_protocol_ends_the_container(by_hand: Any, words: list[str]) -> None:
    container = by_hand("sleep", "100")
    line = container.accept()
    for word in words:
        line._connection.send(word.encode())
    assert container.exit_code() == 10


def test_runner_that_ends_without_bye(by_hand: Any) -> None:
    container = by_hand("true")
    line = container.accept()
    line.send("go")
    assert isinstance(container.hear(), Started)
    assert isinstance(container.hear(), Ended)
    line.close()
    assert container.exit_code() == 0


def test_control_line_that_ends_while_the_command_runs(by_hand: Any) -> None:
    container = by_hand("sh", "-c", "trap '' TERM HUP; sleep 100")
    line = container.accept()
    line.send("go")
    assert isinstance(container.hear(), Started)
    line.close()
    assert container.exit_code() == 10


def test_kill_counts_as_a_signal_not_a_timeout(by_hand: Any) -> None:
    container = by_hand("sleep", "100")
    line = container.accept()
    line.send("go")
    assert isinstance(container.hear(), Started)
    line.send("kill")
    ended = container.hear()
    assert isinstance(ended, Ended)
    assert (ended.end.signal, ended.end.timed_out) == (9, False)


def test_pause_before_go_and_words_after_the_end(by_hand: Any) -> None:
    container = by_hand("sleep", "0.5", options=("--limit-ms", "200"))
    line = container.accept()
    line.send("pause")
    line.send("go")
    assert isinstance(container.hear(), Started)
    ended = container.hear()
    assert isinstance(ended, Ended)
    assert (ended.end.exit_code, ended.end.timed_out) == (0, False)
    for word in ("resume", "kill", "pause", "bye"):
        line.send(word)
    assert container.exit_code() == 0


def test_failed_start_is_said_and_ends_the_container(by_hand: Any) -> None:
    container = by_hand("nowhere/nothing")
    line = container.accept()
    line.send("go")
    assert container.hear() == Failed(errno=2, text="No such file or directory")
    assert container.hear() == Closed()
    assert container.exit_code() == 12


def test_missing_model_socket_is_said(by_hand: Any) -> None:
    options = ("--model", "/run/cab/model.sock", "--port", "8377", "--limit-ms", "1000")
    container = by_hand("true", options=options)
    container.line = container.control.accept(time.monotonic() + 20, container.wake)
    assert container.hear() == Failed(errno=2, text="No such file or directory")


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--limit-ms", "0"),
        ("--limit-ms", "1x"),
        ("--limit-ms", "1", "--model", "/x"),
        ("--limit-ms", "1", "--port", "70000"),
        ("--limit-ms", "1", "--tty", "80"),
        ("--limit-ms", "1", "--other", "1"),
    ],
)
def test_usage(by_hand: Any, options: tuple[str, ...]) -> None:
    container = by_hand("true", options=options)
    assert container.exit_code() == 12
