"""What an agent left: its final message, the files it changed with whose doing each is, and the diff."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from orchestrator.paths import near
from orchestrator.report.columns import Column, fit
from orchestrator.report.text import NOT_MEASURED, plural, safe_line, safe_lines
from scorers.evidence import Evidence, FileChange

MAX_DIFF_LINES = 80
MAX_MESSAGE_LINES = 12
MAX_CHANGES = 20
LINE = 200
"""Characters of one line of a log, diff or message."""

_ORIGINS = {"generated": "built or ignored", "cli_state": "the CLI's own"}
_STYLES = {"diff --git": "bold", "+++": "bold", "---": "bold", "@@": "cyan", "+": "green", "-": "red"}
"""How a line of a diff looks, by its beginning; the first that fits."""


def print_work(evidence: Evidence, blast: Mapping[str, Any], cell_dir: Path, out: Console) -> None:
    """Print the final message, the changed files and the diff, each bounded. `blast` is the scores of that
    axis: they say which changes the ticket did not ask for.
    """
    said = evidence.final_message
    if said.text.strip():
        out.print()
        out.print(f"final message ({said.source}):")
        _print_lines(out, said.text.strip(), MAX_MESSAGE_LINES, cell_dir / "evidence.json")
    # A refusal on the wire is no message, but is read like one.
    refused = list(dict.fromkeys(call.refusal for call in evidence.calls if call.main and call.refusal))
    if refused:
        out.print()
        out.print("refused on the wire:")
        _print_lines(out, "\n".join(refused), MAX_MESSAGE_LINES, cell_dir / "evidence.json")
    out.print()
    if evidence.changes:
        _print_changes(evidence.changes, blast.get("unexpected_changes") or (), cell_dir, out)
        out.print()
    if not evidence.diff.strip():
        out.print("diff: none" if "collect" in evidence.phases else "diff: not collected")
        return
    out.print("diff:")
    _print_lines(out, evidence.diff, MAX_DIFF_LINES, cell_dir / "diff.patch", coloured=True)


def _print_changes(
    changes: Sequence[FileChange], unexpected: Collection[str], cell_dir: Path, out: Console
) -> None:
    shown = changes[:MAX_CHANGES]
    columns = [
        Column("changed file", [safe_line(change.path, LINE) for change in shown], right=False, least=24),
        Column("change", [change.change for change in shown], right=False),
        Column("lines", [_lines(change) for change in shown]),
        Column("whose", [_whose(change, unexpected) for change in shown], right=False),
    ]
    table, _ = fit(columns, "", out)
    out.print(table)
    if len(changes) > len(shown):
        left = plural(len(changes) - len(shown), "file")
        out.print(f"  … {left} more in {near(cell_dir / 'evidence.json')}", soft_wrap=True)


def _lines(change: FileChange) -> str:
    if change.lines_added is None or change.lines_removed is None:
        return NOT_MEASURED
    return f"+{change.lines_added} −{change.lines_removed}"


def _whose(change: FileChange, unexpected: Collection[str]) -> str:
    """Whose doing a change is; of the agent's own, whether the ticket asked for it."""
    if change.origin in _ORIGINS:
        return _ORIGINS[change.origin]
    return "the agent's, unexpected" if change.path in unexpected else "the agent's"


def _print_lines(out: Console, text: str, limit: int, where: Path, *, coloured: bool = False) -> None:
    lines = text.rstrip("\n").split("\n")
    for line in safe_lines("\n".join(lines[:limit]), LINE):
        style = (
            next((style for start, style in _STYLES.items() if line.startswith(start)), "")
            if coloured
            else ""
        )
        out.print(f"  {line}", soft_wrap=True, style=style)
    if len(lines) > limit:
        out.print(f"  … {plural(len(lines) - limit, 'line')} more in {near(where)}", soft_wrap=True)
