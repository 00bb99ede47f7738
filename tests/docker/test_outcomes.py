"""Every outcome of the table, made to happen: what is counted, what is tried again, and what is kept of it.

One sweep runs a cell for each case; the tests read what it stored.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from cells import (
    CALL_RETRIES,
    KEY,
    TOKENS_IN,
    TOKENS_OUT,
    Answer,
    Answers,
    Stub,
    Watcher,
    bench_of,
    cell_of,
    completion,
    program,
    refusal,
    sweep_record,
)

from orchestrator.errors import CellFault
from orchestrator.paths import TASKS
from orchestrator.plan.expand import PlannedCell, expand
from orchestrator.plan.spec import SweepSpec
from orchestrator.plan.task import Task, load_task
from orchestrator.run.bench import Bench
from orchestrator.run.outcome import TABLE
from orchestrator.run.sweep import Sweep
from orchestrator.sandbox.docker import DockerSandbox
from orchestrator.sandbox.scratch import ScratchRoot
from orchestrator.store.cells import CellStore
from orchestrator.store.evidence import load_evidence
from orchestrator.store.record import CellRecord
from scorers.evidence import Evidence

pytestmark = [pytest.mark.docker, pytest.mark.xdist_group("outcomes")]

SWEEP = "outcomes"
TASK = "polyglot/python-reverse-string"
SHORT, TWO_CALLS = "polyglot/short", "polyglot/two-calls"
NO_REWARD, NO_IMPORT, SLOW_TESTS = "polyglot/no-reward", "polyglot/no-import", "polyglot/slow-tests"
SHORT_S, STATED_WAIT_S = 3.0, 4
RETRIES = 1
CALL = TOKENS_IN + TOKENS_OUT
CALLS = 1 + CALL_RETRIES


def answers(number: int) -> Answer:
    return Answer()


def always(answer: Answer) -> Answers:
    return lambda number: answer


def first(count: int, answer: Answer, *, after: int = 0) -> Answers:
    """`answer` to `count` requests behind the first `after`, and what is asked for to all others."""
    return lambda number: answer if after < number <= after + count else Answer()


@dataclass(frozen=True)
class Case:
    """`tries` of the cell, requests `asked` of the endpoint in all of them, `tokens` of the last try."""

    outcome: str
    text: str
    asked: int
    answers: Answers = answers
    endpoint: str = "stub"
    task: str = TASK
    tty: bool = True
    passed: int | None = 0
    reason: str = "tests_failed"
    detail: str = ""
    tries: int = 1
    tokens: int | None = CALL
    earlier: tuple[int | None, ...] = ()

    @property
    def counted(self) -> bool:
        return TABLE[self.outcome.partition("(")[0]].counted


def infra(
    cause: str,
    asked: int,
    answers: Answers,
    *,
    text: str = "fix(); ask()",
    tokens: int | None = 0,
    endpoint: str = "stub",
) -> Case:
    """A fault of the endpoint: tried again, then left uncounted."""
    return Case(
        f"infra_error({cause})",
        text,
        asked=asked,
        answers=answers,
        endpoint=endpoint,
        passed=None,
        reason="not_verified",
        tries=1 + RETRIES,
        tokens=tokens,
        earlier=(tokens,) * RETRIES,
    )


HOSTILE = """
ask()
os.symlink("/etc/shadow", "shadow")
os.symlink("/", "root")
os.mkfifo("pipe")
with open("huge", "wb") as file:
    file.truncate(1 << 40)
for name in (b"new\\nline.txt", b"bad\\xff\\xfe.txt", b"tab\\t\\"quote\\".txt"):
    with open(name, "w") as file:
        file.write("x")
for _ in range(24):
    sys.stdout.write("\\x1b[31m" + "x" * (1 << 20))
sys.stdout.flush()
if os.fork() == 0:
    os.setsid()
    while True:
        with open("tick.new", "w") as file:
            file.write(repr(time.time()))
        os.rename("tick.new", "tick.txt")
while not os.path.exists("tick.txt"):
    pass
