"""A bar for long work whose amount is known, in a terminal's stderr; nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def bar(what: str, *, stdout: bool = False) -> Iterator[Callable[[int, int], None]]:
    """What to call with the amount that is done, and that of all. The bar is gone when the block ends.

    `stdout` says that the work itself is written there: where that is the terminal too, no bar cuts into it.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from orchestrator.report.text import console

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    out = console(stderr=True)
    hidden = not out.is_terminal or (stdout and sys.stdout.isatty())
    with Progress(*columns, console=out, transient=True, disable=hidden) as shown:
        task = shown.add_task("", total=None)
        yield lambda done, of: shown.update(task, completed=done, total=of)
