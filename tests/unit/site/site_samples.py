"""Small stores of results, for the tests of the site."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

from store_samples import DIGEST, STARTED, index_entry, sweep_record

from orchestrator.site.folder import SEEN
from orchestrator.store.cells import SWEEP, CellStore
from orchestrator.store.index import INDEX, IndexEntry
from orchestrator.store.names import NO_STACK, CellKey
from orchestrator.store.record import to_json


def entry(sweep_id: str, key: CellKey, *, at: int = 0, **changes: Any) -> IndexEntry:
    """A finished, citable cell that passed, unless told otherwise."""
    began = STARTED + timedelta(seconds=60 * at)
    fields: dict[str, Any] = {
        "order_index": at,
        "prompt_tokens": 900,
        "completion_tokens": 100,
        "total_tokens": 1000,
        "model_calls": 4,
        "cost_usd": 0.02,
        "wall_clock_ms": 20000.0,
        "container_active_ms": 19000.0,
        "model_call_ms": 12000.0,
        "composite": 0.8,
        "composite_bounds": (0.8, 0.8),
        "composite_published": 0.9,
        "started_at": began.isoformat().replace("+00:00", "Z"),
        "ended_at": (began + timedelta(seconds=20)).isoformat().replace("+00:00", "Z"),
        "duration_s": 20.0,
        "image_digest": DIGEST,
        "model_build_id": "build-1",
        "record_sha256": f"{at:064x}",
    }
    return index_entry(key, sweep_id=sweep_id, **(fields | changes))


def results(folder: Path, sweep_id: str, entries: Iterable[IndexEntry]) -> Path:
    """A results directory that holds one more sweep of these cells, without their evidence."""
    root = folder / sweep_id
    root.mkdir(parents=True)
    cells = list(entries)
    order = tuple(cell.cell_id for cell in cells)
    record = sweep_record(sweep_id=sweep_id, spec={"name": sweep_id}, pins={}, order=order)
    (root / SWEEP).write_bytes(to_json(record))
    (root / INDEX).write_bytes(b"".join(cell.line() for cell in cells))
    assert CellStore(folder, sweep_id).sweep() == record
    return folder


def matrix(
    sweep_id: str,
    clis: Iterable[str],
    models: Iterable[str],
    tasks: Iterable[str],
    *,
    runs: int = 1,
    stack: str = NO_STACK,
    **changes: Any,
) -> list[IndexEntry]:
    """One cell for each CLI × model × task × run."""
    keys = [
        CellKey(cli, model, task, run + 1, stack)
        for cli in clis
        for model in models
        for task in tasks
        for run in range(runs)
    ]
    return [entry(sweep_id, key, at=at, **changes) for at, key in enumerate(keys)]


TASKS = ("polyglot/sum", "polyglot/sort", "mutations/swap")
CLIS = ("codex", "opencode")
MODELS = ("openai/gpt:1", "qwen/q3")


def small(folder: Path) -> Path:
    """Two CLIs with a model on two tasks, and a scripted model beside them."""
    real = matrix("free-1", CLIS, MODELS[:1], TASKS[1:])
    scripted = matrix(
        "free-1", CLIS[:1], ("embedded/reference",), TASKS[:1], claim="pipeline_only", cost_usd=None
    )
    return results(folder, "free-1", [*real, *scripted])


def files(out: Path) -> dict[str, bytes]:
    """All of a site, by path; what its last build looked at is no part of it."""
    paths = (path for path in out.rglob("*") if path.is_file() and path.name != SEEN)
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in paths}
