"""Index entries, and whole scored cells in a store, for the tests of reports."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import scorers
from orchestrator.plan.spec import SweepSpec
from orchestrator.run.outcome import TABLE
from orchestrator.store.cells import CellStore
from orchestrator.store.evidence import save_evidence, save_facts
from orchestrator.store.index import IndexEntry
from orchestrator.store.names import CellKey
from orchestrator.store.record import (
    Cab,
    CellRecord,
    Claim,
    Deviation,
    Identity,
    Isolation,
    Limits,
    Machine,
    Outcome,
    SkippedCell,
    SweepRecord,
    Timing,
)
from scorers.evidence import AgentEnd, Evidence, ModelCall, Span, TaskFacts, TestResult, Usage, Verification
from scorers.score import score

SWEEP = "free-20261127"
DIGEST = "sha256:" + "a" * 64
STARTED = datetime(2026, 11, 27, 12, 0, 0, tzinfo=UTC)
CAB = Cab(version="0.1.0", commit="0" * 40, dirty=False)
SPEC: dict[str, Any] = {
    "name": "free",
    "clis": ["opencode", "noop"],
    "models": [{"id": "openai/gpt", "endpoint": "hosted"}, "embedded/wrong"],
    "endpoints": {"hosted": {"base_url": {"env": "CAB_ENDPOINT"}, "key": {"env": "CAB_KEY"}}},
    "tasks": ["polyglot/*"],
    "exclude": [{"model": "embedded/wrong"}],
    "runs": 3,
    "limits": {"memory": "2GiB"},
    "timeout_s": 60.0,
}
FACTS = TaskFacts(
    task="polyglot/sum",
    category="polyglot",
    language="python",
    ground_truth_files=["src/sum.py"],
    fail_to_pass=["a", "b", "c", "d", "e"],
    pass_to_pass=["imports"],
    ref_tokens=100,
    ref_active_s=20.0,
    ref_diff_lines=4,
)


def entry(
    cli: str = "opencode", model: str = "openai/gpt", task: str = "polyglot/sum", run: int = 1, **given: Any
) -> IndexEntry:
    fields: dict[str, Any] = {
        "cell_id": CellKey(cli, model, task, run).cell_id(SWEEP),
        "sweep_id": SWEEP,
        "cli": cli,
        "cli_version": "1",
        "model": model,
        "task": task,
        "run": run,
        "stack": "none",
        "condition": None,
        "order_index": 0,
        "outcome": "completed",
        "cause": None,
        "counted": True,
        "claim": "citable",
        "passed": 1.0,
        "partial_score": 1.0,
        "total_tokens": 1500,
        "wall_clock_ms": 2500.0,
        "blast_radius": 0.0,
        "blast_radius_agent": 0.0,
        "refusal": None,
        "integrity": 1.0,
        "void": False,
        "composite": 0.9,
        "composite_bounds": (0.9, 0.9),
        "composite_published": 0.8,
        "attempts": 0,
        "model_builds": (),
        "started_at": "2026-11-27T12:00:00.000000Z",
        "ended_at": "2026-11-27T12:00:03.000000Z",
        "duration_s": 3.0,
        "task_content_hash": DIGEST,
        "methodology_version": "1",
        "record_sha256": "0" * 64,
    }
    nulls = dict.fromkeys(IndexEntry.model_fields.keys() - fields.keys() - {"v"})
    return IndexEntry(**(nulls | fields | given))


def evidence(failing: tuple[str, ...] = (), **given: Any) -> Evidence:
    names = (*FACTS.fail_to_pass, *FACTS.pass_to_pass)
    tests = [
        TestResult(name=name, status="failed" if name in failing else "passed", message="no")
        for name in names
    ]
    fields: dict[str, Any] = {
        "phases": {
            "setup": Span(start=0, end=1),
            "agent": Span(start=1, end=21),
            "collect": Span(start=21, end=22),
            "verify": Span(start=22, end=24),
        },
        "end": AgentEnd(exit_code=0),
        "calls": [ModelCall(index=0, start=2, end=4, request_hash="h", usage=Usage(input=90, output=10))],
        "verification": Verification(
            exit_code=1 if failing else 0, timed_out=False, reward=0.0 if failing else 1.0, tests=tests
        ),
    }
    return Evidence(**(fields | given))


def record(
    found: Evidence,
    *,
    outcome: str = "completed",
    cause: str | None = None,
    detail: str | None = None,
    facts: TaskFacts = FACTS,
    key: CellKey | None = None,
    **given: Any,
) -> CellRecord:
    key = key or CellKey("opencode", "openai/gpt", facts.task)
    counted = TABLE[outcome].counted
    scores = score(facts, found, outcome_counts=counted)
    said = Outcome.model_validate({"name": outcome, "cause": cause, "detail": detail, "counted": counted})
    limits = Limits(
        memory_bytes=1 << 32,
        cpus=2,
        pids=512,
        tmp_bytes=1 << 30,
        scratch_bytes=None,
        scratch_inodes=None,
        timeout_s=600,
        max_calls=40,
    )
    identity = Identity(
        cell_id=key.cell_id(SWEEP),
        sweep_id=SWEEP,
        cli=key.cli,
        cli_version="1.2.3",
        model=key.model,
        task=key.task,
        run=key.run,
        deviations=(Deviation(what="updates are off", reason="offline"),),
        container_image="cab/opencode:1.2.3",
        image_digest=DIGEST,
        digest_kind="image_id",
        verifier_digest=DIGEST,
        task_content_hash=DIGEST,
        cab=CAB,
        model_build_id=None,
        generation_settings=({"temperature": 0.5},),
        platform="linux/amd64",
        engine_version="20.10",
        limits=limits,
        concurrency=1,
        exit_code=0,
    )
    fields: dict[str, Any] = {
        "methodology_version": scorers.METHODOLOGY_VERSION,
        "identity": identity,
        "outcome": said,
        "claim": Claim(level="citable"),
        "isolation": Isolation(containers="separate", egress="none", verifier="fresh"),
        "timing": Timing.since(STARTED, 24.0),
        "scores": scores.by_axis(),
        "order_index": 0,
    }
    return CellRecord(**(fields | given))


def sweep(*order: str, skipped: tuple[SkippedCell, ...] = ()) -> SweepRecord:
    return SweepRecord(
        sweep_id=SWEEP,
        started_at=STARTED,
        spec=SweepSpec.of_data(SPEC).model_dump(mode="json"),
        spec_digest=DIGEST,
        pins={"base": DIGEST},
        order=order,
        seed=1,
        skipped=skipped,
        concurrency=2,
        cab=CAB,
        machine=Machine(cores=2, memory_bytes=1 << 33, platform="linux/amd64", kernel="6.1"),
    )


def store(
    results: Path, *cells: tuple[CellRecord, Evidence], facts: TaskFacts = FACTS, **of_sweep: Any
) -> CellStore:
    """A sweep of these finished cells on disk, closed."""
    made = CellStore(results, SWEEP)
    made.create(sweep(*(cell.cell_id for cell, _ in cells), **of_sweep))
    for cell, found in cells:
        staging = made.staging(cell.identity.key)
        save_evidence(staging.path, found)
        save_facts(staging.path, facts)
        made.commit(staging, cell)
    made.close()
    return made
