"""docs/columns.md, and the list of columns in a published dataset."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.store.column import DTYPES, Column
from orchestrator.store.columns import INDEX_COLUMNS, LEFT_OUT

_OPENING = """# Columns

One row is one finished cell. A null is "not measured"; `null_reasons` says why, by axis and key. Sources are
places in the cell's `cell.json`; those that begin with `task.` are in its `task.json`. A unit of "share" is a
number from 0 to 1.
"""


def markdown(columns: Sequence[Column]) -> str:
    """The definitions as a page."""
    indexed = {column.name for column in INDEX_COLUMNS}
    parts = [
        ("In the index, and in every export", [one for one in columns if one.name in indexed]),
        ("In exports alone", [one for one in columns if one.name not in indexed]),
    ]
    lines = [_OPENING]
    for title, part in parts:
        lines += [
            f"## {title}",
            "",
            "| column | type | unit | source | what it says |",
            "|---|---|---|---|---|",
        ]
        lines += [_row(column) for column in part]
        lines += [""]
    lines += ["## Types", "", "| type | is |", "|---|---|"]
    lines += [f"| {name} | {about} |" for name, about in DTYPES.items()]
    lines += ["", "## What of a record is no column", "", "| field | why |", "|---|---|"]
    lines += [f"| `{place}` | {why} |" for place, why in LEFT_OUT.items()]
    return "\n".join(lines) + "\n"


def _row(column: Column) -> str:
    source = f"`{column.source}`" + (", made of" if column.derive else "")
    return f"| `{column.name}` | {column.dtype} | {column.unit or ''} | {source} | {column.about} |"
