"""What an agent did with its tools: each call with what it asked for, one line each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby

from rich.cells import cell_len
from rich.console import Console

from orchestrator.report.text import plural, safe_line
from scorers.evidence import ToolCall

MAX_ROWS = 30
LINE = 200
"""Characters of one call."""


def print_asked(calls: Sequence[ToolCall], out: Console) -> None:
    """Print the tool calls by start. The same call again and again is one line, with how often."""
    if not calls:
        return
    rows = [tuple(same) for _, same in groupby(calls, key=lambda call: (call.name, call.arguments))]
    many = len(rows) > MAX_ROWS + 1
    shown = rows[: MAX_ROWS // 2] + rows[-MAX_ROWS // 2 :] if many else rows
    width = max(cell_len(_named(row)) for row in shown)
    out.print()
    out.print(f"tool calls: {len(calls)}")
    for at, row in enumerate(shown):
        if many and at == MAX_ROWS // 2:
            hidden = len(calls) - sum(map(len, shown))
            out.print(f"  … {plural(hidden, 'call')} more in evidence.json")
        name = _named(row)
        # What is cut off at the terminal's width stands in evidence.json.
        line = f"  {name}{' ' * (width - cell_len(name))}  {_asked(row[0].arguments)}".rstrip()
        out.print(line, no_wrap=True, overflow="ellipsis")


def _named(row: Sequence[ToolCall]) -> str:
    times = f" ×{len(row)}" if len(row) > 1 else ""
    return safe_line(row[0].name, 40) + times + ("" if row[-1].end is not None else ", no answer")


def _asked(arguments: str) -> str:
    """The values of a call's arguments, as they are given; what is no JSON object as it stands."""
    try:
        values = json.loads(arguments)
    except (ValueError, RecursionError):
        return safe_line(arguments, LINE)
    if not isinstance(values, dict):
        return safe_line(arguments, LINE)
    texts = (value if isinstance(value, str) else json.dumps(value) for value in values.values())
    return safe_line(" | ".join(text.strip() for text in texts), LINE)
