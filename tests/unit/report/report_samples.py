"""Index entries, and whole scored cells in a store, for the tests of reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from store_samples import (
    DIGEST,
    LIMITS,
    STARTED,
    SWEEP_ID,
    cell_record,
    identity,
    index_entry,
    sweep_record,
)

import scorers
from orchestrator.plan.spec import SweepSpec
from orchestrator.run.outcome import TABLE
from orchestrator.store.cells import CellStore
from orchestrator.store.evidence import save_evidence, save_facts
from orchestrator.store.index import IndexEntry
from orchestrator.store.names import CellKey
from orchestrator.store.record import CellRecord, Claim, Deviation, Outcome, SkippedCell, SweepRecord, Timing
from scorers.evidence import AgentEnd, Evidence, ModelCall, Span, TaskFacts, TestResult, Usage, Verification
from scorers.score import score

SWEEP = SWEEP_ID
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
        "cli_version": "1",
        "total_tokens": 1500,
        "wall_clock_ms": 2500.0,
        "composite": 0.9,
        "composite_bounds": (0.9, 0.9),
        "composite_published": 0.8,
    }
    return index_entry(CellKey(cli, model, task, run), **(fields | given))


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
    who = identity(
        key,
        deviations=(Deviation(what="updates are off", reason="offline"),),
        generation_settings=({"temperature": 0.5},),
        limits=LIMITS.model_copy(update={"scratch_bytes": None, "scratch_inodes": None, "max_calls": 40}),
    )
    fields: dict[str, Any] = {
        "methodology_version": scorers.METHODOLOGY_VERSION,
        "identity": who,
        "outcome": said,
        "claim": Claim(level="citable"),
        "timing": Timing.since(STARTED, 24.0),
        "scores": scores.by_axis(),
    }
    return cell_record(key, **(fields | given))


def sweep(*order: str, skipped: tuple[SkippedCell, ...] = ()) -> SweepRecord:
    spec = SweepSpec.of_data(SPEC).model_dump(mode="json")
    return sweep_record(order=order, spec=spec, pins={"base": DIGEST}, skipped=skipped)


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
