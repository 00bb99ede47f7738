"""The record of a cell says what ran, and claims of it no more than was seen."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from orchestrator.adapter import load_adapter
from orchestrator.gateway.settings import GenerationSettings
from orchestrator.plan.expand import PlannedCell
from orchestrator.plan.plugin import Manifest, Plugin, PluginFile
from orchestrator.plan.task import load_task
from orchestrator.run.bench import Bench
from orchestrator.run.cell import CellResult
from orchestrator.run.outcome import Outcome
from orchestrator.run.provenance import Provenance
from orchestrator.run.records import attempt_of, record_of
from orchestrator.sandbox.contract import Limits
from orchestrator.store.names import CellKey
from orchestrator.store.record import CellRecord, parse, to_json
from scorers.evidence import AgentEnd, Evidence, ModelCall, Usage
from scorers.score import score

ROOT = Path(__file__).resolve().parents[3]
TASK = load_task(ROOT / "tasks", "polyglot/python-reverse-string")
ADAPTER = load_adapter(ROOT / "images", "opencode")
PIN, BASE = "sha256:" + "a" * 64, "sha256:" + "b" * 64
KEY = CellKey("opencode", "openai/gpt", TASK.name, 2)
ENDED = AgentEnd(exit_code=0)
CELL = PlannedCell(KEY.cell_id("s-1"), KEY, "hosted", 7)


@pytest.fixture
def bench():
    return Bench(
        sweep_id="s-1",
        grader=SimpleNamespace(limits=Limits(), base=BASE),
        gateway=None,
        pins={"opencode": PIN, "base": BASE},
        tags={"opencode": "cab/opencode:1.2", "base": "cab/base:1"},
        adapters={"opencode": ADAPTER},
        adapter_digests={"opencode": PIN},
        tasks={TASK.name: TASK},
        provenance=Provenance("0.1.0", "0" * 40, False, "linux/amd64", "6.1", 2, 1 << 33),
        engine_version="20.10",
        concurrency=3,
    )


def call(index, model="gpt-1", **settings):
    return ModelCall(
        index=index,
        start=index,
        end=index + 1,
        request_hash="h",
        reported_model=model,
        settings=settings,
        usage=Usage(input=10, output=5),
    )


def result(*calls, outcome=None, end=ENDED, bounded=True):
    found = Evidence(calls=list(calls), end=end)
    return CellResult(
        outcome=outcome or Outcome("completed"),
        facts=TASK.facts(),
        evidence=found,
        scores=score(TASK.facts(), found, outcome_counts=True),
        started_at=datetime(2026, 11, 27, tzinfo=UTC),
        duration_s=4.0,
        load=0.5,
        bounded=bounded,
    )


def test_it_says_what_ran(bench):
    record = record_of(bench, CELL, result(call(0)), [])
    identity = record.identity
    assert (identity.cell_id, identity.key, record.order_index) == (CELL.cell_id, KEY, 7)
    assert (identity.image_digest, identity.verifier_digest) == (PIN, BASE)
    assert (identity.cli_version, identity.task_content_hash) == (ADAPTER.version, TASK.content_hash)
    assert [item.what for item in identity.deviations] == [item.what for item in ADAPTER.deviations]
    assert identity.container_image == "cab/opencode:1.2"
    assert (identity.concurrency, identity.machine_load, identity.exit_code) == (3, 0.5, 0)
    assert record.recording == "pty"
    assert parse(CellRecord, to_json(record), place="") == record


def test_of_an_mcp_server_it_says_whether_its_tools_reached_the_model(bench):
    servers = [Plugin(name, Manifest(kind="mcp", command=("true",)), {}, PIN) for name in ("facts", "broken")]
    rules = Plugin("careful", Manifest(kind="rules", rules="r.md"), {"r.md": PluginFile(b"", False)}, PIN)
    bench = replace(bench, stacks={"s": (*servers, rules)})
    cell = replace(CELL, key=replace(KEY, stack="s"), cell_id=replace(KEY, stack="s").cell_id("s-1"))

    def said(*calls, cli="opencode"):
        ended = replace(result(*calls), offered=frozenset({"facts"}))
        adapters = {"opencode": load_adapter(ROOT / "images", cli)}
        found = record_of(replace(bench, adapters=adapters), cell, ended, []).identity.plugins
        return {plugin.name: plugin.offered for plugin in found}

    assert said(call(0)) == {"facts": True, "broken": False, "careful": None}
    assert said() == {"facts": None, "broken": None, "careful": None}
    assert said(call(0), cli="aider") == {"facts": None, "broken": None, "careful": None}
    assert said(call(0), cli="droid") == {"facts": True, "broken": None, "careful": None}


def test_the_model_is_what_the_endpoint_named_and_only_if_it_named_one(bench):
    def build_id(*calls):
        return record_of(bench, CELL, result(*calls), []).identity.model_build_id

    assert build_id(call(0), call(1)) == "gpt-1"
    assert build_id(call(0), call(1, None)) == "gpt-1"
    assert build_id(call(0), call(1, "gpt-2")) is None
    assert build_id() is None


def test_distinct_settings_in_order_of_first_use(bench):
    calls = (call(0, temperature=1), call(1), call(2, temperature=1))
    record = record_of(bench, CELL, result(*calls), [])
    assert record.identity.generation_settings == ({"temperature": 1}, {})


def test_limits_that_were_not_in_force_are_none(bench):
    assert record_of(bench, CELL, result(bounded=True), []).identity.limits.scratch_bytes == 4 << 30
    limits = record_of(bench, CELL, result(bounded=False), []).identity.limits
    assert (limits.scratch_bytes, limits.scratch_inodes) == (None, None)
    assert (limits.timeout_s, limits.max_calls) == (TASK.agent_timeout_s, TASK.max_turns)


def test_an_agent_that_never_ran_has_no_exit_code(bench):
    assert record_of(bench, CELL, result(end=None), []).identity.exit_code is None


def test_a_try_before_keeps_its_cost(bench):
    outcome = Outcome("infra_error", "rate_limited", "429")
    attempt = attempt_of(result(call(0), outcome=outcome))
    assert (attempt.outcome.name, attempt.outcome.cause, attempt.outcome.counted) == (
        "infra_error",
        "rate_limited",
        False,
    )
    assert (attempt.input_tokens, attempt.output_tokens) == (10, 5)
    assert record_of(bench, CELL, result(call(0)), [attempt]).attempts == (attempt,)


def test_the_distinct_builds_that_answered(bench):
    def builds(*calls):
        found = [
            call(number, model).model_copy(update={"fingerprint": mark})
            for number, (model, mark) in enumerate(calls)
        ]
        return list(map(str, record_of(bench, CELL, result(*found), []).identity.model_builds))

    assert builds() == []
    assert builds((None, None)) == []
    assert builds(("gpt-1", None), ("gpt-1", None)) == ["gpt-1"]
    assert builds(("gpt-1", "fp_1"), ("gpt-1", None), ("gpt-1", "fp_2")) == ["gpt-1 fp_1", "gpt-1 fp_2"]
    assert builds(("gpt-2", None), ("gpt-1", "fp_1")) == ["gpt-2", "gpt-1 fp_1"]


def test_what_the_sweep_set_and_what_the_cli_had_asked_for(bench):
    settings = {KEY.model: GenerationSettings(temperature=0.0, max_output_tokens=64)}
    own = {"temperature": 0.9, "max_tokens": None}
    calls = [call(number).model_copy(update={"settings_before": own}) for number in (0, 1)]
    identity = record_of(replace(bench, settings=settings), CELL, result(*calls, call(2)), []).identity
    assert identity.settings_set == {"temperature": 0.0, "max_output_tokens": 64}
    assert identity.settings_overridden == ({"temperature": 0.9},)
    identity = record_of(bench, CELL, result(call(0)), []).identity
    assert (identity.settings_set, identity.settings_overridden) == ({}, ())
