"""Hostile texts, made harmless and kept short: what is cut off is counted, so that a page can say so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from orchestrator.report.text import safe_line, safe_lines

T = TypeVar("T")

MAX_LINE = 400
"""Characters of one line of a log, diff or message."""


@dataclass(frozen=True)
class Some(Generic[T]):
    """The first and the last of many. `left_out` stand between `head` and `tail`, and are elsewhere."""

    head: Sequence[T]
    tail: Sequence[T]
    left_out: int
    total: int


def some(items: Sequence[T], most: int) -> Some[T]:
    """All of `items` where they are no more than `most`, else the first and last `most // 2`."""
    if len(items) <= most:
        return Some(items, (), 0, len(items))
    half = most // 2
    return Some(items[:half], items[-half:], len(items) - 2 * half, len(items))


@dataclass(frozen=True)
class Text:
    """Lines that are each harmless and no longer than `MAX_LINE`; `left_out` more lines are elsewhere."""

    lines: Sequence[str]
    left_out: int

    def __bool__(self) -> bool:
        return bool(self.lines)

    def __str__(self) -> str:
        return "\n".join(self.lines)


def text(raw: str, most_lines: int, *, end: bool = False) -> Text:
    """The first lines of a hostile text, or its last with `end`; none of what is blank."""
    stripped = raw.strip("\n")
    if not stripped.strip():
        return Text((), 0)
    lines = stripped.split("\n")
    kept = lines[-most_lines:] if end else lines[:most_lines]
    return Text(safe_lines("\n".join(kept), MAX_LINE), len(lines) - len(kept))


def line(raw: str, limit: int = MAX_LINE) -> str:
    """A hostile text as one harmless line."""
    return safe_line(raw, limit)


def lines_of(raw: Iterable[str], limit: int = MAX_LINE) -> list[str]:
    return [safe_line(one, limit) for one in raw]
