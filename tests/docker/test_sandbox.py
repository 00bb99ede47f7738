"""One command in one container: how it ends, what it may do, and that nothing of it stays."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import docker
import docker.errors
import pytest
from harness import GID, REPO, UID, Output, Runner, running

from orchestrator.errors import CellFault, EnvironmentFault, NotStarted, PinMismatch
from orchestrator.sandbox.contract import Limits, Mount, RunningContainer, TtySize
from orchestrator.sandbox.docker import DockerSandbox

SMALL = Limits(memory_bytes=64 << 20, cpus=1.0, pids=64, tmp_bytes=1 << 30)


@pytest.mark.parametrize("code", [0, 1, 137, 255])
def test_exit_code(run: Runner, code: int) -> None:
    before = time.monotonic()
    end, _ = run("sh", "-c", f"exit {code}")
    assert (end.exit_code, end.signal, end.timed_out, end.oom_kills) == (code, None, False, 0)
    assert before < end.start < end.end < time.monotonic()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_signal(run: Runner, number: signal.Signals) -> None:
    end, _ = run("sh", "-c", f"kill -{int(number)} $$")
    assert (end.exit_code, end.signal, end.timed_out) == (None, int(number), False)


def test_usage_is_that_of_all_descendants(run: Runner) -> None:
    burn = (
        "import os, time\nheld = bytearray(60 << 20)\nchild = os.fork()\n"
        "while time.process_time() < 0.3: pass\nif child: os.wait()"
    )
    end, _ = run("sh", "-c", 'python3 -c "$0"; true', burn)
    assert end.cpu_s >= 0.55  # PID 1 says whole milliseconds, the kernel's own clocks differ by a tick
    assert end.max_rss_bytes >= 60 << 20


def test_streams_are_told_apart_and_timed(run: Runner) -> None:
    end, output = run("sh", "-c", "echo out; sleep 0.2; echo err >&2")
    assert (output.stdout, output.stderr) == (b"out\n", b"err\n")
    assert end.start < output.times[0] < output.times[-1]
    assert output.times[-1] - output.times[0] > 0.1


@pytest.mark.parametrize("tty", [None, TtySize()])
def test_heavy_output_is_complete(run: Runner, tty: TtySize | None) -> None:
    script = "import sys\nfor i in range(300_000): print(i)\nsys.stderr.write('e' * 3_000_000); sys.exit(5)"
    end, output = run("python3", "-c", script, tty=tty)
    newline = b"\r\n" if tty else b"\n"
    lines = b"".join(b"%d" % i + newline for i in range(300_000))
    assert end.exit_code == 5
    if tty:
        assert output.stdout == lines + b"e" * 3_000_000
    else:
        assert output.stdout == lines
        assert output.stderr == b"e" * 3_000_000


def test_terminal_has_its_size_and_is_the_commands_own(run: Runner) -> None:
    script = (
        "import os; me = os.getpid(); print(os.get_terminal_size(), os.getsid(0) == me == os.tcgetpgrp(0))"
    )
    _, output = run(
        "python3", "-c", f"{script}; open('/dev/tty', 'w').write('mine')", tty=TtySize(columns=97, rows=31)
    )
    assert output.stdout == b"os.terminal_size(columns=97, lines=31) True\r\nmine"


def test_command_starts_clean(run: Runner) -> None:
    """No descriptor of PID 1's, no blocked or ignored signal, no privilege, the environment of the spec."""
    script = "cd /proc/self; ls fd; echo $GREETING $OLDPWD;grep -E 'Sig(Blk|Ign)|CapBnd|NoNewPrivs' status"
    _, output = run("bash", "-c", script, env={"GREETING": "hello"}, workdir="/usr")
    *first, greeting, blocked, ignored, bounding, privileges = output.stdout.decode().splitlines()
    assert first == ["0", "1", "2"]
    assert greeting == "hello /usr"
    nothing = "0" * 16
    assert [blocked, ignored, bounding, privileges] == [
        f"SigBlk:\t{nothing}",
        f"SigIgn:\t{nothing}",
        f"CapBnd:\t{nothing}",
        "NoNewPrivs:\t1",
    ]


def test_limit(run: Runner) -> None:
    end, _ = run("sleep", "100", time_limit_s=0.4)
    assert (end.exit_code, end.signal, end.timed_out) == (None, signal.SIGKILL, True)
    assert 0.4 <= end.end - end.start < 30


