"""Commands without an engine: what is told of their end, and that nothing of them is left."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import CellFault, NotStarted
from orchestrator.sandbox.contract import ContainerEnd, ContainerSpec, Mount, RunningContainer, TtySize
from orchestrator.sandbox.inplace.confine import landlock_version
from orchestrator.sandbox.inplace.sandbox import InPlaceSandbox

OWN = (os.geteuid(), os.getegid())
STRANGER = 61000 + os.getpid() % 2000
"""Nobody's user and group, nor another run's of these tests: what is theirs in /tmp is removed."""
needs_landlock = pytest.mark.skipif(landlock_version() < 6, reason="the kernel has no Landlock of version 6")


@dataclass
class Place:
    """A sandbox on this machine with one workdir."""

    root: Path
    port: int = 1
    landlock: int | None = None
    hidden: Path | None = None
    output: dict[str, bytes] = field(default_factory=dict)

    def spec(self, *argv: str, **changes: Any) -> ContainerSpec:
        asked: dict[str, Any] = {
            "name": "test",
            "image_id": None,
            "argv": argv,
            "env": {"GIVEN": "yes"},
            "workdir": "/workdir",
            "user": OWN,
            "mounts": (Mount(self.root, "/workdir", read_only=False),),
            "run_dir": self.root,
            "time_limit_s": 30.0,
        }
        return ContainerSpec(**(asked | changes))

    def run(
        self, *argv: str, on_start: Callable[[RunningContainer], None] | None = None, **changes: Any
    ) -> ContainerEnd:
        environment = {"PATH": os.environ["PATH"]}
        sandbox = InPlaceSandbox(
            alone=False,
            port=self.port,
            environment=environment,
            landlock=self.landlock,
            hidden=self.hidden,
        )

        def sink(stream: str, at: float, data: bytes) -> None:
            self.output[stream] = self.output.get(stream, b"") + data

        return sandbox.run(self.spec(*argv, **changes), sink=sink, on_start=on_start)

    def shell(self, script: str, **changes: Any) -> ContainerEnd:
        return self.run("sh", "-c", script, **changes)

    def python(self, script: str, **changes: Any) -> ContainerEnd:
        return self.run("python3", "-c", script, **changes)


@pytest.fixture
def root() -> Iterator[Path]:
    """Not below /tmp, where a command may write what it likes."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        yield Path(name)


@pytest.fixture
def place(root: Path) -> Place:
    (root / "workdir").mkdir()
    return Place(root / "workdir")


def processes(word: str) -> list[int]:
    """Those whose command line holds a word."""
    found = []
    for directory in Path("/proc").iterdir():
        try:
            if directory.name.isdigit() and word.encode() in (directory / "cmdline").read_bytes():
                found.append(int(directory.name))
        except OSError:
            continue
    return found


def test_output_exit_code_and_times_are_told(place: Place) -> None:
    before = time.monotonic()
    end = place.shell("echo out; echo err >&2; exit 3")
    assert (end.exit_code, end.signal, end.timed_out, end.asked) == (3, None, False, None)
    assert place.output == {"stdout": b"out\n", "stderr": b"err\n"}
    assert before < end.start < end.end < time.monotonic()
    assert end.max_rss_bytes > 1 << 20


def test_a_terminal_has_its_size_when_the_command_starts(place: Place) -> None:
    place.shell("stty size; tty >/dev/null && echo terminal", tty=TtySize(columns=99, rows=33))
    assert place.output == {"stdout": b"33 99\r\nterminal\r\n"}


def test_a_command_gets_what_it_is_given_and_nothing_else(place: Place) -> None:
    place.shell("env; ls /proc/self/fd; pwd", env={"GIVEN": "yes"})
    lines = place.output["stdout"].decode().split()
    assert {"GIVEN=yes", str(place.root)} <= set(lines)
    names = {line.partition("=")[0] for line in lines if "=" in line}
    assert names <= {"GIVEN", "PATH", "TMPDIR", "PWD", "_", "SHLVL", "OLDPWD"}
    assert [line for line in lines if line.isdigit()] == ["0", "1", "2", "3"]  # 3 is what ls reads


def test_a_signal_is_told(place: Place) -> None:
    end = place.shell("kill -TERM $$")
    assert (end.exit_code, end.signal, end.timed_out) == (None, signal.SIGTERM, False)


