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

COLUMNS_KEY = "cab.columns"
"""The key of a Parquet file's metadata that says what its columns are."""

_STRUCTURED = ("texts", "floats", "json")


Row = dict[str, Any]
"""A cell's values by the names of columns, as `Cell.row` gives them."""


def rows_of(cells: Iterable[Cell], columns: Sequence[Column]) -> Iterator[Row]:
    """One row a cell; one is in memory at a time."""
    return (cell.row(columns) for cell in cells)


def json_line(row: Row) -> bytes:
    """A row as one line of JSON, with every column in order; lists and objects are what they are."""
    line = json.dumps(row, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return line.encode("utf-8", "replace") + b"\n"


def jsonl(rows: Iterable[Row], columns: Sequence[Column]) -> Iterator[bytes]:
    """JSON Lines. The columns are the rows' own."""
    del columns
    return map(json_line, rows)


def csv(rows: Iterable[Row], columns: Sequence[Column]) -> Iterator[bytes]:
    """RFC 4180 in UTF-8. Null is nothing between the commas; the empty text is `""`."""
    yield ",".join(column.name for column in columns).encode() + b"\r\n"
    for row in rows:
        fields = (_field(row[column.name], column) for column in columns)
        yield ",".join(fields).encode("utf-8", "replace") + b"\r\n"


def _field(value: Any, column: Column) -> str:
    if value is None:
        return ""
    if column.dtype in ("int", "float", "bool", "time"):
        return ("false", "true")[value] if isinstance(value, bool) else str(value)
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


def frame(rows: Iterable[Row], columns: Sequence[Column]) -> pl.DataFrame:
    """The same as a polars frame, in columns from batch to batch."""
    import polars as pl

    from orchestrator.store.frame import POLARS

    schema = {column.name: POLARS[column.dtype] for column in columns}
    frames: list[pl.DataFrame] = []
    batch: list[list[Any]] = []
    for row in rows:
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
    return _encodable(as_json_text(value) if column.dtype == "json" else value)


def _encodable(value: Any) -> Any:
    """A value whose texts are UTF-8, as in the other formats: half a character that JSON can hold is `?`."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "replace").decode()
    return [_encodable(one) for one in value] if isinstance(value, list | tuple) else value


def write_parquet(path: Path, rows: Iterable[Row], columns: Sequence[Column]) -> int:
    """Write one Parquet file, whose metadata `cab.columns` says of each column what it is; how many rows."""
    table = frame(rows, columns)
    with new_file(path) as temporary:
        table.write_parquet(temporary, metadata={COLUMNS_KEY: json.dumps(column_facts(columns))})
    return table.height
