"""One row a cell: Parquet, CSV and JSON Lines, all with the columns of `store/columns.py`.

Their values are equal: a null stays null, a float keeps every digit. Lists and JSON values are text where a
format has no better form for them. In CSV a text that a spreadsheet would take for a formula gets one `'` in
front, and so does one that begins with `'`: taking a leading `'` off gives every text back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.export.cells import Cell
from orchestrator.export.writing import new_file
from orchestrator.store.column import Column, as_json_text, column_facts

if TYPE_CHECKING:
    import polars as pl

BATCH = 1000
"""Rows that are held as Python objects at a time."""

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""What a spreadsheet takes for the beginning of a formula, or drops to find one."""

_STRUCTURED = ("texts", "floats", "json")


def jsonl(cells: Iterable[Cell], columns: Sequence[Column]) -> Iterator[bytes]:
    """One JSON object a line, with every column in order; lists and objects are what they are."""
    for cell in cells:
        line = json.dumps(cell.row(columns), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        yield line.encode("utf-8", "replace") + b"\n"


def csv(cells: Iterable[Cell], columns: Sequence[Column]) -> Iterator[bytes]:
    """RFC 4180 in UTF-8. Null is nothing between the commas; the empty text is `""`."""
    yield ",".join(column.name for column in columns).encode() + b"\r\n"
    for cell in cells:
        row = cell.row(columns)
        fields = (_field(row[column.name], column) for column in columns)
        yield ",".join(fields).encode("utf-8", "replace") + b"\r\n"


def _field(value: Any, column: Column) -> str:
    if value is None:
        return ""
    if column.dtype in ("int", "float", "bool", "time"):
        return value if column.dtype == "time" else json.dumps(value)
    text = as_json_text(value) if column.dtype in _STRUCTURED else str(value)
    return '"' + guarded(text).replace('"', '""') + '"'


def guarded(text: str) -> str:
    """A text that no spreadsheet computes."""
    return f"'{text}" if text.startswith((*FORMULA, "'")) else text


def unguarded(text: str) -> str:
    """The inverse of `guarded`."""
    return text.removeprefix("'")


def facts(columns: Sequence[Column]) -> bytes:
    """What each column is, for a file beside a table."""
    return json.dumps(column_facts(columns), ensure_ascii=False, indent=1).encode() + b"\n"


def frame(cells: Iterable[Cell], columns: Sequence[Column]) -> pl.DataFrame:
    """The same as a polars frame, in columns from batch to batch."""
    import polars as pl

    from orchestrator.store.frame import POLARS

    schema = {column.name: POLARS[column.dtype] for column in columns}
    frames: list[pl.DataFrame] = []
    batch: list[list[Any]] = []
    for cell in cells:
        row = cell.row(columns)
        batch.append([_value(row[column.name], column) for column in columns])
        if len(batch) == BATCH:
            frames.append(pl.DataFrame(batch, schema=schema, orient="row"))
            batch = []
    frames.append(pl.DataFrame(batch, schema=schema, orient="row"))
    return pl.concat(frames, rechunk=True)


def _value(value: Any, column: Column) -> Any:
    if value is None:
        return None
    if column.dtype == "time":
        return datetime.fromisoformat(value)
    return as_json_text(value) if column.dtype == "json" else value


def write_parquet(path: Path, cells: Iterable[Cell], columns: Sequence[Column]) -> int:
    """Write one Parquet file, whose metadata `cab.columns` says of each column what it is; its rows."""
    table = frame(cells, columns)
    with new_file(path) as temporary:
        table.write_parquet(temporary, metadata={"cab.columns": json.dumps(column_facts(columns))})
    return table.height
