"""What the runner makes of a PID 1, or an engine, that fails it. PID 1 is a script here."""

from __future__ import annotations

import gc
import time
from pathlib import Path

import docker
import pytest
from harness import Runner, running

from orchestrator.errors import CellFault, EnvironmentFault
from orchestrator.sandbox import docker as sandbox_docker
from orchestrator.sandbox import steered
from orchestrator.sandbox.docker import DockerSandbox

PRELUDE = """#!/usr/bin/python3 -I
import os, socket, sys, time
line = socket.socket(socket.AF_UNIX)
line.connect("/run/cab/control.sock")
now = time.monotonic_ns()
def say(text): line.send(text.encode() + b"\\n")
def hear(): return line.recv(100)
END = f"end exit=0 signal=- timeout=0 oom=0 cpu_ms=0 rss_kb=0 start={now} end={now}"
"""
STARTED = "say('ready'); hear(); say(f'started {now}')\n"


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("sys.exit(5)", "PID 1 exited with 5"),
        (STARTED + "sys.exit(11)", "gateway ended"),
        (STARTED + "sys.exit(10)", "lost the control line"),
        ("say('hello'); time.sleep(100)", "not in the protocol"),
        ("say(END); time.sleep(100)", "out of turn"),
        ("say('ready'); hear(); say('ready'); time.sleep(100)", "out of turn"),
        (STARTED + "line.close(); time.sleep(100)", "still ran"),
        (STARTED + "time.sleep(100)", "did not answer in time"),
        ("time.sleep(100)", "did not answer in time"),
        (STARTED + "say(END); time.sleep(100)", "output did not end"),
    ],
)
def test_pid_1_that_fails(
    run: Runner, short_dir: Path, monkeypatch: pytest.MonkeyPatch, script: str, text: str
) -> None:
    monkeypatch.setattr(sandbox_docker, "START_TIMEOUT_S", 2.0)
    for name in ("END_GRACE_S", "OUTPUT_GRACE_S", "LINE_GRACE_S"):
        monkeypatch.setattr(steered, name, 2.0)
    init = short_dir / "fake"
    init.write_text(PRELUDE + script)
    run.sandbox = DockerSandbox(init)
    before = time.monotonic()
    with pytest.raises(CellFault, match=text) as fault:
        run("true", time_limit_s=0.5)
    run.sandbox.close()
    assert fault.value.cause == ("gateway" if "gateway" in text else "engine")
    assert time.monotonic() - before < 60
    assert running(run.labels) == []


def test_unanswered_kill(run: Runner, short_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steered, "END_GRACE_S", 0.5)
    (short_dir / "fake").write_text(PRELUDE + STARTED + "time.sleep(100)")
    run.sandbox = DockerSandbox(short_dir / "fake")
    with pytest.raises(CellFault, match=r"kill.*budget spent"):
        run("true", on_start=lambda container: container.kill("budget spent"))
    run.sandbox.close()


def test_missing_init(short_dir: Path) -> None:
    with pytest.raises(EnvironmentFault, match="cab images build init"):
        DockerSandbox(short_dir / "none")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_no_engine(init_binary: Path, short_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{short_dir}/none.sock")
    with pytest.raises(EnvironmentFault, match=r"no Docker engine answers at unix.*unset DOCKER_HOST"):
        DockerSandbox(init_binary)
    gc.collect()  # the SDK leaves the socket that could not connect to the garbage collector


def test_labels_are_needed_to_remove(sandbox: DockerSandbox) -> None:
    with pytest.raises(ValueError, match="label"):
        sandbox.remove_leftovers({})


def test_a_container_that_was_never_started_is_removed_once_it_is_old(
    run: Runner, sandbox: DockerSandbox
) -> None:
    ((key, value),) = run.labels.items()
    api = docker.APIClient()
    made = api.create_container(run.image, ["true"], labels=run.labels, name=f"cab-test-{time.time_ns()}")

    def there() -> bool:
        return bool(api.containers(all=True, filters={"id": made["Id"]}))

    try:
        sandbox.remove_stillborn(f"{key}={value}")
        assert there(), "a runner may be about to start it"
        sandbox.remove_stillborn(f"{key}={value}", older_than_s=-1.0)
        assert not there()
    finally:
        sandbox.remove_leftovers(run.labels)
        api.close()
