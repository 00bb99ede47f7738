"""`cab check` with real CLIs, on this machine: those that run wherever they are put, out of their images."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import docker
import pytest

from orchestrator.sandbox.images import load_lock

pytestmark = pytest.mark.docker

REPO = Path(__file__).resolve().parents[2]
PLACES = {
    "claude-code": "/usr/local/bin/claude",
    "codex": "/opt/codex",
    "droid": "/usr/local/bin/droid",
    "opencode": "/usr/local/bin/opencode",
}
"""What each CLI is in its image, a file or a folder with bin/, wherever that is put."""

TASKS = ("polyglot/python-reverse-string", "polyglot/c-ring-buffer")


@pytest.fixture(scope="module")
def programs() -> Iterator[Path]:
    """A directory for PATH."""
    client = docker.from_env()
    lock = load_lock(REPO / "images.lock")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        for cli, place in PLACES.items():
            container = client.containers.create(lock.image(cli).id)
            try:
                parts, _ = container.get_archive(place)
                with tarfile.open(fileobj=io.BytesIO(b"".join(parts))) as archive:
                    archive.extractall(name, filter="tar")
            finally:
                container.remove()
        yield Path(name)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("cli", PLACES)
def test_a_cli_of_this_machine_solves_a_task(programs: Path, cli: str, task: str) -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        scratch, home = Path(name) / "scratch", Path(name) / "home"
        scratch.mkdir()
        home.mkdir()
        for directory in (Path(name), scratch):
            directory.chmod(0o711)
        command = ["check", "--tui", cli, "--model", "embedded/reference", "--task", task, "--json"]
        done = subprocess.run(
            [sys.executable, "-m", "orchestrator.cli", *command],
            env={
                "PATH": f"{programs}:{programs}/codex/bin:{os.environ['PATH']}",
                "PYTHONPATH": str(REPO),
                "HOME": str(home),
                "CAB_SCRATCH": str(scratch),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        record = json.loads(done.stdout)
        assert record["scores"]["pass_rate"]["pass"] == 1
        assert record["isolation"]["containers"] == "none"
        assert "the version that cab knows" in done.stderr
        assert list(scratch.iterdir()) == list(home.iterdir()) == []
