"""Every outcome of the table, made to happen: what is counted, what is tried again, and what is kept of it.

One sweep runs a cell for each case; the tests read what it stored.
"""

from __future__ import annotations

import hashlib
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest
from cells import (
    KEY,
    LIMIT_GRACE_S,
    SHORT_S,
    TASK,
    Answer,
    Answers,
    Stub,
    Watcher,
    assert_nothing_left,
    bench_of,
    cell_of,
    containers_of,
    own_scratch,
    program,
    sweep_record,
    tasks_in,
    wait_until,
)
from outcome_cases import CALL, CASES, RETRIES, STATED_WAIT_S
from partition import TOLERANCE, missing_share, parts_ms

from orchestrator.plan.expand import PlannedCell
from orchestrator.run.sweep import Sweep
from orchestrator.sandbox.docker import DockerSandbox
from orchestrator.sandbox.scratch import ScratchRoot
from orchestrator.store.cells import CellStore
from orchestrator.store.evidence import load_evidence
from orchestrator.store.record import CellRecord
from scorers.evidence import Evidence

pytestmark = [pytest.mark.docker, pytest.mark.xdist_group("outcomes")]

SWEEP = f"outcomes-{token_hex(4)}"
"""Of its own in each run: containers are found, and removed, by it."""


@dataclass(frozen=True)
class Swept:
    """What the sweep left, and what its endpoint and its watcher saw."""

    store: CellStore
    stub: Stub
    watcher: Watcher
    scratch: ScratchRoot

    def record(self, case: str) -> CellRecord:
        return self.store.record(planned(case).key)

    def scores(self, case: str) -> dict[str, Any]:
        return self.record(case).scores

    def directory(self, case: str) -> Path:
        return self.store.cell_dir(planned(case).key)

    def spans(self, case: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.directory(case) / "spans.jsonl").read_text().splitlines()]

    def evidence(self, case: str) -> Evidence:
        return load_evidence(self.directory(case))


def planned(case: str) -> PlannedCell:
    found = CASES[case]
    index = list(CASES).index(case)
    return cell_of(SWEEP, case, f"stub/{case}", found.task, endpoint=found.endpoint, index=index)


@pytest.fixture(scope="module")
def scratch() -> Iterator[ScratchRoot]:
    with own_scratch() as root:
        yield root


