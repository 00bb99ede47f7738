"""The tables of reports as Markdown, for a pull request or a page."""

from __future__ import annotations

import re
from collections.abc import Sequence

from orchestrator.report.columns import Column

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~#&])")


def escaped(text: str) -> str:
    """A text that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\1", text)


def table(columns: Sequence[Column]) -> str:
    """A table of all the columns, ended by a line end; numbers stand to the right."""
    rows = [
        [column.name for column in columns],
        *map(list, zip(*(column.cells for column in columns), strict=True)),
    ]
    lines = [f"| {' | '.join(map(escaped, row))} |" for row in rows]
    rule = " | ".join("---:" if column.right else "---" for column in columns)
    return "\n".join([lines[0], f"| {rule} |", *lines[1:]]) + "\n"
