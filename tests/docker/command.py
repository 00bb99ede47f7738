"""The real `cab` command as a process of its own, an endpoint for it, and what it leaves on the machine."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import docker
import docker.errors

REPO = Path(__file__).resolve().parents[2]
PYTHON_TASK = "polyglot/python-reverse-string"
ENDED_S = 240.0
"""Deadlines are for what never comes: a busy machine may take several times as long as a quiet one."""

_LAUNCH = """\
import json, sys
from pathlib import Path
from orchestrator import paths
for name, place in json.loads(sys.argv.pop(1)).items():
    setattr(paths, name, Path(place))
from orchestrator.cli import main
main()
"""

_PROBE = '''\
"""probe: a CLI of the tests, quick to start. It asks the model once and prints the answer."""

from orchestrator.adapter import Adapter, Launch, LaunchContext

SCRIPT = """
import json, os, urllib.request
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hello"}]}).encode()
headers = {"Authorization": "Bearer " + os.environ["PROBE_KEY"], "Content-Type": "application/json"}
print(urllib.request.urlopen(urllib.request.Request(os.environ["PROBE_URL"], body, headers)).read())
"""


def launch(context: LaunchContext) -> Launch:
    env = {"PROBE_KEY": context.credential, "PROBE_URL": context.base_url + "/v1/chat/completions"}
    return Launch(argv=("python3", "-c", SCRIPT), env=env)


ADAPTER = Adapter(name="probe", version="1", launch=launch, tty=False)
'''


def wait_for(
    condition: Callable[[], Any], what: str, timeout_s: float = ENDED_S, every_s: float = 0.02
) -> Any:
    """The first true value of `condition`; fails the test when there is none in time."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited {timeout_s:g} s for: {what}"
        time.sleep(every_s)
    return value


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """Its output, which has to be one JSON document."""
        return json.loads(self.out)


@dataclass
class Running:
    """A command under way. Its output goes to files, so that it never waits for a reader."""

    process: subprocess.Popen[bytes]
    out: Path
    err: Path

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def says(self, text: str) -> None:
        """Wait until it has said this on stderr."""
        wait_for(
            lambda: text in self.err.read_text() or self.process.poll() is not None, f"{text!r} on stderr"
        )
        assert text in self.err.read_text(), self.err.read_text()

    def end(self, code: int | None = None, timeout_s: float = ENDED_S) -> Done:
        """Wait for its end; `code` is how it has to end."""
        done = Done(self.process.wait(timeout_s), self.out.read_text(), self.err.read_text())
        if code is not None:
            assert done.code == code, done
        assert "Traceback" not in done.err, done.err
        return done


