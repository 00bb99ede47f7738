"""The gateway as its own process, steered by the client the runner uses."""

from __future__ import annotations

import http.client
import json
import os
import queue
import select
import signal
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from gateway_rig import CREDENTIAL, KEY, completion, make_route, request_body, scripted

import orchestrator
from orchestrator.errors import CellFault
from orchestrator.gateway.client import Gateway, read_calls
from orchestrator.gateway.contract import Endpoint, Script


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("cell", timeout=20)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(str(self._path))


def post(path: Path) -> tuple[int, bytes]:
    connection = UnixConnection(path)
    try:
        headers = {"Authorization": f"Bearer {CREDENTIAL}"}
        connection.request("POST", "/v1/chat/completions", json.dumps(request_body()), headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


@contextmanager
def limited_once() -> Iterator[str]:
    """An endpoint whose first answer is a rate limit of a few milliseconds."""
    answers = iter([429])

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            body = json.dumps(completion()).encode()
            self.send_response(next(answers, 200))
            self.send_header("Retry-After", "0.01")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()


def test_a_cell_from_start_to_end(tmp_path: Path) -> None:
    events: queue.Queue[object] = queue.Queue()
    with limited_once() as url, Gateway.start([Endpoint(name="up", base_url=url, key=KEY)]) as gateway:
        route = make_route(tmp_path, max_calls=1)
        gateway.open_cell(route, on_wait=events.put, on_limit=lambda: events.put("limit"))
        assert [post(route.socket)[0] for _ in range(2)] == [200, 403]
        assert [events.get(timeout=20) for _ in range(3)] == [True, False, "limit"]
        assert gateway.close_cell("cell") == {"calls": 2, "refused": 1, "limit_reached": True}
        assert not route.socket.exists()
        assert gateway.alive
        first, second = read_calls(route.calls_path, route.wire_path, 0.0)
        assert first.usage is not None
        assert (first.usage.input, first.attempts, len(first.waits)) == (12, 2, 1)
        assert second.error == "limit"
        [window] = gateway.windows()
        assert (window.endpoint, window.rate_limited, window.largest) == ("up", 1, 1)
        assert window.waited_s > 0
    assert not gateway.alive


def test_faults_name_the_cell(tmp_path: Path) -> None:
    with Gateway.start() as gateway:
        with pytest.raises(CellFault, match="unknown endpoint 'up'"):
            gateway.open_cell(make_route(tmp_path))
        with pytest.raises(CellFault, match="is not open"):
            gateway.close_cell("cell")
        assert gateway.alive


def test_no_key_in_environment_arguments_or_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAB_KEY", KEY)
    with Gateway.start(
        [Endpoint(name="up", base_url="http://127.0.0.1:1", key=KEY)], log=tmp_path / "log"
    ) as gateway:
        for name in ("environ", "cmdline"):
            assert KEY.encode() not in Path(f"/proc/{gateway.pid}/{name}").read_bytes()
        assert (tmp_path / "log").read_bytes() == b""


def test_death_of_the_gateway_is_told_at_once(tmp_path: Path) -> None:
    faults: queue.Queue[CellFault] = queue.Queue()
    gateway = Gateway.start()
    route = scripted(tmp_path, Script(kind="idle"))
    gateway.open_cell(route, on_fault=faults.put)
    os.kill(gateway.pid, signal.SIGKILL)
    assert faults.get(timeout=20).cause == "gateway"
    with pytest.raises(CellFault) as caught:
        gateway.close_cell("cell")
    assert caught.value.cause == "gateway"
    assert not gateway.alive
    gateway.stop()


def test_gateway_ends_with_a_killed_runner(tmp_path: Path) -> None:
    """Also when the runner had no chance to say so; the container's PID 1 sees its connection end."""
    program = textwrap.dedent(
        """
        import os, sys
        from pathlib import Path
        from orchestrator.gateway.client import Gateway
        from orchestrator.gateway.contract import CellRoute
        gateway = Gateway.start()
        gateway.open_cell(CellRoute.model_validate_json(sys.argv[1]))
        print(gateway.pid, flush=True)
        sys.stdin.read()
        """
    )
    route = scripted(tmp_path, Script(kind="idle"))
    runner = subprocess.Popen(
        [sys.executable, "-c", program, route.model_dump_json()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(orchestrator.__file__).parent.parent)},
    )
    with runner, socket.socket(socket.AF_UNIX) as liveness:
        assert runner.stdout is not None
        gateway = os.pidfd_open(int(runner.stdout.readline()))
        liveness.settimeout(20)
        liveness.connect(str(route.socket))
        runner.kill()
        assert liveness.recv(1) == b""
        assert select.select([gateway], [], [], 20)[0] == [gateway]
    os.close(gateway)


def test_many_cells_at_once_from_many_threads(tmp_path: Path) -> None:
    with Gateway.start() as gateway:

        def cell(number: int) -> None:
            folder = tmp_path / str(number)
            folder.mkdir()
            route = scripted(folder, Script(kind="idle"), cell_id=str(number))
            gateway.open_cell(route)
            statuses.append(post(route.socket)[0])
            summaries.append(gateway.close_cell(str(number))["calls"])

        statuses: list[int] = []
        summaries: list[int] = []
        threads = [threading.Thread(target=cell, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (statuses, summaries) == ([200] * 12, [1] * 12)