def test_the_limit_ends_a_command(place: Place) -> None:
    end = place.shell("sleep 50", time_limit_s=0.2)
    assert (end.signal, end.timed_out) == (signal.SIGKILL, True)
    assert 0.2 <= end.end - end.start < 30


def test_a_paused_clock_does_not_run(place: Place) -> None:
    def pause(running: RunningContainer) -> None:
        running.pause_clock()
        threading.Timer(0.6, running.resume_clock).start()

    end = place.shell("sleep 0.7", time_limit_s=0.4, on_start=pause)
    assert (end.exit_code, end.timed_out) == (0, False)


def test_a_resumed_clock_goes_on(place: Place) -> None:
    def pause(running: RunningContainer) -> None:
        running.pause_clock()
        running.resume_clock()

    end = place.shell("sleep 50", time_limit_s=0.2, on_start=pause)
    assert end.timed_out


def test_a_kill_ends_a_command(place: Place) -> None:
    end = place.shell("sleep 50", on_start=lambda running: running.kill("test"))
    assert (end.signal, end.timed_out) == (signal.SIGKILL, False)


def test_a_command_that_is_not_there_is_told(place: Place) -> None:
    with pytest.raises(NotStarted, match="no-such-program"):
        place.run("no-such-program")


DAEMON = """
import os, sys, time
for _ in range(2):
    if os.fork():
        os._exit(0)
    os.setsid()
os.close(1), os.close(2)
open("left", "w").close()
time.sleep(500)
"""


def test_what_a_command_left_behind_is_ended(place: Place) -> None:
    word = f"left-{os.getpid()}-{time.monotonic_ns()}"
    place.shell(f"python3 -c '{DAEMON}' {word} & until [ -e left ]; do sleep 0.02; done")
    assert (place.root / "left").exists()
    assert processes(word) == []


def test_processes_that_multiply_are_ended(place: Place) -> None:
    word = f"many-{os.getpid()}-{time.monotonic_ns()}"
    script = f"f() {{ sleep 0.01; [ $1 -gt 0 ] && (f $(($1-1)) & f $(($1-1)) &); sleep 60; }}; f 5 & : {word}"
    place.shell(f"sh -c '{script}'; sleep 0.1", time_limit_s=10)
    assert processes(word) == []


def test_a_lost_supervisor_is_no_fault_of_the_command(place: Place) -> None:
    def kill(_: RunningContainer) -> None:
        children = Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split()
        assert children
        for pid in children:
            os.kill(int(pid), signal.SIGKILL)

    with pytest.raises(CellFault, match="supervisor") as fault:
        place.shell("sleep 1", on_start=kill)
    assert fault.value.cause == "engine"


@pytest.mark.parametrize("moment", range(3))
def test_an_error_of_the_sink_is_raised_and_nothing_is_left(place: Place, moment: int) -> None:
    word = f"sunk-{os.getpid()}-{time.monotonic_ns()}"
    sandbox = InPlaceSandbox(alone=False, port=1, environment={"PATH": os.environ["PATH"]})

    def sink(stream: str, at: float, data: bytes) -> None:
        raise CellFault("disk", "is full")

    with pytest.raises(CellFault, match="is full"):
        sandbox.run(place.spec("sh", "-c", f"sleep 0.0{moment}; echo a; sleep 50; : {word}"), sink=sink)
    assert processes(word) == []


# ---- what the kernel keeps it from ----

CONNECT = """
import socket, sys
for port in sys.argv[1:]:
    try:
        socket.create_connection(("127.0.0.1", int(port)), 2).close()
        print("yes")
    except OSError as error:
        print(error.errno)
"""


@pytest.fixture
def ports() -> Iterator[tuple[int, int]]:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        yield one.getsockname()[1], other.getsockname()[1]


@needs_landlock
@pytest.mark.parametrize(
    ("model", "landlock", "said"),
    [(True, None, "yes 13"), (False, None, "13 13"), (True, 0, "yes yes")],
    ids=["agent", "grader", "a kernel without"],
)
def test_tcp_goes_to_the_gateway_alone(
    place: Place, ports: tuple[int, int], model: bool, landlock: int | None, said: str
) -> None:
    place.port, place.landlock = ports[0], landlock
    place.run("python3", "-c", CONNECT, *map(str, ports), model_socket=model)
    assert place.output["stdout"].decode().split() == said.split()