"""

FILLS_ITS_DISK = """
ask(); fix()
try:
    for number in range(6000):
        open("a" + str(number), "w").close()
except OSError:
    pass
try:
    with open("a0", "wb") as file:
        for _ in range(160):
            file.write(bytes(1 << 20))
except OSError:
    pass
"""

CASES = {
    "passes": Case("completed", "ask(); fix()", asked=1, passed=1, reason="passed"),
    "fails": Case("completed", "ask()", asked=1),
    "usage-unstated": Case(
        "completed",
        "ask(); fix()",
        asked=1,
        answers=always(Answer(body=completion(usage=False))),
        passed=1,
        reason="passed",
        tokens=None,
    ),
    "timed-out": Case(
        "timed_out", "ask(); fix(); time.sleep(600)", asked=1, task=SHORT, passed=1, reason="passed"
    ),
    "limit": Case("limit_reached(calls)", "while True: ask()", asked=2, task=TWO_CALLS, tokens=2 * CALL),
    "exit-code": Case(
        "agent_crashed", "ask(); fix(); sys.exit(3)", asked=1, passed=1, reason="passed", detail="exit code 3"
    ),
    "signal": Case(
        "agent_crashed", "ask(); os.kill(os.getpid(), signal.SIGSEGV)", asked=1, detail="signal 11"
    ),
    "oom": Case("agent_oom", 'ask(); b"x" * (1 << 30)', asked=1),
    "overflow": Case(
        "context_overflow",
        "ask()",
        asked=1,
        answers=always(refusal(400, "context_length_exceeded")),
        tokens=0,
    ),
    "bad-request": Case("bad_request", "ask()", asked=1, answers=always(refusal(422)), tokens=0),
    "unauthorised": Case("bad_request", 'ask("not-the-credential")', asked=0, tokens=0),
    "overcome": Case(
        "completed",
        "ask(); fix()",
        asked=2,
        answers=first(1, refusal(503)),
        passed=1,
        reason="passed",
    ),
    "waits": Case(
        "completed",
        "ask(); fix()",
        asked=2,
        answers=first(1, refusal(429, retry_after=str(STATED_WAIT_S))),
        task=SHORT,
        passed=1,
        reason="passed",
    ),
    "second-try": Case(
        "completed",
        "ask(); ask(); fix()",
        asked=1 + CALLS + 2,
        answers=first(CALLS, refusal(503), after=1),
        passed=1,
        reason="passed",
        tries=2,
        tokens=2 * CALL,
        earlier=(CALL,),
    ),
    "rate-limited": infra("rate_limited", 2 * CALLS, always(refusal(429))),
    "down": infra("endpoint_down", 0, answers, endpoint="down"),
    "5xx": infra("upstream_5xx", 2 * CALLS, always(refusal(503))),
    "cut": infra("stream_cut", 2, always(Answer(cut=True)), tokens=None),
    "key-refused": infra("key_refused", 2, always(refusal(401))),
    # The container goes in the middle of the second call, whose usage nobody knows.
    "engine": infra("engine", 4, answers, text="fix(); ask(); ask()", tokens=None),
    "verify-error": Case(
        "verify_error",
        "ask(); fix()",
        asked=2,
        task=NO_REWARD,
        passed=None,
        reason="verify_error",
        tries=1 + RETRIES,
        earlier=(CALL,),
    ),
    "syntax-error": Case(
        "completed", 'ask(); write("def reverse_string(:\\n")', asked=1, reason="build_broken"
    ),
    "suite-stops": Case(
        "completed", 'ask(); write("raise SystemExit\\n")', asked=1, task=NO_IMPORT, reason="build_broken"
    ),
    "hostile": Case("completed", HOSTILE, asked=1, tty=False),
    "disk-full": Case("completed", FILLS_ITS_DISK, asked=1, passed=1, reason="passed"),
}


@dataclass(frozen=True)
class Swept:
    """What the sweep left, and what its endpoint and its watcher saw."""

    store: CellStore
    stub: Stub
    watcher: Watcher
    scratch: ScratchRoot

    def record(self, case: str) -> CellRecord:
        return self.store.record(planned(case).key)

    def directory(self, case: str) -> Path:
        return self.store.cell_dir(planned(case).key)

    def evidence(self, case: str) -> Evidence:
        return load_evidence(self.directory(case))


def planned(case: str) -> PlannedCell:
    found = CASES[case]
    index = list(CASES).index(case)
    return cell_of(SWEEP, case, f"stub/{case}", found.task, endpoint=found.endpoint, index=index)


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Task]:
    """One task as it is, with other limits, and with test scripts that do not grade it."""
    plain = load_task(TASKS, TASK)
    found = {
        TASK: plain,
        SHORT: plain.model_copy(update={"name": SHORT, "agent_timeout_s": SHORT_S}),
        TWO_CALLS: plain.model_copy(update={"name": TWO_CALLS, "max_turns": 2}),
    }
    scripts = {
        NO_REWARD: "exit 7",
        NO_IMPORT: 'python3 -I -c "import sys; sys.path.append(\\"/workdir\\"); import src.reverse; print(1)" '
        "| grep -q 1 || exit 7\nexec cab-tests unittest",
        SLOW_TESTS: "exec sleep 200",
    }
    root = tmp_path_factory.mktemp("tasks")
    for name, script in scripts.items():
        shutil.copytree(plain.path, root / name)
        (root / name / "tests" / "test.sh").write_text(f"#!/bin/sh\n# {plain.canary}\n{script}\n")
        found[name] = load_task(root, name)
    return found


@pytest.fixture(scope="module")
def scratch() -> Iterator[ScratchRoot]:
    """A scratch root of its own, whose path is short enough for sockets; pytest's is not."""
    path = Path(tempfile.mkdtemp(prefix="cab-test-", dir="/var/tmp"))
    yield ScratchRoot(path)
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def down() -> Iterator[str]:
    """An endpoint that is down: the port is taken, and nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


@pytest.fixture(scope="module")
def swept(
    tasks: dict[str, Task], scratch: ScratchRoot, down: str, tmp_path_factory: pytest.TempPathFactory
) -> Swept:
    results = tmp_path_factory.mktemp("results")
    fixed = tasks[TASK].solution.files["src/reverse.py"]
    stub = Stub({f"stub/{name}": case.answers for name, case in CASES.items()})
    adapters = {name: program(name, case.text, fixed=fixed, tty=case.tty) for name, case in CASES.items()}
    store, watcher = CellStore(results, SWEEP), Watcher()
    with (
        stub.served() as url,
        bench_of(
            SWEEP,
            adapters=adapters,
            tasks=tasks,
            endpoints={"stub": url, "down": down},
            scratch=scratch,
            log=results / "gateway.log",
        ) as bench,
        store,
    ):
        stub.answers["stub/engine"] = removing(bench.grader.sandbox, planned("engine").cell_id)
        cells = [planned(name) for name in CASES]
        store.create(sweep_record(bench, cells))
        Sweep(bench, store, cells, RETRIES, watcher).run()
        left = bench.grader.sandbox.remove_leftovers({"cab.sweep": SWEEP})
    assert left == []
    return Swept(store, stub, watcher, scratch)


def removing(sandbox: DockerSandbox, cell_id: str) -> Answers:
    """Removes the cell's container by force before every second answer."""

    def answer(number: int) -> Answer:
        if number % 2 == 0:
            assert len(sandbox.remove_leftovers({"cab.cell": cell_id})) == 1
        return Answer()

    return answer


