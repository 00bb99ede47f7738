"""What the tests with a real engine need: an image, cab's PID 1, and short-lived containers that leave nothing."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from orchestrator.sandbox.contract import (
    ContainerEnd,
    ContainerSpec,
    Limits,
    Mount,
    RunningContainer,
    TtySize,
)
from orchestrator.sandbox.docker import DockerSandbox

REPO = Path(__file__).resolve().parents[2]
UID, GID = (1000, 1000) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
LABEL = "cab.test"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.docker)


@pytest.fixture(scope="session")
def base_image() -> str:
    """The id of cab's base image (or of CAB_TEST_IMAGE): a Debian with git and python3."""
    lock = REPO / "images.lock"
    if lock.is_file():
        images = json.loads(lock.read_text())
        entry = images.get("images", images).get("cab/base")
        if entry:
            return str(entry["image_id"] if isinstance(entry, dict) else entry)
    if image := os.environ.get("CAB_TEST_IMAGE"):
        return image
    pytest.fail(f"{lock} names no cab/base: run `make setup`")


@pytest.fixture(scope="session")
def init_binary() -> Path:
    path = Path(os.environ.get("CAB_TEST_INIT") or REPO / "build" / "init")
    if not path.is_file():
        pytest.fail(f"{path} is missing: run `make setup`")
    return path


@pytest.fixture
def label() -> dict[str, str]:
    """A label of this test's own."""
    return {LABEL: secrets.token_hex(6)}


@pytest.fixture
def sandbox(init_binary: Path, label: dict[str, str]) -> Iterator[DockerSandbox]:
    sandbox = DockerSandbox(init_binary)
    yield sandbox
    sandbox.remove_leftovers(label)
    sandbox.close()


@pytest.fixture
def short_dir() -> Iterator[Path]:
    """A directory whose path is short enough for sockets; pytest's own is not."""
    path = Path(tempfile.mkdtemp(prefix="cab-test-", dir="/var/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


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


@pytest.fixture
def run(sandbox: DockerSandbox, base_image: str, short_dir: Path, label: dict[str, str]) -> Runner:
    return Runner(sandbox, base_image, short_dir, label)


__all__ = ["GID", "UID", "Limits", "Mount", "Output", "Runner", "TtySize"]
