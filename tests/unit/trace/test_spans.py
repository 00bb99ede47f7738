from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

from orchestrator.errors import CellFault, EnvironmentFault
from orchestrator.trace.anchor import Anchor
from orchestrator.trace.spans import CellTracer, Kind, add_model_calls, add_tool_calls, stage_name
from scorers.evidence import ModelCall, Span, ToolCall, Usage

CELL = "free-20261127/opencode/embedded/reference/polyglot/a#run1"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "spans.jsonl"


def read(path) -> dict[str, dict]:
    spans = [json.loads(line) for line in path.read_text().splitlines()]
    assert len({span["span_id"] for span in spans}) == len(spans)
    return {span["name"]: span for span in spans}


def test_spans_nest_as_they_were_opened(path):
    with CellTracer(CELL, path, {"cab.run": 1}) as tracer:
        with tracer.span("prepare:polyglot/a", Kind.TASK_SETUP, workdir="/workdir"):
            pass
        with tracer.span("opencode:polyglot/a", Kind.ADAPTER_RUN, timeout_s=600) as run:
            with tracer.span("opencode-run:polyglot/a", Kind.CONTAINER):
                pass
            tracer.set(run, exit_code=0, missing=None)
    spans = read(path)
    root = spans[f"cell:{CELL}"]
    assert (root["parent_id"], root["kind"]) == (None, "cell")
    assert root["attributes"] == {"cab.cell_id": CELL, "cab.run": 1}
    assert spans["prepare:polyglot/a"]["parent_id"] == root["span_id"]
    run = spans["opencode:polyglot/a"]
    assert run["parent_id"] == root["span_id"]
    assert run["attributes"] == {"timeout_s": 600, "exit_code": 0}
    assert spans["opencode-run:polyglot/a"]["parent_id"] == run["span_id"]
    assert len({span["trace_id"] for span in spans.values()}) == 1
    for span in spans.values():
        assert root["start_unix_ns"] <= span["start_unix_ns"] <= span["end_unix_ns"] <= root["end_unix_ns"]
        assert span["status"] == "unset"


def test_published_names():
    names = {kind: stage_name(kind, cli="aider", task="polyglot/a") for kind in Kind}
    assert names[Kind.TASK_SETUP] == "prepare:polyglot/a"
    assert names[Kind.ADAPTER_RUN] == "aider:polyglot/a"
    assert names[Kind.CONTAINER] == "aider-run:polyglot/a"
    assert names[Kind.CLEANUP] == "cleanup:aider"
    assert names[Kind.VERIFY] == "verify:polyglot/a"


def test_times_come_from_one_anchor(path, monkeypatch):
    anchor = Anchor(wall_ns=1_000_000_000_000, monotonic_ns=time.monotonic_ns())
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    with CellTracer(CELL, path, anchor=anchor) as tracer:
        tracer.add("late", Kind.COLLECT, 1.5, 2.25)
        tracer.add("backwards", Kind.COLLECT, 2.0, 1.0)
    spans = read(path)
    assert spans["late"]["start_unix_ns"] == 1_001_500_000_000
    assert spans["late"]["end_unix_ns"] == 1_002_250_000_000
    assert spans["backwards"]["end_unix_ns"] == spans["backwards"]["start_unix_ns"]
    assert spans[f"cell:{CELL}"]["start_unix_ns"] == 1_000_000_000_000
    assert anchor.since(anchor.origin + 2) == 2
    assert anchor.started_at.isoformat() == "1970-01-01T00:16:40+00:00"


def test_an_exception_leaves_its_type_and_no_text(path):
    with CellTracer(CELL, path) as tracer:
        with pytest.raises(ValueError, match="secret"), tracer.span("v", Kind.VERIFY):
            raise ValueError("/home/someone/secret")
        with tracer.span("next", Kind.SCORE):
            pass
    spans = read(path)
    assert (spans["v"]["status"], spans["v"]["attributes"]) == ("error", {"error.type": "ValueError"})
    assert spans["next"]["parent_id"] == spans[f"cell:{CELL}"]["span_id"]
    assert "someone" not in path.read_text()