@pytest.fixture(params=sorted(CASES))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_outcome_and_whether_it_counts(name: str, swept: Swept) -> None:
    case, record = CASES[name], swept.record(name)
    found = record.outcome
    assert (f"{found.name}({found.cause})" if found.cause else found.name) == case.outcome, found.detail
    assert case.detail in (found.detail or "")
    assert found.counted is case.counted
    assert swept.store.finished()[record.cell_id].counted is case.counted


def test_only_what_is_not_counted_is_tried_again(name: str, swept: Swept) -> None:
    case, record = CASES[name], swept.record(name)
    assert swept.stub.asked[f"stub/{name}"] == case.asked
    assert swept.watcher.starts[record.cell_id] == case.tries
    assert swept.watcher.ends[record.cell_id] == 1
    assert [attempt.outcome.counted for attempt in record.attempts] == [False] * (case.tries - 1)
    spent = [
        None if attempt.input_tokens is None else attempt.input_tokens + (attempt.output_tokens or 0)
        for attempt in record.attempts
    ]
    assert spent == list(case.earlier)


def test_grade(name: str, swept: Swept) -> None:
    case, scores = CASES[name], swept.record(name).scores
    assert (scores["pass_rate"]["pass"], scores["pass_rate"]["reason"]) == (case.passed, case.reason)
    for formula in ("composite", "composite_published"):
        if case.counted:
            assert formula in scores
        else:
            assert scores[formula]["composite"] is None
            assert scores[formula]["reasons"]["composite"]


