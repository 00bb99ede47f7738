"""Sweeps without an engine or a gateway, for tests of preflight."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from orchestrator.gateway.local.registry import LocalModel
from orchestrator.plan.spec import load_spec
from orchestrator.run.bench import Bench
from orchestrator.run.preflight.pairs import Pair
from orchestrator.run.start import Matrix, Options, Ready, plan_of, sweep_record
from orchestrator.store.cells import CellStore
from orchestrator.store.preflight import (
    PairResult,
    Verdict,
)

PINS = {name: f"sha256:{number:064x}" for number, name in enumerate(("base", "opencode", "aider", "noop"))}
LOCAL_MODEL = LocalModel(
    name="m", path="/m", sha256="0" * 64, size=1, title=None, architecture="a", context_length=None
)
NOW = datetime(2026, 11, 28, tzinfo=UTC)
SPEC = """\
name: mine
clis: [opencode, aider, noop]
models: [embedded/reference, {id: a, endpoint: up}, {id: v/b, endpoint: up}]
endpoints: {up: {base_url: "http://127.0.0.1:9/v1"}}
tasks: [polyglot/python-reverse-string]
"""


def matrix_of(folder: Path, text: str = SPEC, **options: Any) -> Matrix:
    path = folder / "mine.yaml"
    path.write_text(text)
    return plan_of(load_spec(path), "mine-1", Options(**options))


def ready_of(folder: Path, text: str = SPEC, *, results: Path | None = None, **options: Any) -> Ready:
    matrix = matrix_of(folder, text, **options)
    store = CellStore(results or folder / "results", "mine-1")
    with store:
        store.create(sweep_record(matrix, f"sha256:{0:064x}", PINS))
    return Ready(matrix, store, matrix.plan.cells, matrix.plan.cells, None)


def result_of(pair: Pair, verdict: Verdict = "compatible", **changes: Any) -> PairResult:
    cell = pair.cell
    values: dict[str, Any] = {
        "cli": cell.key.cli,
        "model": cell.key.model,
        "endpoint": cell.endpoint,
        "key": pair.key,
        "verdict": verdict,
        "cause": None if verdict == "compatible" else "no_edit",
        "tries": 1,
        "tokens": 9,
        "known_tokens": 9,
        "cost_usd": 0.5,
        "duration_s": 1.0,
        "at": NOW,
    }
    return PairResult(**(values | changes))


def bench_of(matrix: Matrix) -> Bench:
    """What needs neither engine nor gateway."""
    nothing = cast(Any, None)
    return Bench(
        sweep_id="mine-1",
        grader=nothing,
        gateway=nothing,
        pins=PINS,
        tags={},
        adapters=matrix.adapters,
        adapter_digests={},
        tasks={},
        provenance=nothing,
        engine_version="",
        concurrency=1,
    )


def names(pairs: list[Pair]) -> set[tuple[str, str]]:
    return {pair.name for pair in pairs}
