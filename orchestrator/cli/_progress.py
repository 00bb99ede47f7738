"""How a build of images is shown: a live view in a terminal, plain lines elsewhere. All of it on stderr."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from orchestrator.report.text import clock, console, safe_line

if TYPE_CHECKING:
    from orchestrator.sandbox.images import Progress

_STEP = re.compile(r"Step (\d+/\d+) : (.*)", re.DOTALL)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class BuildView:
    """Shows the progress of `orchestrator.sandbox.images.build`.

    In a terminal a line tells how many images are through, since when and, where each of the rest was built
    here before, how long they will take; two more the image, how long it has taken, its step and what that
    printed last. They are never wider than the terminal. What is done stays above them, as elsewhere.
    """

    def __init__(self, out: Console | None = None, now: Callable[[], float] = time.monotonic) -> None:
        self._out = out or console(stderr=True)
        self._now = now
        self._spinner = Spinner("dots")
        self._image = self._step = self._output = ""
        self._start = self._since = now()
        self._at = self._of = 0
        self._failed: list[str] = []
        self._left_s: float | None = None
        # Transient: what is under way is stale once the build ends.
        self._live = Live(self, console=self._out, refresh_per_second=8, transient=True)

    def __enter__(self) -> Self:
        if self._out.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()
        # One alone is what the command itself ends with.
        for failed in self._failed if len(self._failed) > 1 else ():
            self._out.print(f"  not built: {safe_line(failed, 1000)}", soft_wrap=True)

    def __rich__(self) -> Group | Text:
        image, step, output = self._image, self._step, self._output
        if not image:
            return Text("looking at images")
        line = Table.grid(padding=(0, 1))
        line.add_column()
        line.add_column(no_wrap=True, overflow="ellipsis")
        line.add_row(self._spinner, f"{image}  {clock(self._now() - self._since)}  {step}")
        whole = Text(self._whole(), no_wrap=True, overflow="ellipsis")
        return Group(whole, line, Text(f"    {output}", style="dim", no_wrap=True, overflow="ellipsis"))

    def _whole(self) -> str:
        """How far all images are."""
        said = f"image {self._at} of {self._of}, {clock(self._now() - self._start)}"
        if self._left_s is None:
            return said
        left = self._left_s - (self._now() - self._since)
        return f"{said}, about {clock(left)} left" if left > 0 else said

    def show(self, progress: Progress) -> None:
        """Show one event."""
        name, detail = progress.image, progress.detail
        self._at, self._of, self._left_s = progress.at, progress.of, progress.left_s
        place = f"{progress.at}/{progress.of} " if progress.of else ""
        match progress.event:
            case "current":
                self._done(f"{place}{name}: up to date ({detail})")
            case "started":
                self._image, self._step, self._output, self._since = name, "", "", self._now()
                self._plain(f"{place}{name}: building")
            case "step":
                self._step, self._output = _step(detail), ""
                self._plain(f"{name}: {clock(progress.seconds)}: {self._step}")
            case "output":
                self._output = safe_line(_COLOURS.sub("", detail))
            case "built":
                self._done(f"{place}{name}: built as {detail} in {clock(progress.seconds)}")
            case "failed":
                for line in progress.tail:
                    self._out.print(safe_line(f"  | {_COLOURS.sub('', line)}"), soft_wrap=True)
                self._done(f"{place}{name}: failed after {clock(progress.seconds)}")
                self._failed.append(f"{name}: {detail}")
            case "passed_over":
                self._done(f"{place}{name}: not built: {safe_line(detail)}")

    def _done(self, text: str) -> None:
        self._image = ""
        self._out.print(f"  {text}", soft_wrap=True)

    def _plain(self, text: str) -> None:
        if not self._out.is_terminal:
            self._out.print(f"  {text}", soft_wrap=True)


def _step(detail: str) -> str:
    """`9/22 RUN make` of the engine's `Step 9/22 : RUN make`, on one line."""
    match = _STEP.fullmatch(detail)
    return safe_line(" ".join((" ".join(match.groups()) if match else detail).split()), 120)