def test_tokens_are_those_of_the_wire(name: str, swept: Swept) -> None:
    case, tokens = CASES[name], swept.record(name).scores["tokens"]
    assert tokens["total_tokens"] == case.tokens
    assert tokens["source"] == "wire"
    if case.tokens is None:
        assert "stated no usage" in tokens["reasons"]["total_tokens"]


def test_parts_of_the_time_add_up_to_the_whole(name: str, swept: Swept) -> None:
    record = swept.record(name)
    latency = record.scores["latency"]
    parts = [value for key, value in latency["partition"].items() if key != "reasons" and value is not None]
    assert sum(parts) == pytest.approx(latency["total_ms"], rel=0.01)
    assert latency["total_ms"] == pytest.approx(record.timing.duration_s * 1000, rel=0.01)
    assert latency["wall_clock_ms"] > 0


def test_what_was_measured_is_kept(name: str, swept: Swept) -> None:
    case, evidence, scores = CASES[name], swept.evidence(name), swept.record(name).scores
    assert len(evidence.calls) > 0
    assert scores["latency"]["model_call_ms"] > 0 or case.asked == 0
    if case.outcome == "infra_error(engine)":
        assert scores["blast_radius"]["blast_radius"] is None
        assert scores["blast_radius"]["reasons"]["blast_radius"]
    else:
        assert scores["blast_radius"]["blast_radius"] is not None
        changed = any(change.path == "src/reverse.py" for change in evidence.changes)
        assert changed is ("fix()" in case.text or " write(" in case.text)


def test_spans_and_recording(name: str, swept: Swept) -> None:
    case, directory = CASES[name], swept.directory(name)
    spans = [json.loads(line) for line in (directory / "spans.jsonl").read_text().splitlines()]
    kinds = [span["kind"] for span in spans]
    assert {"cell", "task_setup", "adapter_run", "container", "model_call"} <= set(kinds)
    assert kinds.count("model_call") == len(swept.evidence(name).calls)
    assert ("verify" in kinds) is (case.passed is not None or case.reason == "verify_error")
    [root] = [span for span in spans if span["kind"] == "cell"]
    assert root["attributes"]["cab.outcome"] == case.outcome
    header = json.loads((directory / "recording.cast").read_text("utf-8").splitlines()[0])
    assert header["version"] == 2


def test_a_stated_wait_is_not_the_agents_time(swept: Swept) -> None:
    latency = swept.record("waits").scores["latency"]
    waited = latency["partition"]["rate_limit_wait"]
    assert waited == pytest.approx(STATED_WAIT_S * 1000, rel=0.25)
    assert latency["container_active_ms"] > SHORT_S * 1000
    assert latency["active_ms"] == pytest.approx(latency["container_active_ms"] - waited)


def test_a_call_that_was_overcome_keeps_its_attempts(swept: Swept) -> None:
    [call] = swept.evidence("overcome").calls
    assert (call.attempts, call.error, len(call.waits)) == (2, None, 1)


