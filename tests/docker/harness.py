"""Short-lived containers for tests, and what they say."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docker

from orchestrator.sandbox.contract import ContainerEnd, ContainerSpec, Limits, RunningContainer
from orchestrator.sandbox.docker import DockerSandbox

REPO = Path(__file__).resolve().parents[2]
UID, GID = (1000, 1000) if os.geteuid() == 0 else (os.geteuid(), os.getegid())


@dataclass
class Output:
    """A sink that keeps what it gets, and calls `react` on each chunk."""

    stdout: bytes = b""
    stderr: bytes = b""
    times: list[float] = field(default_factory=list)
    react: Callable[[bytes], None] | None = None

    def __call__(self, stream: str, at: float, data: bytes) -> None:
        self.times.append(at)
        if stream == "stdout":
            self.stdout += data
        else:
            self.stderr += data
        if self.react:
            self.react(data)


@dataclass
class Runner:
    """Runs commands in containers of `sandbox` with defaults that suit tests."""

    sandbox: DockerSandbox
    image: str
    root: Path
    labels: dict[str, str]

    def spec(self, *argv: str, **changes: Any) -> ContainerSpec:
        run_dir = self.root / secrets.token_hex(4)
        run_dir.mkdir(mode=0o755)
        values: dict[str, Any] = {
            "name": f"cab-test-{secrets.token_hex(6)}",
            "image_id": self.image,
            "argv": argv,
            "env": {},
            "workdir": "/tmp",
            "user": (UID, GID),
            "mounts": (),
            "run_dir": run_dir,
            "time_limit_s": 60.0,
            "limits": Limits(memory_bytes=256 << 20, cpus=1.0, pids=128, tmp_bytes=64 << 20),
            "labels": self.labels,
        }
        return ContainerSpec(**(values | changes))

    def __call__(
        self,
        *argv: str,
        output: Output | None = None,
        on_start: Callable[[RunningContainer], None] | None = None,
        **changes: Any,
    ) -> tuple[ContainerEnd, Output]:
        output = output or Output()
        return self.sandbox.run(self.spec(*argv, **changes), sink=output, on_start=on_start), output


def running(labels: dict[str, str]) -> list[str]:
    """The names of the running containers with these labels."""
    api = docker.APIClient()
    wanted = {"label": [f"{key}={value}" for key, value in labels.items()]}
    names = [name for found in api.containers(filters=wanted) for name in found["Names"]]
    api.close()
    return names
