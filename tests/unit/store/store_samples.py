"""Records to test with, and no more in them than the tests look at: what samples of all tests are made of."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from orchestrator.store.index import IndexEntry
from orchestrator.store.names import CellKey
from orchestrator.store.record import (
    Cab,
    CellRecord,
    Claim,
    Identity,
    Isolation,
    Limits,
    Machine,
    Outcome,
    SweepRecord,
    Timing,
)

SWEEP_ID = "free-20261127"
STARTED = datetime(2026, 11, 27, 12, 0, 0, tzinfo=UTC)
DIGEST = "sha256:" + "a" * 64
CAB = Cab(version="0.1.0", commit="0" * 40, dirty=False)
LIMITS = Limits(
    memory_bytes=1 << 32,
    cpus=2,
    pids=512,
    tmp_bytes=1 << 30,
    scratch_bytes=1 << 32,
    scratch_inodes=1000,
    timeout_s=600,
)
SCORES: dict[str, dict[str, Any]] = {
    "pass_rate": {"pass": 1, "exit_code": 0, "timed_out": False, "partial_score": None},
    "tokens": {"prompt_tokens": 120, "completion_tokens": 30, "total_tokens": 150, "model_calls": 4},
    "latency": {"wall_clock_ms": 2500.5, "container_active_ms": 2000, "model_call_ms": None},
    "composite": {"composite": 0.91, "formula": "cab-1", "bounds": [0.91, 0.91]},
    "composite_published": {"composite": 0.93, "formula": "published-0.1"},
}


def identity(key: CellKey, *, sweep_id: str = SWEEP_ID, **changes: Any) -> Identity:
    fields: dict[str, Any] = {
        "cell_id": key.cell_id(sweep_id),
        "sweep_id": sweep_id,
        "cli": key.cli,
        "cli_version": "1.2.3",
        "model": key.model,
        "task": key.task,
        "run": key.run,
        "stack": key.stack,
        "condition": key.condition,
        "container_image": f"cab/{key.cli}:1.2.3",
        "image_digest": DIGEST,
        "digest_kind": "image_id",
        "verifier_digest": DIGEST,
        "task_content_hash": DIGEST,
        "cab": CAB,
        "model_build_id": None,
        "platform": "linux/amd64",
        "engine_version": "20.10.24",
        "limits": LIMITS,
        "concurrency": 1,
        "exit_code": 0,
    }
    return Identity(**(fields | changes))


def cell_record(
    key: CellKey, *, sweep_id: str = SWEEP_ID, order_index: int = 0, **changes: Any
) -> CellRecord:
    """A check of the pipeline that passed, unless told otherwise."""
    fields: dict[str, Any] = {
        "methodology_version": "1",
        "identity": identity(key, sweep_id=sweep_id),
        "outcome": Outcome(name="completed", counted=True),
        "claim": Claim(level="pipeline_only", reasons=("scripted model",)),
        "isolation": Isolation(containers="separate", egress="none", verifier="fresh"),
        "timing": Timing.since(STARTED, 3.25),
        "scores": SCORES,
        "order_index": order_index,
    }
    return CellRecord(**(fields | changes))


def sweep_record(*keys: CellKey, sweep_id: str = SWEEP_ID, **changes: Any) -> SweepRecord:
    """A sweep of these cells, or of those of `order`."""
    fields: dict[str, Any] = {
        "sweep_id": sweep_id,
        "started_at": STARTED,
        "spec": {"name": "free"},
        "spec_digest": DIGEST,
        "pins": {"cab/opencode": DIGEST},
        "order": tuple(key.cell_id(sweep_id) for key in keys),
        "seed": 1,
        "concurrency": 2,
        "cab": CAB,
        "machine": Machine(cores=2, memory_bytes=1 << 33, platform="linux/amd64", kernel="6.1"),
    }
    return SweepRecord(**(fields | changes))


def index_entry(key: CellKey, *, sweep_id: str = SWEEP_ID, **changes: Any) -> IndexEntry:
    """A finished, citable cell that passed, unless told otherwise. What is not told of is null."""
    fields: dict[str, Any] = {
        "cell_id": key.cell_id(sweep_id),
        "sweep_id": sweep_id,
        "cli": key.cli,
        "cli_version": "1.2.3",
        "model": key.model,
        "task": key.task,
        "run": key.run,
        "stack": key.stack,
        "condition": key.condition,
        "order_index": 0,
        "outcome": "completed",
        "counted": True,
        "claim": "citable",
        "passed": 1.0,
        "partial_score": 1.0,
        "blast_radius": 0.0,
        "blast_radius_agent": 0.0,
        "integrity": 1.0,
        "void": False,
        "integrity_findings": 0,
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
    return IndexEntry(**(nulls | fields | changes))