def test_a_fault_of_the_machine_keeps_the_call_that_was_made_before(swept: Swept) -> None:
    evidence, record = swept.evidence("engine"), swept.record("engine")
    assert "killed from outside" in (record.outcome.detail or "")
    assert [call.error for call in evidence.calls] == [None, "client_gone"]
    assert record.scores["tokens"]["known"]["total_tokens"] == CALL
    assert evidence.end is None


def test_a_suite_that_stops_is_the_agents_fault_only_where_the_reference_passes(swept: Swept) -> None:
    for name, passes in (("suite-stops", True), ("syntax-error", True), ("verify-error", False)):
        verification = swept.evidence(name).verification
        assert verification is not None
        assert verification.reference_passes is passes
    assert swept.evidence("fails").verification.reference_passes is None  # type: ignore[union-attr]


def test_hostile_output_is_bounded(swept: Swept) -> None:
    sizes = {path.name: path.stat().st_size for path in swept.directory("hostile").iterdir()}
    assert 3 << 20 < sizes["stdout.log"] < 5 << 20
    assert sizes["recording.cast"] < 17 << 20
    assert sum(sizes.values()) < 24 << 20


def test_hostile_files_are_listed_and_never_followed(swept: Swept) -> None:
    evidence = swept.evidence("hostile")
    after = {change.path: change.after for change in evidence.changes}
    assert {"new\nline.txt", "bad\\xff\\xfe.txt", 'tab\t"quote".txt'} <= after.keys()
    kinds = {path: state.kind for path, state in after.items() if state}
    assert {kinds["shadow"], kinds["root"], kinds["pipe"], kinds["huge"]} == {"symlink", "other", "file"}
    assert after["shadow"].target == "/etc/shadow"  # type: ignore[union-attr]
    assert after["huge"].sha256 is None  # type: ignore[union-attr]
    assert len(evidence.diff) < 1 << 20


def test_a_daemon_does_not_outlive_the_agent(swept: Swept) -> None:
    """What it wrote last is what was listed, diffed and timed: nothing changed the workdir any more."""
    evidence, record = swept.evidence("hostile"), swept.record("hostile")
    [tick] = [line[1:] for line in evidence.diff.partition("b/tick.txt")[2].splitlines() if line[:2] == "+1"][
        :1
    ]
    [state] = [change.after for change in evidence.changes if change.path == "tick.txt"]
    assert state is not None
    assert state.sha256 == hashlib.sha256(tick.encode()).hexdigest()
    assert float(tick) <= record.timing.started_at.timestamp() + evidence.phases["collect"].start + 0.01


def test_the_endpoints_key_went_nowhere_else(swept: Swept) -> None:
    assert swept.stub.keys == {f"Bearer {KEY}"}
    for path in swept.store.root.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path


def test_nothing_is_left(swept: Swept) -> None:
    root = swept.scratch.path
    assert [path.name for path in root.iterdir() if path.is_dir()] == []
    assert str(root) not in Path("/proc/self/mountinfo").read_text()
    assert list((swept.store.root / ".staging").iterdir()) == []


def test_a_full_disk_is_graded_like_any_other_work(swept: Swept) -> None:
    """The agent's own doing: never a fault of the machine, and what it solved counts."""
    evidence = swept.evidence("disk-full")
    assert len(evidence.changes) > 3000
    assert evidence.verification is not None
    assert "too many to be graded" in evidence.verification.stderr_tail


# Cells that end their sweep


@contextmanager
def lone_bench(
    stub: Stub, texts: dict[str, str], tasks: dict[str, Task], scratch: ScratchRoot, results: Path
) -> Iterator[tuple[Bench, CellStore]]:
    """A bench and a store of their own, with one place, and a CLI for each of `texts`."""
    fixed = tasks[TASK].solution.files["src/reverse.py"]
    adapters = {name: program(name, text, fixed=fixed) for name, text in texts.items()}
    store = CellStore(results, "lone")
    with (
        stub.served() as url,
        bench_of(
            "lone",
            adapters=adapters,
            tasks=tasks,
            endpoints={"stub": url},
            scratch=scratch,
            log=results / "gateway.log",
        ) as bench,
        store,
    ):
        store.create(sweep_record(bench, []))
        yield replace(bench, concurrency=1), store
        assert bench.grader.sandbox.remove_leftovers({"cab.sweep": "lone"}) == []
    assert [path.name for path in scratch.path.iterdir() if path.is_dir()] == []
    assert list((store.root / ".staging").iterdir()) == []