def test_paused_clock_stands_still(run: Runner) -> None:
    running: list[RunningContainer] = []

    def pause(container: RunningContainer) -> None:
        container.pause_clock()
        container.pause_clock()
        running.append(container)

    # The command outlives its limit while paused and says so, which resumes the clock.
    output = Output(react=lambda _: running[0].resume_clock())
    end, _ = run(
        "sh", "-c", "sleep 1.2; echo alive; sleep 100", output=output, on_start=pause, time_limit_s=0.6
    )
    assert output.stdout == b"alive\n"
    assert end.timed_out
    assert 1.7 < end.end - end.start < 30


def test_kill_from_another_thread(run: Runner) -> None:
    started: queue.Queue[RunningContainer] = queue.Queue()
    output = Output(
        react=lambda _: started.get(timeout=30).kill("enough")
    )  # in the thread that reads the output
    end, _ = run("sh", "-c", "echo up; sleep 100", output=output, on_start=started.put)
    assert output.stdout == b"up\n"
    assert (end.exit_code, end.signal, end.timed_out) == (None, signal.SIGKILL, False)


def test_fork_bomb_ends_in_time(run: Runner) -> None:
    bomb = "import os\nwhile True:\n try: os.fork()\n except OSError: pass"
    end, _ = run("python3", "-c", bomb, time_limit_s=0.5, limits=SMALL)
    assert end.timed_out
    assert end.end - end.start < 30


def test_flood_of_orphans_does_not_hold_up_the_limit(run: Runner) -> None:
    flood = (
        "import os\nwhile True:\n try:\n"
        "  if os.fork() == 0:\n   os.fork(); os._exit(0)\n  os.waitpid(-1, os.WNOHANG)\n except OSError: pass"
    )
    end, _ = run("python3", "-c", flood, time_limit_s=0.5, limits=SMALL)
    assert end.timed_out
    assert end.end - end.start < 30


def test_memory_of_the_command(run: Runner) -> None:
    end, _ = run("python3", "-c", "bytearray(200 << 20)", limits=SMALL)
    assert (end.signal, end.oom_kills) == (signal.SIGKILL, 1)


def test_memory_of_a_child(run: Runner) -> None:
    end, output = run("sh", "-c", "python3 -c 'bytearray(200 << 20)'; echo $?", limits=SMALL)
    assert (end.exit_code, end.oom_kills, output.stdout) == (0, 1, b"137\n")


def test_memory_filled_by_files(run: Runner) -> None:
    """Nothing that is killed frees the memory that a tmpfs holds; PID 1 has to outlive it."""
    end, _ = run("sh", "-c", "head -c 500M /dev/zero > /tmp/a & wait", limits=SMALL)
    assert end.oom_kills >= 1


def test_no_network_and_a_read_only_root(run: Runner) -> None:
    script = (
        "import os, socket\n"
        "print(sorted(os.listdir('/sys/class/net')))\n"
        "for path in ('/file', '/usr/file', '/run/cab/file'):\n"
        " try: open(path, 'w')\n"
        " except OSError as error: print(error.strerror)\n"
        "try: socket.create_connection(('192.0.2.1', 80), 1)\n"
        "except OSError as error: print(error.strerror)\n"
        "open('/tmp/run', 'w').write('#!/bin/sh\\necho ran'); os.chmod('/tmp/run', 0o755)\n"
        "os.system('/tmp/run')"
    )
    _, output = run("python3", "-u", "-c", script)
    names = output.stdout.decode().splitlines()
    assert names[0].startswith("['")
    assert "eth0" not in names[0]
    assert names[1:] == [*["Read-only file system"] * 3, "Network is unreachable", "ran"]


def test_tmp_is_bounded(run: Runner) -> None:
    _, output = run("sh", "-c", "head -c 100M /dev/zero > /tmp/a; stat -c %s /tmp/a")
    assert int(output.stdout) == 64 << 20
    assert b"No space left" in output.stderr


