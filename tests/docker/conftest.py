"""What the tests with a real engine need: an image, cab's PID 1, and containers that leave nothing."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import REPO, Runner

from orchestrator.sandbox.docker import DockerSandbox


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
    return {"cab.test": secrets.token_hex(6)}


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


@pytest.fixture
def run(sandbox: DockerSandbox, base_image: str, short_dir: Path, label: dict[str, str]) -> Runner:
    return Runner(sandbox, base_image, short_dir, label)