@dataclass
class Cab:
    """`cab` with results, scratch and temporary files of its own below `root`, and one sweep."""

    root: Path
    sweep_id: str = field(default_factory=lambda: f"ete-{secrets.token_hex(4)}")
    env: dict[str, str] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)
    started: list[Running] = field(default_factory=list)
    docker: docker.DockerClient = field(default_factory=docker.from_env)

    def __post_init__(self) -> None:
        for name in ("tmp", "scratch"):
            (self.root / name).mkdir(mode=0o700)

    @property
    def results(self) -> Path:
        return self.root / "results"

    @property
    def sweep_dir(self) -> Path:
        return self.results / self.sweep_id

    # ---- running it ----

    def spec(self, **fields: Any) -> Path:
        """A sweep file. JSON is YAML."""
        path = self.root / f"{secrets.token_hex(4)}.yaml"
        path.write_text(json.dumps({"name": "ete", "tasks": [PYTHON_TASK], **fields}))
        return path

    def patched(self, **places: Path) -> None:
        """Have cab find images, tasks or the lock elsewhere."""
        self.paths |= {name: str(place) for name, place in places.items()}

    def add_probe(self) -> None:
        """Give cab the CLI `probe`, in the base image."""
        images, lock = self.root / "images", json.loads((REPO / "images.lock").read_text())
        (images / "probe").mkdir(parents=True)
        (images / "probe" / "adapter.py").write_text(_PROBE)
        lock["images"]["probe"] = lock["images"]["base"] | {"versions": {"probe": "1"}}
        (self.root / "images.lock").write_text(json.dumps(lock))
        self.patched(IMAGES=images, IMAGES_LOCK=self.root / "images.lock")

    def start(self, *args: str | Path, prefix: tuple[str, ...] = (), **env: str) -> Running:
        name = secrets.token_hex(4)
        out, err = self.root / f"{name}.out", self.root / f"{name}.err"
        command = [*prefix, sys.executable, "-c", _LAUNCH, json.dumps(self.paths)]
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("CAB_", "OTEL_"))}
        own = {
            "CAB_SCRATCH": str(self.root / "scratch"),
            "TMPDIR": str(self.root / "tmp"),
            "PYTHONPATH": str(REPO),
            "COLUMNS": "200",
        }
        with out.open("wb") as stdout, err.open("wb") as stderr:
            process = subprocess.Popen(
                [*command, *map(str, args)],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                env=kept | own | self.env | env,
                cwd=self.root,
            )
        running = Running(process, out, err)
        self.started.append(running)
        return running

    def sweep(self, verb: str, *args: str | Path, preflight: bool = False, **more: Any) -> Running:
        """`cab sweep VERB …` on this sweep: `run` and `preflight` take the file, all others its id. Most CLIs
        and models of tests edit nothing, so preflight is left out unless asked for.
        """
        which: tuple[str, ...] = ("--id", self.sweep_id) if verb in ("run", "preflight") else (self.sweep_id,)
        if verb in ("run", "resume") and not preflight:
            which += ("--no-preflight",)
        return self.start("sweep", verb, "-r", self.results, *which, *args, **more)

    # ---- what it stored ----

    def records(self) -> dict[str, dict[str, Any]]:
        """All records below cells/, by id; no id is there twice."""
        found = [json.loads(path.read_bytes()) for path in self.sweep_dir.glob("cells/**/cell.json")]
        records = {record["identity"]["cell_id"]: record for record in found}
        assert len(records) == len(found)
        return records

    def index(self) -> list[dict[str, Any]]:
        path = self.sweep_dir / "index.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def stored(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads((self.sweep_dir / "sweep.json").read_text())
        return data

    def assert_each_cell_once(self) -> None:
        """Every cell of the sweep is in cells/ and in the index, and nothing is half-way."""
        order = sorted(self.stored()["order"])
        assert sorted(self.records()) == order
        assert sorted(entry["cell_id"] for entry in self.index()) == order
        assert list((self.sweep_dir / ".staging").iterdir()) == []

    # ---- what it left on the machine ----

    def containers(self, *, started: bool = False) -> list[str]:
        """Names of the containers of this sweep, dead ones too, or of those that were ever `started`."""
        found = self.docker.api.containers(all=True, filters={"label": f"cab.sweep={self.sweep_id}"})
        return [it["Names"][0] for it in found if not started or it["State"] != "created"]

    def pids_of_init(self) -> list[int]:
        """The host's pids of PID 1 of the containers that run."""
        found = self.docker.containers.list(
            filters={"label": f"cab.sweep={self.sweep_id}"}, ignore_removed=True
        )
        return [container.attrs["State"]["Pid"] for container in found if container.attrs["State"]["Pid"]]

    def gateways(self) -> list[int]:
        """Pids of the gateways of this sweep; their log is named on their command line."""
        return [pid for pid, line in _command_lines() if b"orchestrator.gateway" in line and self._mine(line)]

    def _mine(self, text: bytes) -> bool:
        return os.fsencode(self.root) in text

    def left(self) -> dict[str, Any]:
        """All that is left of this sweep on the machine, by kind, without the kinds that are empty."""
        own = {running.process.pid for running in self.started if running.process.poll() is None}
        backing = Path("/sys/block").glob("loop*/loop/backing_file")
        kinds = {
            "containers": self.containers(),
            "processes": [pid for pid, line in _command_lines() if self._mine(line) and pid not in own],
            "mounts": [
                line for line in Path("/proc/self/mountinfo").read_bytes().splitlines() if self._mine(line)
            ],
            "loop devices": [str(path) for path in backing if self._mine(_text_of(path))],
            # The empty file system is kept: it is the template of the next sweep's.
            "scratch": [path.name for path in (self.root / "scratch").iterdir() if path.suffix != ".ext4"],
            "temporary files": [path.name for path in (self.root / "tmp").iterdir()],
        }
        return {kind: found for kind, found in kinds.items() if found}

    @classmethod
    @contextmanager
    def own(cls) -> Iterator[Cab]:
        """One for one test. Its paths are short enough for sockets; pytest's own are not."""
        cab = cls(Path(tempfile.mkdtemp(prefix="cab-ete-", dir="/var/tmp")))
        try:
            yield cab
        finally:
            cab._close()

    def _close(self) -> None:
        """Leave nothing, whatever the test did."""
        for running in self.started:
            if running.process.poll() is None:
                running.process.kill()
                running.process.wait()
        for name in self.containers():
            with suppress(docker.errors.APIError):  # it may be going already; whether it goes is seen next
                self.docker.api.remove_container(name, force=True)
        wait_for(lambda: not self.containers(), "removal of containers")
        self.docker.close()
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            if str(self.root) in line:
                subprocess.run(["umount", "-l", line.split()[4]], check=True)
        shutil.rmtree(self.root)


