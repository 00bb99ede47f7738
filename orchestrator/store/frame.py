"""Finished cells as one polars frame, read from the indexes alone."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl

from orchestrator.errors import StoreError
from orchestrator.store.files import store_errors
from orchestrator.store.index import INDEX, rebuild_mend, whole_lines

_UTC = pl.Datetime("us", "UTC")

SCHEMA: dict[str, pl.DataType | type[pl.DataType]] = {
    "cell_id": pl.String,
    "sweep_id": pl.String,
    "cli": pl.String,
    "cli_version": pl.String,
    "model": pl.String,
    "task": pl.String,
    "run": pl.Int64,
    "stack": pl.String,
    "condition": pl.String,
    "order_index": pl.Int64,
    "outcome": pl.String,
    "cause": pl.String,
    "counted": pl.Boolean,
    "claim": pl.String,
    "passed": pl.Float64,
    "partial_score": pl.Float64,
    "prompt_tokens": pl.Int64,
    "completion_tokens": pl.Int64,
    "total_tokens": pl.Int64,
    "model_calls": pl.Int64,
    "cost_usd": pl.Float64,
    "wall_clock_ms": pl.Float64,
    "container_active_ms": pl.Float64,
    "model_call_ms": pl.Float64,
    "blast_radius": pl.Float64,
    "blast_radius_agent": pl.Float64,
    "refusal": pl.Float64,
    "integrity": pl.Float64,
    "void": pl.Boolean,
    "composite": pl.Float64,
    "composite_bounds": pl.List(pl.Float64),
    "composite_published": pl.Float64,
    "attempts": pl.Int64,
    "started_at": _UTC,
    "ended_at": _UTC,
    "duration_s": pl.Float64,
    "image_digest": pl.String,
    "task_content_hash": pl.String,
    "model_build_id": pl.String,
    "model_builds": pl.List(pl.String),
    "methodology_version": pl.String,
    "record_sha256": pl.String,
}
"""The columns: those of `IndexEntry`, whose docstring gives the units. Null is "not measured"."""

_STORED = {name: pl.String if dtype == _UTC else dtype for name, dtype in SCHEMA.items()}


def load_frame(results: Path | list[Path]) -> pl.DataFrame:
    """One row for each finished cell below `results`: sweep directories, or directories of sweeps.

    Rows come in the order of the paths, sweeps by name, cells as they finished. Raises StoreError where a
    path is neither, or an index is damaged.
    """
    roots = [results] if isinstance(results, Path) else results
    frames = [_sweep_frame(index) for root in roots for index in _indexes(root)]
    return pl.concat(frames) if frames else pl.DataFrame(schema=SCHEMA)


def _indexes(root: Path) -> list[Path]:
    if (root / INDEX).is_file():
        return [root / INDEX]
    if not root.is_dir():
        raise StoreError("there is no such directory", place=str(root), mend="give a results directory")
    return sorted(root.glob(f"*/{INDEX}"))


def _sweep_frame(index: Path) -> pl.DataFrame:
    with store_errors(index):
        raw = whole_lines(index)
    if not raw:
        return pl.DataFrame(schema=SCHEMA)
    try:
        lines = pl.read_ndjson(io.BytesIO(raw), schema=_STORED)
    except pl.exceptions.PolarsError as error:
        raise StoreError(
            f"is damaged: {error}".splitlines()[0],
            place=str(index),
            mend=rebuild_mend(index),
        ) from None
    times = [
        pl.col(name).str.to_datetime("%+", time_unit="us", time_zone="UTC")
        for name in ("started_at", "ended_at")
    ]
    return lines.with_columns(times).unique("cell_id", keep="last", maintain_order=True)
