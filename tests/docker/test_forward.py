"""127.0.0.1:PORT inside a container is the gateway's Unix socket outside."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from harness import GID, UID, Output, Runner

from orchestrator.adapter import GATEWAY_PORT
from orchestrator.errors import CellFault
from orchestrator.sandbox.contract import ContainerEnd, Limits

Handler = Callable[[socket.socket], None]
ROOMY = Limits(memory_bytes=1 << 30, cpus=2.0, pids=512, tmp_bytes=64 << 20)


class Server:
    """Stands in for the gateway: its first connection is the liveness line, others go to `handler`."""

    def __init__(self, path: Path, handler: Handler, backlog: int = 100) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        path.chmod(0o600)
        if os.geteuid() == 0:
            os.chown(path, UID, GID)
        self._listener.listen(backlog)
        self._handler = handler
        self.line: socket.socket | None = None
        self.served = 0
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            self.line, _ = self._listener.accept()
            while True:
                connection, _ = self._listener.accept()
                self.served += 1
                self._threads.append(threading.Thread(target=self._serve, args=(connection,)))
                self._threads[-1].start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(ConnectionError):
            self._handler(connection)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()
        self._listener.close()
        for thread in self._threads:
            thread.join()
        if self.line:
            self.line.close()


@pytest.fixture
def serve(run: Runner) -> Iterator[Callable[..., tuple[ContainerEnd, Output, Server]]]:
    """Runs a Python program in a container whose gateway is `handler`."""
    servers: list[Server] = []

    def serve(handler: Handler, program: str, *, backlog: int = 100) -> tuple[ContainerEnd, Output, Server]:
        spec = run.spec(
            "python3", "-u", "-c", f"PORT = {GATEWAY_PORT}\n{program}", model_socket=True, limits=ROOMY
        )
        servers.append(Server(spec.run_dir / "model.sock", handler, backlog))
        output = Output()
        return run.sandbox.run(spec, sink=output), output, servers[-1]

    yield serve
    for server in servers:
        server.close()


Serve = Callable[..., tuple[ContainerEnd, Output, Server]]


def read_all(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(1 << 16), b""))


def digest_and_echo(connection: socket.socket) -> None:
    body = read_all(connection)
    connection.sendall(hashlib.sha256(body).digest() + body)


def test_many_large_bodies_with_half_closes(serve: Serve) -> None:
    program = """
import hashlib, os, socket, threading
good = []
def one(i):
    s = socket.create_connection(("127.0.0.1", PORT))
    body = os.urandom(200_000 + i * 1000)
    s.sendall(body)
    s.shutdown(socket.SHUT_WR)
    answer = b"".join(iter(lambda: s.recv(1 << 16), b""))
    good.append(answer == hashlib.sha256(body).digest() + body)
threads = [threading.Thread(target=one, args=(i,)) for i in range(150)]
for t in threads: t.start()
for t in threads: t.join()
print(len(good), all(good))
"""
    end, output, server = serve(digest_and_echo, program)
    assert (end.exit_code, output.stdout, server.served) == (0, b"150 True\n", 150), output.stderr


def test_full_backlog_of_the_gateway(serve: Serve) -> None:
    program = """
import socket
sockets = [socket.create_connection(("127.0.0.1", PORT)) for _ in range(64)]
for s in sockets: s.sendall(b"x"); s.shutdown(socket.SHUT_WR)
print(sum(len(b"".join(iter(lambda: s.recv(1 << 16), b""))) for s in sockets))
"""
    _, output, _ = serve(digest_and_echo, program, backlog=1)
    assert output.stdout == b"%d\n" % (64 * 33), output.stderr


def test_more_connections_than_pid_1_holds(serve: Serve) -> None:
    """Those beyond wait their turn; neither the clock nor the control line does."""
    program = """
import socket
sockets = [socket.create_connection(("127.0.0.1", PORT)) for _ in range(700)]
done = 0
for s in sockets:
    s.sendall(b"x"); s.shutdown(socket.SHUT_WR)
    done += len(b"".join(iter(lambda: s.recv(1 << 16), b""))) == 33
    s.close()
print(done)
"""
    _, output, _ = serve(digest_and_echo, program)
    assert output.stdout == b"700\n", output.stderr


def test_reader_that_does_not_read_holds_up_only_itself(serve: Serve) -> None:
    def flood(connection: socket.socket) -> None:
        if connection.recv(1) == b"f":
            for _ in range(64):
                connection.sendall(b"x" * (1 << 20))
        else:
            connection.sendall(b"quick")

    program = """
import socket
slow = socket.create_connection(("127.0.0.1", PORT)); slow.sendall(b"f")
quick = socket.create_connection(("127.0.0.1", PORT)); quick.sendall(b"q")
print(quick.recv(100))
print(sum(map(len, iter(lambda: slow.recv(1 << 20), b""))))
"""
    _, output, _ = serve(flood, program)
    assert output.stdout == b"b'quick'\n%d\n" % (64 << 20), output.stderr


def test_answer_before_the_end_of_the_request_arrives(serve: Serve) -> None:
    """A gateway that refuses a large body and closes: the client still gets to read why."""

    def refuse(connection: socket.socket) -> None:
        connection.recv(10)
        connection.sendall(b"413 too large")

    program = """
import socket
s = socket.create_connection(("127.0.0.1", PORT))
for _ in range(400):
    s.sendall(b"x" * 65536)
print(b"".join(iter(lambda: s.recv(1 << 16), b"")))
"""
    _, output, _ = serve(refuse, program)
    assert output.stdout == b"b'413 too large'\n", output.stderr


def test_gateway_learns_of_a_client_that_went_away(serve: Serve) -> None:
    gone = threading.Event()

    def stream(connection: socket.socket) -> None:
        try:
            while True:
                connection.sendall(b"x" * 1024)
        except ConnectionError:
            gone.set()

    program = """
import socket, struct
s = socket.create_connection(("127.0.0.1", PORT)); s.recv(10)
s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)); s.close()
import time; time.sleep(0.5)
"""
    end, _, _ = serve(stream, program)
    assert gone.wait(60)
    assert end.exit_code == 0


def test_idle_pid_1_uses_no_time(serve: Serve) -> None:
    """Connections in every half-closed state are waited for, not polled."""

    def hold(connection: socket.socket) -> None:
        connection.sendall(b"x")
        if connection.recv(1) == b"c":
            return
        connection.shutdown(socket.SHUT_WR)
        read_all(connection)

    program = """
import os, socket, time
def cpu():
    return sum(map(int, open("/proc/1/stat").read().rsplit(")", 1)[1].split()[11:13]))
held = []
for word in (b"c", b"h", b"c", b"h"):
    s = socket.create_connection(("127.0.0.1", PORT)); s.sendall(word); s.recv(1); held.append(s)
held[0].shutdown(socket.SHUT_WR)
before = cpu(); time.sleep(1); print(cpu() - before)
"""
    _, output, _ = serve(hold, program)
    assert int(output.stdout) <= 2, output.stderr  # of 100 ticks


def test_container_ends_with_its_gateway(run: Runner) -> None:
    spec = run.spec("sleep", "100", model_socket=True)
    server = Server(spec.run_dir / "model.sock", digest_and_echo)

    def end_gateway(_: object) -> None:
        assert server.line is not None
        server.line.shutdown(socket.SHUT_RDWR)

    with pytest.raises(CellFault, match="gateway") as fault:
        run.sandbox.run(spec, on_start=end_gateway)
    server.close()
    assert fault.value.cause == "gateway"