@pytest.fixture(scope="module")
def down() -> Iterator[str]:
    """An endpoint that is down: the port is taken, and nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/v1"


@pytest.fixture(scope="module")
def swept(scratch: ScratchRoot, down: str, tmp_path_factory: pytest.TempPathFactory) -> Swept:
    results, tasks = tmp_path_factory.mktemp("results"), tasks_in(tmp_path_factory.mktemp("tasks"))
    fixed = tasks[TASK].solution.files["src/reverse.py"]
    stub = Stub({f"stub/{name}": case.answers for name, case in CASES.items()})
    adapters = {
        name: program(name, case.text, fixed=fixed, tty=case.tty, render=case.render)
        for name, case in CASES.items()
    }
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
        wait_until(lambda: containers_of(SWEEP) == [])
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
    case, scores = CASES[name], swept.scores(name)
    assert (scores["pass_rate"]["pass"], scores["pass_rate"]["reason"]) == (case.passed, case.reason)
    assert (scores["composite_published"]["composite"] is not None) is case.counted
    if not case.counted:
        for formula in ("composite", "composite_published"):
            assert scores[formula]["composite"] is None
            assert "not counted" in scores[formula]["reasons"]["composite"]


def test_tokens_are_those_of_the_wire(name: str, swept: Swept) -> None:
    case, tokens = CASES[name], swept.scores(name)["tokens"]
    assert tokens["total_tokens"] == case.tokens
    assert tokens["source"] == "wire"
    if case.tokens is None:
        assert "stated no usage" in tokens["reasons"]["total_tokens"]


def test_parts_of_the_time_add_up_to_the_whole(name: str, swept: Swept) -> None:
    assert missing_share(json.loads((swept.directory(name) / "cell.json").read_bytes())) <= TOLERANCE
    summed = parts_ms(swept.scores(name)["latency"])
    spans = {span["kind"]: span for span in swept.spans(name)}
    last = spans.get("score", spans["container"])
    whole_ms = (last["end_unix_ns"] - spans["cell"]["start_unix_ns"]) / 1e6
    if last["kind"] == "score":
        assert summed == pytest.approx(whole_ms, rel=TOLERANCE)
    else:
        # A fault ended it: the span goes on while the gateway closes and the wire is read, the times do not.
        assert summed <= whole_ms


def test_what_was_measured_is_kept(name: str, swept: Swept) -> None:
    case, evidence, scores = CASES[name], swept.evidence(name), swept.scores(name)
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
    case, directory, spans = CASES[name], swept.directory(name), swept.spans(name)
    kinds = [span["kind"] for span in spans]
    assert {"cell", "task_setup", "adapter_run", "container", "model_call"} <= set(kinds)
    assert kinds.count("model_call") == len(swept.evidence(name).calls)
    assert ("verify" in kinds) is (case.passed is not None or case.reason == "verify_error")
    [root] = [span for span in spans if span["kind"] == "cell"]
    assert root["attributes"]["cab.outcome"] == case.outcome
    assert_asciicast(directory / "recording.cast")
    assert swept.record(name).recording == ("pty" if case.tty else "rendered" if case.render else "plain")


def assert_asciicast(path: Path) -> None:
    """Of version 2: a header, and events whose times never run backwards."""
    header, *events = map(json.loads, path.read_text("utf-8").rstrip("\n").split("\n"))
    assert (header["version"], header["width"], header["height"]) == (2, 120, 40)
    times = [at for at, _, _ in events]
    assert times == sorted(times)
    assert all(at >= 0 and kind in "om" and isinstance(text, str) for at, kind, text in events)


def test_events_are_rendered_at_their_times_and_kept_as_they_came(swept: Swept) -> None:
    directory = swept.directory("rendered")
    header, *events = map(json.loads, (directory / "recording.cast").read_text("utf-8").splitlines())
    assert header["title"].endswith("(rendered)")
    assert [text for _, _, text in events] == [
        "\x1b[36mI will fix it.\r\n\x1b[0m",
        "\x1b[36m\ufffd[2JFixed.\r\n\x1b[0m",
        "goodbye\r\n",
    ]
    first, second = events[0][0], events[1][0]
    [call] = swept.evidence("rendered").calls
    assert first < call.end <= second - 1
    printed = (directory / "stdout.log").read_text()
    assert [json.loads(line)["text"] for line in printed.splitlines()[:2]][1] == "\x1b[2JFixed.\n"


def test_a_stated_wait_is_not_the_agents_time(swept: Swept) -> None:
    latency = swept.scores("waits")["latency"]
    waited = latency["partition"]["rate_limit_wait"]
    assert waited == pytest.approx(STATED_WAIT_S * 1000, rel=0.25)
    assert latency["container_active_ms"] > SHORT_S * 1000
    assert latency["active_ms"] == pytest.approx(latency["container_active_ms"] - waited)


def test_a_cli_that_goes_on_after_a_limit_is_ended(swept: Swept) -> None:
    """Between the grace that it has and the time limit, which is minutes, stands a wide margin."""
    evidence = swept.evidence("limit-ignored")
    refused = [call for call in evidence.calls if call.error == "limit"]
    assert len(refused) > 1
    left = evidence.phases["agent"].end - refused[0].end
    assert LIMIT_GRACE_S - 0.1 < left < LIMIT_GRACE_S + 20
    assert evidence.end is not None
    assert (evidence.end.stopped_after_limit, evidence.end.timed_out) == (True, False)
    [by_itself] = [swept.evidence("limit").end]
    assert by_itself is not None
    assert not by_itself.stopped_after_limit


def test_a_call_that_was_overcome_keeps_its_attempts(swept: Swept) -> None:
    [call] = swept.evidence("overcome").calls
    assert (call.attempts, call.error) == (2, None)
    # Other cells' calls go to the same endpoint: a call may have waited for its place as well.
    assert 0 < len(call.waits) <= 2
    assert call.start <= call.waits[0].start < call.waits[-1].end <= call.end


def test_a_fault_of_the_machine_keeps_the_call_that_was_made_before(swept: Swept) -> None:
    evidence, record = swept.evidence("engine"), swept.record("engine")
    assert "killed from outside" in (record.outcome.detail or "")
    assert [call.error for call in evidence.calls] == [None, "client_gone"]
    assert swept.scores("engine")["tokens"]["known"]["total_tokens"] == CALL
    assert evidence.end is None


def test_a_suite_that_stops_is_the_agents_fault_only_where_the_reference_passes(swept: Swept) -> None:
    asked = {"suite-stops": True, "syntax-error": True, "verify-error": False, "fails": None}
    for name, passes in asked.items():
        verification = swept.evidence(name).verification
        assert verification is not None
        assert verification.reference_passes is passes


def test_hostile_output_is_bounded(swept: Swept) -> None:
    sizes = {path.name: path.stat().st_size for path in swept.directory("hostile").iterdir()}
    assert 3 << 20 < sizes["stdout.log"] < 5 << 20
    assert sizes["recording.cast"] < 17 << 20
    assert sum(sizes.values()) < 24 << 20


def test_hostile_files_are_listed_and_never_followed(swept: Swept) -> None:
    evidence = swept.evidence("hostile")
    after = {change.path: change.after for change in evidence.changes if change.after}
    assert {"new\nline.txt", "bad\\xff\\xfe.txt", 'tab\t"quote".txt'} <= after.keys()
    kinds = {name: after[name].kind for name in ("shadow", "root", "pipe", "huge")}
    assert kinds == {"shadow": "symlink", "root": "symlink", "pipe": "other", "huge": "file"}
    assert after["shadow"].target == "/etc/shadow"
    assert (after["huge"].size, after["huge"].sha256) == (1 << 40, None)
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
    assert_nothing_left(swept.scratch, swept.store)


def test_a_full_disk_is_graded_like_any_other_work(swept: Swept) -> None:
    """The agent's own doing: never a fault of the machine, and what it solved counts."""
    evidence = swept.evidence("disk-full")
    assert len(evidence.changes) > 3000
    assert evidence.verification is not None
    assert "too deep to be graded" in evidence.verification.stderr_tail