def test_a_dead_gateway_ends_the_sweep_and_its_cell_is_not_counted(
    tasks: dict[str, Task], scratch: ScratchRoot, tmp_path: Path
) -> None:
    texts = {"talks": "fix(); ask(); ask()", "next": "ask()"}
    stub, watcher = Stub({}), Watcher()
    with lone_bench(stub, texts, tasks, scratch, tmp_path) as (bench, store):

        def kill(number: int) -> Answer:
            if number == 2:
                os.kill(bench.gateway.pid, signal.SIGKILL)
            return Answer()

        stub.answers["stub/model"] = kill
        cells = [cell_of("lone", name, "stub/model", TASK, endpoint="stub") for name in texts]
        sweep = Sweep(bench, store, cells, RETRIES, watcher)
        with pytest.raises(CellFault, match="gateway"):
            sweep.run()
        assert not sweep.interrupted
        assert store.finished().keys() == {cells[0].cell_id}
        assert watcher.starts == {cells[0].cell_id: 1}
        record = store.record(cells[0].key)
        assert (record.outcome.name, record.outcome.cause) == ("infra_error", "gateway")
        assert record.outcome.counted is False
        assert record.scores["composite"]["composite"] is None
        assert record.scores["tokens"]["known"]["total_tokens"] == CALL


@pytest.mark.parametrize("during", ["adapter_run", "verify"])
def test_a_cancelled_cell_ends_at_once_and_is_not_stored(
    during: str, tasks: dict[str, Task], scratch: ScratchRoot, tmp_path: Path
) -> None:
    stub, watcher = Stub({}), Watcher()
    text = "ask(); time.sleep(200)" if during == "adapter_run" else "ask()"
    with lone_bench(stub, {"cli": text}, tasks, scratch, tmp_path) as (bench, store):
        cell = cell_of("lone", "cli", "stub/model", SLOW_TESTS, endpoint="stub")
        sweep = Sweep(bench, store, [cell, cell], RETRIES, watcher)

        def cancelling(number: int) -> Answer:
            if during == "adapter_run":
                sweep.cancel()
            return Answer()

        def on_stage(stage: str) -> None:
            if stage == during == "verify":
                sweep.cancel()

        stub.answers["stub/model"], watcher.on_stage = cancelling, on_stage
        begin = time.monotonic()
        sweep.run()
        assert time.monotonic() - begin < 60
        assert sweep.interrupted
        assert (watcher.cancels, watcher.ends) == ([cell.cell_id], {})
        assert store.finished() == {}
        assert not store.cell_dir(cell.key).exists()


def test_a_model_whose_environment_is_not_set_is_skipped(tasks: dict[str, Task], tmp_path: Path) -> None:
    spec = SweepSpec.of_data(
        {
            "name": "lone",
            "clis": ["cli"],
            "models": [{"id": "vendor/model", "endpoint": "hosted"}],
            "endpoints": {"hosted": {"base_url": {"env": "HOSTED_URL"}, "key": {"env": "HOSTED_KEY"}}},
            "tasks": [TASK],
        }
    )
    cli = program("cli", "ask()", fixed="")
    plan = expand(spec, sweep_id="lone", clis={"cli": cli}, tasks=[TASK], env={"HOSTED_URL": "http://host"})
    assert plan.cells == ()
    assert plan.skipped == ((f"lone/cli/vendor/model/{TASK}#run1", "HOSTED_KEY is not set"),)
    rule = TABLE["skipped"]
    assert (rule.counted, rule.retried, rule.ran) == (False, False, False)