def test_model_calls_by_their_genai_names(path):
    calls = [
        ModelCall(
            index=0,
            start=1,
            end=3,
            sent=1.25,
            connect_s=0.125,
            connection_reused=False,
            first_byte=1.5,
            first_token=2,
            last_byte=2.75,
            streamed=True,
            status=200,
            request_hash="h",
            request_model="gpt",
            reported_model="gpt-build-7",
            fingerprint="fp_1",
            settings={
                "stop": "end",
                "temperature": 0.5,
                "max_completion_tokens": 100,
                "tools": [1],
                "top_p": None,
            },
            usage=Usage(input=120, output=30, cached_read=100),
            finish_reason="stop",
            waits=[Span(start=1, end=1.25)],
        ),
        ModelCall(index=1, start=4, end=5, request_hash="i", error="rate_limited"),
    ]
    with CellTracer(CELL, path) as tracer:
        with tracer.span("container", Kind.CONTAINER) as container:
            pass
        add_model_calls(tracer, container, calls)
    spans = read(path)
    call = spans["chat gpt"]
    assert call["kind"] == "model_call"
    assert call["parent_id"] == spans["container"]["span_id"]
    assert call["end_unix_ns"] - call["start_unix_ns"] == 2_000_000_000
    assert call["attributes"] == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.stream": True,
        "gen_ai.request.stop_sequences": ["end"],
        "openai.response.system_fingerprint": "fp_1",
        "gen_ai.request.model": "gpt",
        "gen_ai.response.model": "gpt-build-7",
        "gen_ai.response.finish_reasons": ["stop"],
        "http.response.status_code": 200,
        "gen_ai.usage.input_tokens": 120,
        "gen_ai.usage.output_tokens": 30,
        "gen_ai.usage.cache_read.input_tokens": 100,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 100,
        "cab.index": 0,
        "cab.main": True,
        "cab.request_hash": "h",
        "cab.attempts": 1,
        "cab.wait_s": 0.25,
        "cab.connect_s": 0.125,
        "cab.connection_reused": False,
        "cab.first_byte_s": 0.25,
        "cab.first_token_s": 0.75,
        "cab.last_byte_s": 1.5,
        "gen_ai.response.time_to_first_chunk": 0.25,
    }
    failed = spans["chat"]
    assert (failed["status"], failed["attributes"]["error.type"]) == ("error", "rate_limited")
    assert not any("tokens" in name for name in failed["attributes"])


def test_tool_calls_and_hostile_texts(path):
    calls = [
        ToolCall(call_id="c1", name="bash", arguments="{}", start=1, end=2, result="ok"),
        ToolCall(call_id="c2", name="x" * 5000 + "\n", arguments="", start=2),
        ToolCall(call_id="\ud800", name="lone\ud800", arguments="", start=3, end=4),
    ]
    with CellTracer(CELL, path) as tracer:
        add_tool_calls(tracer, tracer.root, calls)
    spans = read(path)
    answered = spans["execute_tool bash"]
    assert (answered["kind"], answered["attributes"]["gen_ai.tool.call.id"]) == ("tool_call", "c1")
    assert answered["attributes"]["cab.result_chars"] == 2
    assert spans["execute_tool lone?"]["attributes"]["gen_ai.tool.call.id"] == "?"
    (unanswered,) = (span for span in spans.values() if span["attributes"].get("error.type") == "unanswered")
    assert len(unanswered["name"]) == len(unanswered["attributes"]["gen_ai.tool.name"]) == 1024
    assert len(path.read_text().splitlines()) == 4


def test_the_environment_neither_leaks_in_nor_drops_spans(path, monkeypatch):
    for name, value in {
        "OTEL_RESOURCE_ATTRIBUTES": "host.name=secret-host,user=secret-user",
        "OTEL_SERVICE_NAME": "secret-service",
        "OTEL_EXPERIMENTAL_RESOURCE_DETECTORS": "host,process,os",
        "OTEL_TRACES_SAMPLER": "always_off",
        "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "0",
        "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "1",
    }.items():
        monkeypatch.setenv(name, value)
    seen = []

    class Spy(SpanProcessor):
        def on_end(self, span):
            seen.append(span)

    with CellTracer(CELL, path, exporter=Spy()) as tracer, tracer.span("s", Kind.SCORE, name="long text"):
        pass
    assert read(path)["s"]["attributes"] == {"name": "long text"}
    assert [dict(span.resource.attributes) for span in seen] == [
        {"service.name": "cab", "service.version": "0.1.0"}
    ] * 2


def test_a_span_of_the_calling_program_is_no_parent(path):
    other = TracerProvider(shutdown_on_exit=False).get_tracer("other")
    with (
        other.start_as_current_span("outside"),
        CellTracer(CELL, path) as tracer,
        tracer.span("s", Kind.SCORE),
    ):
        pass
    spans = read(path)
    assert spans[f"cell:{CELL}"]["parent_id"] is None
    assert spans["s"]["parent_id"] == spans[f"cell:{CELL}"]["span_id"]


def test_a_disabled_sdk_is_told_not_suffered(path, monkeypatch):
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    with pytest.raises(EnvironmentFault, match="OTEL_SDK_DISABLED"):
        CellTracer(CELL, path)


def test_an_unwritable_file_is_a_fault_of_the_disk(tmp_path):
    with pytest.raises(CellFault, match=r"spans cannot be written") as caught:
        CellTracer(CELL, tmp_path / "missing" / "spans.jsonl")
    assert caught.value.cause == "disk"


def test_closing_twice_is_closing_once(path):
    tracer = CellTracer(CELL, path)
    tracer.close()
    tracer.close()
    assert len(path.read_text().splitlines()) == 1


def test_anchor_and_recording_need_no_sdk():
    modules = "orchestrator.trace.anchor, orchestrator.trace.recording"
    code = f"import sys, {modules}; print('opentelemetry' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"
