"""Finished cells as one polars frame, read from the indexes alone."""

from __future__ import annotations

import io
from pathlib import Path

import polars as pl

from orchestrator.errors import StoreError
from orchestrator.store.column import Dtype
from orchestrator.store.columns import INDEX_COLUMNS
from orchestrator.store.files import store_errors
from orchestrator.store.index import INDEX, rebuild_mend, whole_lines

_UTC = pl.Datetime("us", "UTC")

POLARS: dict[Dtype, pl.DataType | type[pl.DataType]] = {
    "text": pl.String,
    "int": pl.Int64,
    "float": pl.Float64,
    "bool": pl.Boolean,
    "time": _UTC,
    "texts": pl.List(pl.String),
    "floats": pl.List(pl.Float64),
    "json": pl.String,
}
"""What each type of column is in a frame."""

SCHEMA = {column.name: POLARS[column.dtype] for column in INDEX_COLUMNS}
"""The columns of the index, whose units `store/columns.py` gives. Null is "not measured"."""

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