def _command_lines() -> Iterator[tuple[int, bytes]]:
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit():
            yield int(directory.name), _text_of(directory / "cmdline")


def _text_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # gone meanwhile
        return b""


Answer = Callable[[int, Mapping[str, str]], tuple[int, bytes]]


@dataclass
class Endpoint:
    """A chat endpoint on loopback. `answer` makes status and body of a call from its number and headers."""

    answer: Answer
    url: str = ""
    calls: int = 0
    bodies: list[bytes] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    _counting: threading.Condition = field(default_factory=threading.Condition)

    def arrived(self, body: bytes) -> int:
        """Counts a call and keeps its body; its number."""
        with self._counting:
            self.bodies.append(body)
            self.calls += 1
            self._counting.notify_all()
            return self.calls

    def wait_for_calls(self, number: int) -> None:
        with self._counting:
            assert self._counting.wait_for(lambda: self.calls >= number, ENDED_S), f"{self.calls} calls"


def completion(text: str = "done") -> bytes:
    """A chat completion with usage."""
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    reply = {"id": "c", "object": "chat.completion", "created": 1, "model": "stub-1"}
    return json.dumps({**reply, "choices": choices, "usage": usage}).encode()


@contextmanager
def serving(answer: Answer, *, held: bool = False) -> Iterator[Endpoint]:
    """An endpoint; one that is held answers once it is released."""
    endpoint = Endpoint(answer)
    if not held:
        endpoint.released.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            number = endpoint.arrived(body)
            endpoint.released.wait(ENDED_S)
            status, reply = endpoint.answer(number, dict(self.headers))
            streamed = reply.startswith(b"data:")
            self.send_response(status)
            self.send_header("Content-Type", "text/event-stream" if streamed else "application/json")
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            try:
                for at in range(0, len(reply), 64):  # torn, as networks do
                    self.wfile.write(reply[at : at + 64])
            except OSError:
                self.close_connection = True  # the caller was killed, which is what its test is about

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    endpoint.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield endpoint
    finally:
        endpoint.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


HOSTED = {
    "models": [{"id": "stub-model", "endpoint": "hosted"}],
    "endpoints": {"hosted": {"base_url": {"env": "CAB_ENDPOINT"}, "key": {"env": "CAB_KEY"}}},
}
"""The part of a sweep file that asks an endpoint."""