@needs_landlock
def test_files_are_changed_where_they_may_be_and_nowhere_else(place: Place, root: Path) -> None:
    outside = root / "outside"
    for directory in (outside, place.root / "a", place.root / "b"):
        directory.mkdir()
    (outside / "file").write_text("before")
    script = (
        f"echo x >{outside}/new; echo x >>{outside}/file; rm {outside}/file; mkdir {outside}/directory;"
        " echo y >a/file && mv a/file b/file && cat b/file; echo z >/dev/null && echo fine"
    )
    place.shell(script)
    assert sorted(path.name for path in outside.iterdir()) == ["file"]
    assert (outside / "file").read_text() == "before"
    assert place.output["stdout"] == b"y\nfine\n"


@needs_landlock
def test_a_file_in_a_hidden_directory_is_read_by_nobody(place: Place, root: Path) -> None:
    """Such as what an earlier cell left, which may be the solution; all beside it is read as ever."""
    place.hidden = root / "out"
    (place.hidden / "cell").mkdir(parents=True)
    for path in (place.hidden / "cell" / "diff.patch", root / "beside", place.root / "own"):
        path.write_text(path.name)
    place.shell(f"for file in out/cell/diff.patch beside workdir/own; do cat {root}/$file; echo; done")
    assert place.output["stdout"] == b"\nbeside\nown\n"


@needs_landlock
def test_nobody_outside_is_signalled(place: Place) -> None:
    place.python(f"import os\ntry: os.kill({os.getpid()}, 0)\nexcept PermissionError: print('refused')")
    assert place.output["stdout"] == b"refused\n"


def test_new_privileges_and_capabilities_are_gone(place: Place) -> None:
    place.shell("grep -E 'NoNewPrivs|CapBnd|CapEff' /proc/self/status")
    words = place.output["stdout"].split()
    assert words[words.index(b"NoNewPrivs:") + 1] == b"1"
    assert int(words[words.index(b"CapEff:") + 1], 16) == 0
    if OWN[0] == 0:
        assert int(words[words.index(b"CapBnd:") + 1], 16) == 0


def test_what_holds_is_said() -> None:
    said = {
        version: InPlaceSandbox(alone=True, port=1, environment={}, landlock=version).egress
        for version in (0, 3, 4)
    }
    assert said == {0: "open", 3: "open", 4: "tcp-restricted"}


def test_targets_are_called_by_their_sources_on_a_machine(tmp_path: Path) -> None:
    mount = Mount(tmp_path, "/workdir")
    found = {
        alone: InPlaceSandbox(alone=alone, port=1, environment={}).inside(mount) for alone in (True, False)
    }
    assert found == {True: "/workdir", False: str(tmp_path)}


def test_what_a_terminal_sends_to_a_job_is_not_sent_to_the_supervisor(place: Place) -> None:
    place.shell("ps -o sid= -p $PPID")
    assert int(place.output["stdout"]) not in (0, os.getsid(0))


@pytest.mark.parametrize("landlock", [0, pytest.param(None, marks=needs_landlock)])
def test_the_environment_of_others_of_the_same_user_is_closed_by_landlock(
    place: Place, landlock: int | None
) -> None:
    user = OWN if OWN[0] else (STRANGER, STRANGER)
    changes: dict[str, Any] = {"user": user[0], "group": user[1], "extra_groups": []} if OWN[0] == 0 else {}
    with subprocess.Popen(["sleep", "60"], env={"SECRET": "telltale"}, **changes) as other:
        try:
            place.landlock = landlock
            place.shell(f"cat /proc/{other.pid}/environ", user=user, workdir="/")
        finally:
            other.kill()
    assert (place.output.get("stdout") == b"SECRET=telltale\0") is (landlock == 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the command runs as another user")
def test_what_others_of_the_machine_make_during_a_run_stays_and_what_the_command_left_goes(
    place: Place,
) -> None:
    meanwhile: list[Path] = []

    def make(_: RunningContainer) -> None:
        descriptor, name = tempfile.mkstemp(dir="/dev/shm")
        os.close(descriptor)
        meanwhile.append(Path(name))

    left = Path("/dev/shm") / f"left-{os.getpid()}"
    place.run("sh", "-c", f"> {left} && ls {left}", user=(STRANGER, STRANGER), workdir="/", on_start=make)
    assert place.output["stdout"].decode().strip() == str(left)
    assert not left.exists()
    assert [path.exists() for path in meanwhile] == [True]
    meanwhile[0].unlink()
