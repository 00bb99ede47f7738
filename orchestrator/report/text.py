"""How values look in a terminal; one place, so that a dash means the same everywhere: not measured."""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

NOT_MEASURED = "–"
NOT_APPLICABLE = "n/a"
NO_PASS = "no pass"
VOID = "void"
LEGEND = f"{NOT_MEASURED} not measured"
PIPE_WIDTH = 160
MAX_LINE = 400

# Combining marks are left out too: enough of them on one letter paint over the lines around it.
_UNSAFE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Me", "Mn"}


def console(*, stderr: bool = False) -> Console:
    """A console that takes every text as it is: no markup, no emoji names, no highlighting.

    Off a terminal it is as wide as COLUMNS says, else wide enough for every table, for pipes and files.
    """
    from rich.console import Console

    out = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not out.is_terminal and "COLUMNS" not in os.environ:
        out.width = PIPE_WIDTH
    return out


def print_json(data: object, indent: int | None = None) -> None:
    """A result as JSON on stdout. In ASCII: a terminal obeys some characters that JSON leaves as they are."""
    sys.stdout.write(json.dumps(data, indent=indent) + "\n")


def number(value: float | None, digits: int = 3) -> str:
    """A number with `digits` decimals; whole numbers without, so that 0.9999 (1.000) never looks like 1."""
    if value is None:
        return NOT_MEASURED
    return f"{value:.{digits}f}" if value != int(value) else f"{int(value)}"


def bounds(low: float, high: float) -> str:
    """The values between which an unmeasured one lies."""
    return f"[{number(low, 2)}, {number(high, 2)}]"


def bounded(value: float | None, between: tuple[float, float] | None) -> str:
    """A number of 0 to 1, or where it was not measured the bounds that are known of it: 0 and 1 are none."""
    return number(value) if value is not None or between in (None, (0, 1)) else bounds(*between)


def count(value: float | None) -> str:
    """A whole number with thousands set apart."""
    return NOT_MEASURED if value is None else f"{round(value):,}".replace(",", "\u202f")


def seconds(milliseconds: float | None) -> str:
    return NOT_MEASURED if milliseconds is None else f"{milliseconds / 1000:.1f}"


def dollars(usd: float | None) -> str:
    """An amount of US dollars; small ones to a hundredth of a cent."""
    if usd is None:
        return NOT_MEASURED
    return f"${usd:.2f}" if usd >= 1 else f"${usd:.4f}"


def clock(of_seconds: float) -> str:
    """A stretch of time for people: `7 s`, `3 min 20 s`, `2 h 05 min`."""
    minutes, rest = divmod(round(of_seconds), 60)
    hours, minutes_left = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes_left:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def plural(amount: int, one: str, many: str | None = None) -> str:
    """An amount with its noun: `1 cell`, `2 cells`."""
    return f"{count(amount)} {one if amount == 1 else many or one + 's'}"


def from_to(runs: tuple[int, int]) -> str:
    """The fewest and the most of something: `3`, `2–3`."""
    return str(runs[0]) if runs[0] == runs[1] else f"{runs[0]}–{runs[1]}"


def safe_line(text: str, limit: int = MAX_LINE) -> str:
    """Text that an agent, an endpoint or a test may have written, as one harmless line of bounded length.

    Control and format characters (escape sequences, bidirectional overrides) become U+FFFD; tabs, line ends
    and the like become spaces, so that no text can pretend to be a line of cab's own.
    """
    # Most lines are plain, and a site has millions of them.
    if len(text) <= limit and text.isascii() and text.isprintable():
        return text
    shown = text[:limit].translate(_SAFE)
    return shown if len(text) <= limit else f"{shown}… ({plural(len(text) - limit, 'character')} more)"


def safe_lines(text: str, limit: int = MAX_LINE) -> list[str]:
    """The lines of a text of several, each harmless. Indentation stays."""
    return [safe_line(line.expandtabs(4) if len(line) <= limit else line, limit) for line in text.split("\n")]


def stage_in_words(stage: str) -> str:
    """A stage by the name that tables and documents have for it, where that is not the trace's."""
    return {"task_setup": "setup", "adapter_run": "agent"}.get(stage, stage)


class _Safe(dict[int, str]):
    """For `str.translate`: each character that was met, and what stands for it."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if char.isprintable() and unicodedata.category(char) not in _UNSAFE:
            safe = char
        else:
            safe = " " if char in "\t\n\r" or unicodedata.category(char) == "Zs" else "\ufffd"
        self[code] = safe
        return safe


_SAFE = _Safe()