def test_mounts(run: Runner, short_dir: Path) -> None:
    for name in ("open", "closed"):
        (short_dir / name).mkdir()
        if os.geteuid() == 0:
            os.chown(short_dir / name, UID, GID)
    mounts = (Mount(short_dir / "open", "/workdir", read_only=False), Mount(short_dir / "closed", "/logs"))
    _, output = run("sh", "-c", "pwd; echo 1 > a; echo 1 > /logs/a", workdir="/workdir", mounts=mounts)
    assert output.stdout == b"/workdir\n"
    assert b"Read-only file system" in output.stderr
    assert (short_dir / "open" / "a").read_text() == "1\n"
    assert (short_dir / "open" / "a").stat().st_uid == UID


@pytest.mark.parametrize(
    ("argv", "text"), [(("no-such-cli",), "No such file"), (("/etc/passwd",), "Permission denied")]
)
def test_command_that_cannot_be_started(run: Runner, argv: tuple[str, ...], text: str) -> None:
    with pytest.raises(NotStarted, match=text) as fault:
        run(*argv)
    assert fault.value.cause == "engine"
    assert argv[0] in str(fault.value)


class OtherImage:
    """An engine that says it would run another image."""

    def __init__(self, api: Any) -> None:
        self._api = api

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    def inspect_container(self, container: str) -> dict[str, Any]:
        return self._api.inspect_container(container) | {"Image": "sha256:other"}


def test_another_image_than_the_pinned_one(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run.sandbox, "_api", OtherImage(run.sandbox._api))
    with pytest.raises(PinMismatch, match=f"sha256:other.*{run.image}"):
        run("true")
    assert run.sandbox.remove_leftovers(run.labels) == []


def test_image_by_name_is_refused(run: Runner) -> None:
    with pytest.raises(PinMismatch, match="debian:latest"):
        run("true", image_id="debian:latest")


def test_missing_image_is_not_pulled(run: Runner) -> None:
    with pytest.raises(EnvironmentFault, match="make setup"):
        run("true", image_id="sha256:" + "0" * 64)


@pytest.mark.parametrize("where", ["sink", "on_start"])
def test_callers_error_comes_through_and_nothing_stays(run: Runner, where: str) -> None:
    def fail(*_: object) -> None:
        raise LookupError(where)

    callback = {"sink": {"output": Output(react=fail)}, "on_start": {"on_start": fail}}[where]
    with pytest.raises(LookupError, match=where):
        run("sh", "-c", "while echo x; do :; done", **callback)
    assert running(run.labels) == []


def test_container_killed_from_outside(run: Runner) -> None:
    api = docker.APIClient()
    spec = run.spec("sleep", "100")
    with pytest.raises(CellFault, match="killed from outside") as fault:
        run.sandbox.run(spec, on_start=lambda _: api.kill(spec.name))
    api.close()
    assert fault.value.cause == "engine"


def test_container_ends_with_its_runner(run: Runner, init_binary: Path) -> None:
    spec = run.spec("sleep", "100", time_limit_s=100.0)
    program = (
        "from pathlib import PosixPath; from orchestrator.sandbox.contract import *; import sys;"
        "from orchestrator.sandbox.docker import DockerSandbox;"
        f"DockerSandbox({init_binary!r}).run({spec!r}, on_start=lambda _: print('up', flush=True))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": str(REPO)}
    ) as runner:
        assert runner.stdout is not None
        assert runner.stdout.readline() == b"up\n"
        api = docker.APIClient(timeout=20)
        killed = time.monotonic()
        runner.kill()
    try:
        exit_code = api.wait(spec.name)["StatusCode"]
    except docker.errors.NotFound:
        exit_code = 10  # it is gone already
    api.close()
    assert exit_code == 10
    assert time.monotonic() - killed < 60


def test_leftovers_are_removed(run: Runner, sandbox: DockerSandbox) -> None:
    api = docker.APIClient()
    names = [f"cab-test-left-{os.getpid()}-{i}" for i in range(3)]
    for name in names:
        api.start(api.create_container(run.image, ["sleep", "100"], name=name, labels=run.labels)["Id"])
    api.stop(names[0], timeout=0)
    api.close()
    assert sandbox.remove_leftovers(run.labels) == names
    assert running(run.labels) == []


def test_many_containers_at_a_time(run: Runner) -> None:
    codes: dict[int, int | None] = {}

    def one(code: int) -> None:
        codes[code] = run("sh", "-c", f"exit {code}")[0].exit_code

    threads = [threading.Thread(target=one, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == {i: i for i in range(6)}
