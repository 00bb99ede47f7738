"""Cells whose CLI is a few lines of Python and whose model is a stub; all else is what a sweep is run with.

A CLI is a program given to `python3 -c` in the base image. The stub is an OpenAI chat endpoint on loopback
whose answers are chosen by the model's name, and which counts what it was asked.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import docker

from orchestrator.adapter import Adapter, Launch, LaunchContext
from orchestrator.gateway.client import Gateway
from orchestrator.gateway.contract import Endpoint
from orchestrator.paths import IMAGES_LOCK, INIT_BINARY, TASKS
from orchestrator.plan.expand import PlannedCell
from orchestrator.plan.task import Task, load_task
from orchestrator.run.bench import Bench
from orchestrator.run.grader import Grader
from orchestrator.run.outcome import Outcome
from orchestrator.run.pins import BASE
from orchestrator.run.provenance import Provenance
from orchestrator.sandbox.contract import Limits
from orchestrator.sandbox.docker import DockerSandbox
from orchestrator.sandbox.images import load_lock
from orchestrator.sandbox.images.lock import LockedImage
from orchestrator.sandbox.scratch import ScratchRoot
from orchestrator.store.cells import CellStore
from orchestrator.store.index import IndexEntry
from orchestrator.store.names import CellKey
from orchestrator.store.record import Cab, Machine, SkippedCell, SweepRecord

KEY = "sk-real-0123456789abcdefghijklmnop"
CALL_RETRIES = 2
LIMIT_GRACE_S = 2.0
LIMITS = Limits(
    memory_bytes=256 << 20,
    cpus=1.0,
    pids=64,
    tmp_bytes=64 << 20,
    scratch_bytes=128 << 20,
    scratch_inodes=5000,
)
TASK = "polyglot/python-reverse-string"
SHORT, TWO_CALLS = "polyglot/short", "polyglot/two-calls"
NO_REWARD, NO_IMPORT, SLOW_TESTS = "polyglot/no-reward", "polyglot/no-import", "polyglot/slow-tests"
SHORT_S = 3.0
DIGEST = f"sha256:{0:064x}"
TOKENS_IN, TOKENS_OUT = 100, 10

PRELUDE = """
import json, os, signal, sys, time, urllib.request

