"""Debian's image registry on loopback, as a process of the tests' own."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from command import REPO

STARTED_S = 30.0


def program() -> str | None:
    """Where `scripts/registry.sh` has put it, or the machine has it."""
    fetched = REPO / "build" / "registry" / "usr" / "bin" / "docker-registry"
    return str(fetched) if fetched.is_file() else shutil.which("docker-registry")


class RegistryProcess:
    """Serves what lies below `root`; may be stopped and started again, on the same port."""

    def __init__(self, root: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port: int = free.getsockname()[1]
        self._config = root / "registry.json"  # it reads YAML, which JSON is
        settings = {
            "version": 0.1,
            "log": {"level": "warn"},
            "storage": {"filesystem": {"rootdirectory": str(root / "registry")}},
            "http": {"addr": f"127.0.0.1:{self._port}"},
        }
        self._config.write_text(json.dumps(settings))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"localhost:{self._port}/cab-test"

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """For a while it is not there."""
        self._stop()
        try:
            yield
        finally:
            self._start()

    def _start(self) -> None:
        found = program()
        assert found is not None
        log = self._config.with_suffix(".log")
        with log.open("ab") as file:
            self._process = subprocess.Popen([found, "serve", self._config], stdout=file, stderr=file)
        deadline = time.monotonic() + STARTED_S
        while not self._answers():
            assert self._process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, "the registry does not answer"
            time.sleep(0.05)

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/v2/", timeout=5):
                return True
        except OSError:
            return False

    def tags(self, repository: str) -> list[str]:
        """The tags of a repository, by its name without the registry's address."""
        listed = f"http://127.0.0.1:{self._port}/v2/{repository}/tags/list"
        with urllib.request.urlopen(listed, timeout=5) as answer:
            return sorted(json.load(answer)["tags"])
