"""How values look in a terminal; one place, so that a dash means the same everywhere: not measured."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

NOT_MEASURED = "–"


def console() -> Console:
    """Results go to stdout. Off a terminal, lines are as long as they need to be, for pipes and files."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=160)


def number(value: float | None, digits: int = 3) -> str:
    """A number with `digits` decimals; whole numbers without."""
    if value is None:
        return NOT_MEASURED
    return f"{value:.{digits}f}" if value != int(value) else f"{int(value)}"


def count(value: float | None) -> str:
    """A whole number with thousands set apart."""
    return NOT_MEASURED if value is None else f"{round(value):,}".replace(",", "\u202f")


def seconds(milliseconds: float | None) -> str:
    return NOT_MEASURED if milliseconds is None else f"{milliseconds / 1000:.1f}"


def hostile(text: str) -> str:
    """Text that an agent may have written, for a terminal: no markup and no control characters but line ends."""
    return escape("".join(char if char.isprintable() or char in "\n\t" else "\ufffd" for char in text))
