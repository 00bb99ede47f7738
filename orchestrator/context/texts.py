"""Texts of others, made safe to set between lines of our own.

What an event says may hold anything: headings like ours, characters that nobody sees, bytes that no command
line takes. Here every line of it gets a mark before it, so that no line of a prompt, a snapshot or a receipt
that begins as ours do is anybody else's.
"""

from __future__ import annotations

import re

QUOTE = "> "
"""Before every line of a text of several lines."""

_TERMINAL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
# What `str.splitlines` takes for the end of a line stays: no such end may come unmarked.
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f]")
_SHOWN_OF_KEY = 120


def plain(text: str) -> str:
    """`text` as lines: without colours and control characters, every line ended alike, none at the ends."""
    lines = _CONTROL.sub("", _TERMINAL.sub("", text)).splitlines()
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def quoted(text: str, mark: str = QUOTE) -> str:
    """`text` with `mark` before every line; no text gives one marked, empty line."""
    return "\n".join(f"{mark}{line}".rstrip() for line in plain(text).split("\n"))


def one_line(text: str, longest: int = _SHOWN_OF_KEY) -> str:
    """`text` in one line of at most `longest` characters, a cut one ends in `…`."""
    flat = " ".join(plain(text).split())
    return flat if len(flat) <= longest else f"{flat[: longest - 1]}…"


def clipped(text: str, longest: int) -> str:
    """`text` with its middle left out where it has more than `longest` characters; how many is told.

    Two thirds of what stays are its beginning: a failure names itself there, and its cause at the end.
    """
    if len(text) <= longest:
        return text
    head, tail = longest * 2 // 3, longest // 3
    return f"{text[:head]}\n[… {len(text) - head - tail} characters left out]\n{text[len(text) - tail :]}"


def cell(text: str) -> str:
    """`text` as a cell of a Markdown table."""
    return one_line(text).replace("\\", "\\\\").replace("|", "\\|").replace("`", "'")
