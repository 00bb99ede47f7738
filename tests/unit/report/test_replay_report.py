"""Which cells can be replayed, what of their scores is compared, and what is said of it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from report_samples import DIGEST, FACTS, evidence, record, store

from orchestrator.errors import CellFault, InputError, PinMismatch
from orchestrator.gateway.contract import ReplayReport, RequestDifference, ValueDifference
from orchestrator.paths import IMAGES, TASKS
from orchestrator.plan.spec import SweepSpec
from orchestrator.plan.task import load_task
from orchestrator.report.replay import as_data, lines
from orchestrator.run.replay import Comparison, compare, differing, prepare
from orchestrator.run.start import of_stored
from orchestrator.store.cells import CellStore, read_cell
from orchestrator.store.names import CellKey
from orchestrator.store.record import to_json

TASK = "polyglot/python-reverse-string"
SPEC = {
    "name": "free",
    "clis": ["opencode", "oracle"],
    "models": ["embedded/reference", {"id": "vendor/m", "endpoint": "hosted"}],
    "endpoints": {"hosted": {"base_url": {"env": "CAB_ENDPOINT"}, "key": {"env": "CAB_KEY"}}},
    "tasks": ["polyglot/*"],
    "limits": {"memory": "2GiB"},
    "runs": 3,
}
KEY = CellKey("opencode", "vendor/m", TASK, 2)


def stored(results: Path, key: CellKey = KEY, *, pins: dict[str, str] | None = None, **given: Any) -> Path:
    """A finished cell without calls, in a sweep pinned to what is here, but for `pins`; its directory."""
    facts = FACTS.model_copy(update={"task": TASK})
    found = evidence()
    made = store(results, (record(found, key=key, facts=facts, **given), found), facts=facts)
    adapter = hashlib.sha256((IMAGES / key.cli / "adapter.py").read_bytes()).hexdigest()
    now = {"tasks": {TASK: load_task(TASKS, TASK).content_hash}, "adapters": {key.cli: f"sha256:{adapter}"}}
    changed = {
        what: {name: (pins or {}).get(what, digest) for name, digest in now[what].items()} for what in now
    }
    spec = SweepSpec.of_data(SPEC).model_dump(mode="json")
    sweep = made.sweep().model_copy(update={"spec": spec, **changed})
    (made.root / "sweep.json").write_bytes(to_json(sweep))
    return made.cell_dir(key)


def test_what_is_run_is_what_the_sweep_pinned_less_the_endpoint(tmp_path: Path) -> None:
    call = prepare(stored(tmp_path), paced=True)
    assert call.cell.key == replace(KEY, model="replay/vendor/m")
    assert call.cell.cell_id == f"{call.matrix.sweep_id}/opencode/replay/vendor/m/{TASK}#run2"
    assert call.cell.model == "vendor/m"
    assert (call.cell.script, call.cell.endpoint, call.source.paced) == (None, None, True)
    spec = call.matrix.spec
    assert (spec.endpoints, spec.retries, spec.concurrency) == ({}, 0, 1)
    assert spec.limits.memory == 2 << 30
    assert call.matrix.sweep_id.startswith("replay-free-20261127-")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"outcome": "infra_error", "cause": "disk"}, r"ended as infra_error \(disk\)"),
        ({"replay_of": "free-1/a"}, r"is a replay itself \(replay free-1/a\)"),
        ({"key": CellKey("oracle", "none", TASK)}, "oracle asks no model"),
    ],
)
def test_a_cell_without_a_whole_record_is_refused(tmp_path: Path, given: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        prepare(stored(tmp_path, **given))


@pytest.mark.parametrize("what", ["tasks", "adapters"])
def test_another_task_or_adapter_is_refused_with_both_digests(tmp_path: Path, what: str) -> None:
    with pytest.raises(PinMismatch, match=f"started with {DIGEST}, and it is sha256:"):
        prepare(stored(tmp_path, pins={what: DIGEST}))


def test_a_replay_is_not_resumed(tmp_path: Path) -> None:
    made = CellStore(tmp_path, stored(tmp_path).parents[4].name)
    sweep = made.sweep().model_copy(update={"replay_of": "free-1/a/b/c#run1"})
    (made.root / "sweep.json").write_bytes(to_json(sweep))
    with pytest.raises(InputError, match="cab cell replay 'free-1/a/b/c#run1'"):
        of_stored(tmp_path, made.sweep_id)


def test_scores_are_compared_less_time_and_less_times_in_texts() -> None:
    def scores(took: float, tail: str, tokens: int, **more: Any) -> dict[str, dict[str, Any]]:
        return {
            "latency": {"wall_clock_ms": took, "partition": {"model": took}},
            "composite": {
                "composite": took,
                "bounds": [took, took],
                "components": {"active_time": took, "pass": 1},
            },
            "pass_rate": {"stdout_tail": tail, "tests": [{"name": "a", "message": tail}]},
            "tokens": {"prompt_tokens": tokens, **more},
        }

    old = scores(1.0, "Ran 2 tests in 0.001s", 7)
    assert differing(old, scores(2.0, "Ran 2 tests in 0.042s", 7)) == {}
    assert differing(old, scores(1.0, "Ran 3 tests in 0.001s", 8, cached_read=None)) == {
        "pass_rate.stdout_tail": ("Ran 2 tests in 0.001s", "Ran 3 tests in 0.001s"),
        "pass_rate.tests": (
            [{"name": "a", "message": "Ran 2 tests in 0.001s"}],
            [{"name": "a", "message": "Ran 3 tests in 0.001s"}],
        ),
        "tokens.prompt_tokens": (7, 8),
        "tokens.cached_read": (None, None),
    }
    changed = scores(1.0, "Ran 2 tests in 0.001s", 7)
    changed["composite"]["components"]["pass"] = 0
    assert differing(old, changed) == {"composite.components.pass": (1, 0)}


def test_a_fault_of_the_machine_is_no_comparison(tmp_path: Path) -> None:
    call = prepare(stored(tmp_path))
    results = tmp_path / "again"
    made = store(
        results, (record(evidence(), key=call.cell.key, outcome="infra_error", cause="disk"), evidence())
    )
    with pytest.raises(CellFault, match=r"ended as infra_error \(disk\)"):
        compare(call, made)


def comparison(tmp_path: Path, report: ReplayReport, **changes: Any) -> Comparison:
    cell = read_cell(stored(tmp_path))
    return Comparison(
        **(
            {"recorded": cell, "replayed": cell, "same_diff": True, "differences": {}, "report": report}
            | changes
        )
    )


def test_what_is_the_same_is_said(tmp_path: Path) -> None:
    found = comparison(tmp_path, ReplayReport(of="s/c", asked=2))
    assert found.same
    assert list(lines(found)) == [
        "calls: 2 recorded calls asked for again",
        "outcome: completed",
        "diff: the same",
        "scores: the same",
    ]


def test_every_difference_is_said(tmp_path: Path) -> None:
    left = ReplayReport(of="s/c", asked=1, not_asked=(1, 3))
    differs = {"pass_rate.pass": (1, 0), "pass_rate.stdout_tail": ("a\x1b[31m" + "x" * 900, None)}
    found = comparison(tmp_path, left, same_diff=False, differences=differs)
    said = list(lines(found))
    assert not found.same
    assert said[1:5] == [
        "calls not asked for: 1, 3",
        "outcome: completed",
        "diff: differs",
        "pass_rate.pass: recorded 1, now 0",
    ]
    assert said[-1] == "scores: 2 differences"
    assert max(map(len, said)) < 300
    assert "\x1b" not in "".join(said)
    for one in ({"same_diff": False}, {"differences": differs}):
        assert not comparison(
            tmp_path / str(len(one)) / next(iter(one)), ReplayReport(of="s/c", asked=1), **one
        ).same


def test_the_request_that_differs_is_all_that_is_said(tmp_path: Path) -> None:
    place = ValueDifference(path="$.messages[5].content", recorded="one\n\x1b[2Jtwo", sent=None)
    request = RequestDifference(
        index=4, how="not as recorded in call 3", recorded_index=3, places=(place,), more=1
    )
    found = comparison(tmp_path, ReplayReport(of="s/c", asked=3, difference=request))
    assert list(lines(found)) == [
        "stopped: request 4 is not as recorded in call 3",
        "$.messages[5].content",
        "  recorded: one",
        "            \ufffd[2Jtwo",
        "      sent: (not there)",
        "and 1 more place",
    ]
    data = json.loads(json.dumps(as_data(found, None)))
    assert (data["same"], data["same_diff"], data["scores"]) == (False, None, None)
    assert data["request"]["places"] == [{"path": place.path, "recorded": place.recorded, "sent": None}]
