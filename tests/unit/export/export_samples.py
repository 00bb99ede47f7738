"""A results directory with a cell of each kind, as a sweep would have left it."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import store_samples
from store_samples import DIGEST, LIMITS, cell_record, sweep_record

from orchestrator.store.cells import CellStore
from orchestrator.store.evidence import save_evidence, save_facts
from orchestrator.store.names import CellKey
from orchestrator.store.preflight import PairResult, PreflightRecord, write_preflight
from orchestrator.store.record import (
    Attempt,
    CellRecord,
    Claim,
    HostTried,
    Identity,
    Outcome,
    SkippedCell,
    Timing,
)
from orchestrator.trace.anchor import Anchor
from orchestrator.trace.spans import CellTracer, Kind, add_model_calls, add_tool_calls
from scorers.evidence import (
    AgentEnd,
    Evidence,
    ModelCall,
    Price,
    Rates,
    Span,
    TaskFacts,
    TestResult,
    ToolCall,
    Usage,
    Verification,
)
from scorers.score import score

SWEEP = "mixed-20261127"
STARTED = datetime(2026, 11, 27, 12, 0, 0, 250_000, tzinfo=UTC)
HOSTILE = (
    *("=HYPERLINK(1)", "+1", "-1", "@SUM(1)", "\tx", "'quoted", 'say "hi", then\r\nleave', "a,b;c"),
    *("<failure/>&amp;]]>", "\x1b[31mred", "naïve — 日本語 🙂", "", "null", "NaN", "{not json", "[1]"),
)
SOLVED = CellKey("opencode", "acme/large", "polyglot/t0")
FAILED = CellKey("aider", "embedded/reference", "polyglot/t0")
BROKEN = CellKey("aider", "acme/large", "integrity/t1", stack="extra", condition="slow")
SKIPPED = CellKey("amp", "acme/large", "polyglot/t0")
UNFINISHED = CellKey("opencode", "acme/large", "polyglot/t0", run=2)
INCOMPATIBLE = CellKey("goose", "acme/large", "polyglot/t0")
FACTS = TaskFacts(
    task="polyglot/t0",
    category="polyglot",
    language="rust",
    fail_to_pass=["a", "b"],
    ref_tokens=1000,
    ref_active_s=60.0,
    ref_diff_lines=4,
)


def identity(key: CellKey, **changes: Any) -> Identity:
    fields: dict[str, Any] = {
        **{"model_build_id": key.model, "platform": "linux/x86_64", "concurrency": 2},
        "generation_settings": ({"temperature": 0.1, "stop": ["=x"]},),
        "limits": LIMITS.model_copy(update={"cpus": 1.5}),
    }
    return store_samples.identity(key, sweep_id=SWEEP, **(fields | changes))


def record(key: CellKey, evidence: Evidence, *, order_index: int, **changes: Any) -> CellRecord:
    counted = changes.get("outcome", Outcome(name="completed", counted=True)).counted
    fields: dict[str, Any] = {
        "identity": identity(key),
        "claim": Claim(level="provisional", reasons=("one run",)),
        "timing": Timing.since(STARTED, 12.125),
        "scores": score(FACTS, evidence, outcome_counts=counted).by_axis(),
    }
    return cell_record(key, order_index=order_index, **(fields | changes))


CALLS = [
    ModelCall(
        **{"index": 0, "start": 1.0, "end": 2.0, "first_token": 1.5, "status": 200, "streamed": False},
        **{"request_hash": "0" * 64, "reported_model": "acme/large-2", "finish_reason": "tool_calls"},
        usage=Usage(input=100, output=20, cached_read=60, reasoning=5),
    ),
    ModelCall(index=1, start=2.1, end=2.2, main=False, request_hash="1" * 64, usage=Usage(input=7, output=1)),
    ModelCall(
        **{"index": 2, "start": 3.0, "end": 4.0, "request_hash": "2" * 64, "finish_reason": "stop"},
        usage=Usage(input=150, output=10, cached_read=100, reasoning=0),
    ),
]
TOOLS = [
    ToolCall(call_id="c1", name="bash", arguments='{"command": "ls"}', start=2.0, end=3.0, result="a.rs"),
    ToolCall(call_id="c2", name="odd", arguments="no json", start=2.0),
]


def evidence(*, passed: bool = True, calls: list[ModelCall] = CALLS) -> Evidence:
    states = [TestResult(name="a", status="passed"), TestResult(name="b", status="passed")]
    if not passed:
        states[1] = TestResult(name=HOSTILE[8], status="failed", message=HOSTILE[9])
    return Evidence(
        phases={
            **{"setup": Span(start=0, end=0.5), "agent": Span(start=0.5, end=5)},
            **{
                "collect": Span(start=5, end=6),
                "verify": Span(start=6, end=9),
                "score": Span(start=9, end=9.5),
            },
        },
        end=AgentEnd(exit_code=0),
        calls=calls,
        tool_calls=TOOLS if calls else [],
        verification=Verification(exit_code=0, timed_out=False, reward=float(passed), tests=states),
        price=Price(rates=[Rates(input=3, output=15, cached_read=0.3)], source="test"),
    )


def bodies() -> list[dict[str, Any]]:
    """What went over the wire of the solved cell: chat completions."""
    opening = [
        {"role": "system", "content": "You are a coder."},
        {"role": "user", "content": [{"type": "text", "text": "Mend it."}]},
    ]
    asked = [
        {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in TOOLS
    ]
    said = {"role": "assistant", "content": "I look.", "tool_calls": asked}
    then = [*opening, said, {"role": "tool", "tool_call_id": "c1", "content": "a.rs"}]
    tools = [{"type": "function", "function": {"name": "bash"}}]
    ask = {"model": "acme/large", "tools": tools}
    done = {"role": "assistant", "content": "Done."}
    return [
        {"index": 0, "request": {**ask, "messages": opening}, "response": {"choices": [{"message": said}]}},
        {"index": 1, "request": {"messages": [{"role": "user", "content": "title?"}]}, "response": {}},
        {"index": 2, "request": {**ask, "messages": then}, "response": {"choices": [{"message": done}]}},
    ]


def write_files(directory: Path, of: Evidence, cell: CellRecord) -> None:
    """What a cell leaves beside its record."""
    save_evidence(directory, of)
    save_facts(directory, FACTS)
    with (directory / "wire.jsonl.gz").open("wb") as file:
        for body in bodies() if of.calls else []:
            file.write(gzip.compress(json.dumps(body).encode() + b"\n", mtime=0))
    anchor = Anchor.now()
    with CellTracer(cell.cell_id, directory / "spans.jsonl", {"cab.run": 1}, anchor=anchor) as tracer:
        with tracer.span("run", Kind.CONTAINER) as span:
            pass
        add_model_calls(tracer, span, of.calls)
        add_tool_calls(tracer, span, of.tool_calls)
        tracer.add("verify", Kind.VERIFY, 6, 9, error="CellFault")


def make_results(results: Path) -> Path:
    """A sweep with a solved, a failed and a broken cell, one that was skipped and one that did not run."""
    none = evidence(passed=False, calls=[])
    hostile = identity(FAILED, machine_load=0.1 + 0.2)
    texts = tuple(HOSTILE)
    cells = [
        (SOLVED, evidence(), record(SOLVED, evidence(), order_index=0)),
        (
            FAILED,
            none,
            record(
                FAILED,
                none,
                order_index=2,
                identity=hostile,
                claim=Claim(level="pipeline_only", reasons=texts),
                outcome=Outcome(name="agent_crashed", detail="".join(HOSTILE), counted=True),
                hosts_tried=tuple(HostTried(name=name, first_s=1.0, count=1) for name in ("=cmd", "a.test")),
            ),
        ),
        (
            BROKEN,
            none,
            record(
                BROKEN,
                none,
                order_index=1,
                outcome=Outcome(name="infra_error", cause="rate_limited", detail=HOSTILE[0], counted=False),
                attempts=(
                    Attempt(
                        outcome=Outcome(name="infra_error", cause="engine", counted=False),
                        timing=Timing.since(STARTED, 1),
                        input_tokens=5,
                        output_tokens=None,
                    ),
                ),
            ),
        ),
    ]
    sweep = sweep_record(
        *(SOLVED, BROKEN, FAILED, UNFINISHED, INCOMPATIBLE),
        sweep_id=SWEEP,
        started_at=STARTED,
        spec={"name": "mixed", "models": {"acme/large": {"base_url": "https://10.1.2.3/v1"}}},
        pins={"opencode": DIGEST},
        skipped=(SkippedCell(cell_id=SKIPPED.cell_id(SWEEP), reason=HOSTILE[8]),),
    )
    with CellStore(results, SWEEP) as store:
        store.create(sweep)
        for key, found, cell in cells:
            staging = store.staging(key)
            write_files(staging.path, found, cell)
            store.commit(staging, cell)
    refused = PairResult(
        **{"cli": INCOMPATIBLE.cli, "model": INCOMPATIBLE.model, "endpoint": None, "key": DIGEST},
        **{"verdict": "incompatible", "cause": "no_edit", "detail": "it edits nothing", "tries": 3},
        **{"tokens": 9, "known_tokens": 9, "cost_usd": None, "duration_s": 1.0, "at": STARTED},
    )
    write_preflight(results / SWEEP, PreflightRecord(pairs=(refused,)))
    return results
