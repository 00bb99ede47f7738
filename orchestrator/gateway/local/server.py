"""Starts the process that serves one local model, and ends it."""

from __future__ import annotations

import errno
import http.client
import json
import os
import secrets
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit

import orchestrator
from orchestrator.errors import EnvironmentFault
from orchestrator.gateway.contract import Endpoint
from orchestrator.gateway.local.registry import EXTRA, LocalModel, installed

START_S = 600.0
"""Seconds for the weights to be read and warmed up; a slow disk and a large file take minutes."""

STOP_S = 30.0
CONTEXT_MAX = 16384
"""Tokens of context, unless the model has fewer: each costs memory, which is taken at the start."""

_KEPT_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "TZ", "LD_LIBRARY_PATH")
_PASSIVE_WAIT = {"GOMP_SPINCOUNT": "0", "OMP_WAIT_POLICY": "passive"}
"""Threads that wait by spinning lose most of their speed as soon as other work takes a core."""


class LocalServer:
    """A model that is being served. A context manager that ends the process; nothing else has its key."""

    def __init__(self, model: LocalModel, process: subprocess.Popen[bytes], endpoint: Endpoint) -> None:
        self.model = model
        self.endpoint = endpoint
        self._process = process

    @classmethod
    def start(cls, model: LocalModel, *, log: Path | None = None, port: int = 0) -> LocalServer:
        """Check the file, serve it on loopback (port 0: a free one), and wait until it is healthy.

        `log` takes what llama.cpp says. Raises EnvironmentFault when the file is not what was added, the
        extra is not installed, or the server does not start.
        """
        if not installed():
            raise EnvironmentFault("llama.cpp is not installed", place=model.id, mend=EXTRA)
        if port and _taken(port):
            mend = "give another port, or none for a free one"
            raise EnvironmentFault(f"port {port} of loopback is taken", place=model.id, mend=mend)
        key = secrets.token_urlsafe(32)
        with model.open() as weights, Path(log or os.devnull).open("ab") as messages:
            process = subprocess.Popen(
                [sys.executable, "-m", "orchestrator.gateway.local"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=messages,
                env=_environment(),
                # By its descriptor, so that what is served is what was checked.
                pass_fds=(weights.fileno(),),
                start_new_session=True,
            )
            wanted = {
                "path": f"/proc/self/fd/{weights.fileno()}",
                "alias": model.build_id,
                "context": min(model.context_length or CONTEXT_MAX, CONTEXT_MAX),
                "threads": len(os.sched_getaffinity(0)),
                "port": port,
                "key": key,
            }
            try:
                url = _started(process, wanted)
                if url is None or not _healthy(url):
                    raise EnvironmentFault(
                        "llama.cpp does not serve it",
                        place=model.id,
                        mend=f"{log} tells more" if log else "--log FILE tells more",
                    )
            except BaseException:
                _end(process)
                raise
        endpoint = Endpoint(name=model.id, base_url=f"{url}/v1", key=key)
        return cls(model, process, endpoint)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait(self) -> None:
        """Return when the server has ended."""
        self._process.wait()

    def stop(self) -> None:
        """End the process. May be called twice."""
        _end(self._process)

    def __enter__(self) -> LocalServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _taken(port: int) -> bool:
    """Whether another process listens on this port: llama.cpp does not say why it ends."""
    with socket.socket() as probe:
        # As a server does: connections that ended a moment ago keep no port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def _environment() -> dict[str, str]:
    environment = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
    environment["PYTHONPATH"] = str(Path(orchestrator.__file__).parent.parent)
    return environment | _PASSIVE_WAIT


def _started(process: subprocess.Popen[bytes], wanted: dict[str, object]) -> str | None:
    """Hand the process what it is to serve; its URL, None when it ended or took too long."""
    assert process.stdin is not None
    assert process.stdout is not None
    timer = threading.Timer(START_S, process.kill)
    timer.start()
    try:
        process.stdin.write(json.dumps(wanted).encode() + b"\n")
        process.stdin.flush()
        line = process.stdout.readline()
    except OSError:
        return None
    finally:
        timer.cancel()
        timer.join()
    return line.decode().strip() or None


def _healthy(url: str) -> bool:
    """Whether the server says that it is ready, asked past any proxy of the environment."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=STOP_S)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except OSError:
                process.kill()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