def ask(credential=os.environ["CREDENTIAL"]):
    body = {"model": "m", "temperature": 0, "messages": [{"role": "user", "content": "go"}]}
    request = urllib.request.Request(
        "http://127.0.0.1:8377/v1/chat/completions",
        json.dumps(body).encode(),
        {"Authorization": "Bearer " + credential, "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:
        return json.load(response)

def write(content):
    with open("src/reverse.py", "w") as file:
        file.write(content)

def fix():
    write(os.environ["FIX"])
"""


def program(
    name: str, text: str, *, fixed: str, tty: bool = True, render: Callable[[str], str] | None = None
) -> Adapter:
    """A CLI that runs `text`, which may use `ask`, `write` and `fix` (writes `fixed`)."""

    def launch(context: LaunchContext) -> Launch:
        return Launch(
            argv=("python3", "-c", PRELUDE + text), env={"CREDENTIAL": context.credential, "FIX": fixed}
        )

    return Adapter(name=name, version="1", launch=launch, tty=tty, render=render)


# The stub


def completion(*, usage: bool = True) -> dict[str, Any]:
    message = {"role": "assistant", "content": "I fixed it."}
    body: dict[str, Any] = {
        "id": "c",
        "object": "chat.completion",
        "model": "stub-build-1",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }
    if usage:
        total = TOKENS_IN + TOKENS_OUT
        body["usage"] = {
            "prompt_tokens": TOKENS_IN,
            "completion_tokens": TOKENS_OUT,
            "total_tokens": total,
        }
    return body


@dataclass(frozen=True)
class Answer:
    """`cut`: the connection ends in the middle of the body."""

    status: int = 200
    body: Mapping[str, Any] = field(default_factory=completion)
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False


def refusal(status: int, code: str = "refused", **headers: str) -> Answer:
    """An error; `retry_after` in seconds. Without it a retry is asked for after a millisecond."""
    stated = {"Retry-After": headers["retry_after"]} if headers else {"retry-after-ms": "1"}
    return Answer(status, {"error": {"message": code, "type": code, "code": code}}, stated)


Answers = Callable[[int], Answer]
"""From the number of a model's request, counted from 1, to its answer; may act before it answers."""


@dataclass
class Stub:
    """Serves the models of `answers`; `asked` counts requests by model, `keys` came with them."""

    answers: dict[str, Answers]
    asked: Counter[str] = field(default_factory=Counter)
    keys: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, model: str, authorization: str) -> Answer:
        with self._lock:
            self.asked[model] += 1
            self.keys.add(authorization)
            number = self.asked[model]
        return self.answers[model](number)

    @contextmanager
    def served(self) -> Iterator[str]:
        """Serve on loopback; yields the base URL."""
        stub = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                answer = stub.answer(request["model"], self.headers["Authorization"])
                body = json.dumps(answer.body).encode()
                self.send_response(answer.status)
                for name, value in {**answer.headers, "Content-Type": "application/json"}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body[: len(body) // 2] if answer.cut else body)

            def log_message(self, *_: object) -> None:
                """A test's output is no place for an access log."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                """A gateway that was killed does not read its answer."""

        server = Server(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


# The tasks, and where they run


def tasks_in(root: Path) -> dict[str, Task]:
    """One task as it is, with other limits, and with test scripts of its own that do not grade it."""
    plain = load_task(TASKS, TASK)
    found = {
        TASK: plain,
        SHORT: plain.model_copy(update={"name": SHORT, "agent_timeout_s": SHORT_S}),
        TWO_CALLS: plain.model_copy(update={"name": TWO_CALLS, "max_turns": 2}),
    }
    load = "import sys; sys.path.append('/workdir'); import src.reverse; print('loaded')"
    scripts = {
        NO_REWARD: "exit 7",
        NO_IMPORT: f'python3 -I -c "{load}" | grep -q loaded || exit 7\nexec cab-tests unittest',
        SLOW_TESTS: "exec sleep 200",
    }
    for name, script in scripts.items():
        shutil.copytree(plain.path, root / name)
        (root / name / "tests" / "test.sh").write_text(f"#!/bin/sh\n# {plain.canary}\n{script}\n")
        found[name] = load_task(root, name)
    return found


def containers_of(sweep_id: str) -> list[str]:
    """Names of the sweep's containers, whatever their state."""
    with closing(docker.APIClient(version="auto", **docker.utils.kwargs_from_env())) as api:
        found = api.containers(all=True, filters={"label": f"cab.sweep={sweep_id}"})
    return [container["Names"][0] for container in found]


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 240  # a busy machine may take several times as long as a quiet one
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@contextmanager
def own_scratch() -> Iterator[ScratchRoot]:
    """A scratch root of its own, whose path is short enough for sockets; pytest's is not."""
    path = Path(tempfile.mkdtemp(prefix="cab-test-", dir="/var/tmp"))
    try:
        yield ScratchRoot(path)
    finally:
        shutil.rmtree(path)


def assert_nothing_left(scratch: ScratchRoot, store: CellStore) -> None:
    """Neither container, mount, scratch nor staging of the sweep. The engine may still be removing one."""
    wait_until(lambda: containers_of(store.sweep_id) == [])
    assert [path.name for path in scratch.path.iterdir() if path.is_dir()] == []
    assert str(scratch.path) not in Path("/proc/self/mountinfo").read_text()
    assert list((store.root / ".staging").iterdir()) == []


# The bench


@contextmanager
def bench_of(
    sweep_id: str,
    *,
    adapters: Mapping[str, Adapter],
    tasks: Mapping[str, Task],
    endpoints: Mapping[str, str],
    scratch: ScratchRoot,
    log: Path,
    image: LockedImage | None = None,
    limits: Limits = LIMITS,
) -> Iterator[Bench]:
    """A bench of test CLIs, in the base image unless another is given. `endpoints`: name -> base URL."""
    base = load_lock(IMAGES_LOCK).image(BASE)
    image = image or base
    with ExitStack() as stack:
        sandbox = DockerSandbox(INIT_BINARY)
        stack.callback(sandbox.close)
        grader = stack.enter_context(closing(Grader(sandbox, scratch, base.id, sweep_id, sweep_id, limits)))
        served = [Endpoint(name=name, base_url=url, key=KEY) for name, url in endpoints.items()]
        yield Bench(
            sweep_id=sweep_id,
            grader=grader,
            gateway=stack.enter_context(Gateway.start(served, log=log)),
            pins=dict.fromkeys(adapters, image.id),
            tags=dict.fromkeys(adapters, image.tag),
            adapters=adapters,
            adapter_digests=dict.fromkeys(adapters, DIGEST),
            tasks=tasks,
            provenance=Provenance.read(),
            engine_version=sandbox.engine_version,
            concurrency=4,
            call_retries=CALL_RETRIES,
            limit_grace_s=LIMIT_GRACE_S,
        )


def cell_of(sweep_id: str, cli: str, model: str, task: str, *, endpoint: str, index: int = 0) -> PlannedCell:
    key = CellKey(cli, model, task)
    return PlannedCell(key.cell_id(sweep_id), key, endpoint, index)


def sweep_record(
    bench: Bench, cells: list[PlannedCell], skipped: tuple[tuple[str, str], ...] = ()
) -> SweepRecord:
    found = bench.provenance
    return SweepRecord(
        sweep_id=bench.sweep_id,
        started_at=datetime.now(UTC),
        spec={},
        spec_digest=DIGEST,
        pins=dict(bench.pins),
        order=tuple(cell.cell_id for cell in cells),
        seed=0,
        skipped=tuple(SkippedCell(cell_id=cell_id, reason=reason) for cell_id, reason in skipped),
        concurrency=bench.concurrency,
        cab=Cab(version=found.version, commit=found.commit, dirty=found.dirty),
        machine=Machine(
            cores=found.cores, memory_bytes=found.memory_bytes, platform=found.platform, kernel=found.kernel
        ),
    )


@dataclass
class Watcher:
    """An observer that remembers, by cell id, and calls `on_stage` at each stage."""

    on_stage: Callable[[str], None] = lambda _: None
    starts: Counter[str] = field(default_factory=Counter)
    retries: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    cancels: list[str] = field(default_factory=list)

    def started(self, cell: PlannedCell) -> None:
        self.starts[cell.cell_id] += 1

    def stage(self, cell: PlannedCell, stage: str) -> None:
        del cell
        self.on_stage(stage)

    def retrying(self, cell: PlannedCell, outcome: Outcome) -> None:
        del outcome
        self.retries[cell.cell_id] += 1

    def ended(self, cell: PlannedCell, entry: IndexEntry) -> None:
        del entry
        self.ends[cell.cell_id] += 1

    def cancelled(self, cell: PlannedCell) -> None:
        self.cancels.append(cell.cell_id)
