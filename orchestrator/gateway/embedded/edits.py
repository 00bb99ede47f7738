"""Exact edits that turn one text into another, as an edit tool wants them."""

from __future__ import annotations

from difflib import SequenceMatcher


def hunks(before: str, after: str) -> list[tuple[str, str]]:
    """(old, new) pairs that, applied one after the other, turn `before` into `after`.

    Each `old` is not empty and occurs exactly once in the text as it is when its turn comes. An empty
    `before` has no such pairs: raises ValueError.
    """
    if not before:
        raise ValueError("an empty text cannot be edited, only written")
    current, goal = _lines(before), _lines(after)
    pairs: list[tuple[str, str]] = []
    shift = 0
    for tag, old_from, old_to, new_from, new_to in SequenceMatcher(
        None, current, goal, autojunk=False
    ).get_opcodes():
        if tag == "equal":
            continue
        start, end = old_from + shift, old_to + shift
        replacement = goal[new_from:new_to]
        pairs.append(_unique(current, start, end, replacement))
        current = current[:start] + replacement + current[end:]
        shift += len(replacement) - (old_to - old_from)
    return pairs


def _unique(lines: list[str], start: int, end: int, replacement: list[str]) -> tuple[str, str]:
    """The replacement with as many lines around it as make its old text unique; the whole text always is."""
    text = "".join(lines)
    for around in range(len(lines) + 1):
        first, last = max(0, start - around), min(len(lines), end + around)
        old = "".join(lines[first:last])
        if old and _occurrences(text, old) == 1:
            return old, "".join([*lines[first:start], *replacement, *lines[end:last]])
    raise ValueError("a text that does not occur in itself")


def _occurrences(text: str, part: str) -> int:
    """How often `part` occurs, overlaps included; counting stops at two."""
    first = text.find(part)
    if first < 0:
        return 0
    return 1 if text.find(part, first + 1) < 0 else 2


def _lines(text: str) -> list[str]:
    """Lines with their `\\n`; other line separators are left inside."""
    *whole, last = text.split("\n")
    return [line + "\n" for line in whole] + ([last] if last else [])
