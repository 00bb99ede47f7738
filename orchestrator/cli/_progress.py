"""How a build, push or pull of images is shown: live in a terminal, line by line elsewhere. All on stderr."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

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


class Words(NamedTuple):
    """What is done with images, in the words of its lines."""

    doing: str = "building"
    done: str = "built as"
    undone: str = "not built"
    unchanged: str = "up to date"


PUSHING = Words("pushing", "pushed as", "not pushed")
PULLING = Words("pulling", "pulled as", "not pulled")
LOCKING = Words(undone="not locked", unchanged="locked")


@dataclass
class _UnderWay:
    at: int
    since: float
    step: str = ""
    output: str = ""


class BuildView:
    """Shows the progress of images that are built, pushed or pulled, several at a time.

    In a terminal a line tells which of the images are under way, since when and, where each of the rest was
    built here before, how long they will take; two more for each its name, how long it has taken, its step
    and what that printed last. They are never wider than the terminal. What is done stays above them, as
    elsewhere.
    """

    def __init__(
        self,
        out: Console | None = None,
        now: Callable[[], float] = time.monotonic,
        words: Words | None = None,
    ) -> None:
        self._out = out or console(stderr=True)
        self._now = now
        self._words = words or Words()
        self._spinner = Spinner("dots")
        self._under_way: dict[str, _UnderWay] = {}
        self._start = self._left_at = now()
        self._of = 0
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
            self._out.print(f"  {self._words.undone}: {safe_line(failed, 1000)}", soft_wrap=True)

    def __rich__(self) -> Group | Text:
        under_way = list(self._under_way.items())  # another thread may tell of more
        if not under_way:
            return Text("looking at images")
        lines: list[Table | Text] = []
        for name, image in under_way:
            line = Table.grid(padding=(0, 1))
            line.add_column()
            line.add_column(no_wrap=True, overflow="ellipsis")
            line.add_row(self._spinner, f"{name}  {clock(self._now() - image.since)}  {image.step}")
            lines.append(line)
            lines.append(Text(f"    {image.output}", style="dim", no_wrap=True, overflow="ellipsis"))
        places = [image.at for _, image in under_way]
        whole = Text(self._whole(places), no_wrap=True, overflow="ellipsis")
        return Group(whole, *lines)

    def _whole(self, places: Sequence[int]) -> str:
        """How far all images are."""
        which = f"image{'s' if len(places) > 1 else ''} {' and '.join(map(str, places))}"
        said = f"{which} of {self._of}, {clock(self._now() - self._start)}"
        if self._left_s is None:
            return said
        left = self._left_s - (self._now() - self._left_at)
        return f"{said}, about {clock(left)} left" if left > 0 else said

    def show(self, progress: Progress) -> None:
        """Show one event."""
        name, detail = progress.image, progress.detail
        self._of = progress.of
        if progress.left_s != self._left_s:
            self._left_s, self._left_at = progress.left_s, self._now()
        place = f"{progress.at}/{progress.of} " if progress.of else ""
        took = clock(progress.seconds)
        match progress.event:
            case "current":
                self._done(name, f"{place}{name}: {self._words.unchanged} ({detail})")
            case "started":
                self._under_way[name] = _UnderWay(progress.at, self._now())
                self._plain(f"{place}{name}: {self._words.doing}")
            case "step":
                self._under_way[name].step, self._under_way[name].output = _step(detail), ""
                self._plain(f"{name}: {took}: {_step(detail)}")
            case "output":
                self._under_way[name].output = safe_line(_COLOURS.sub("", detail))
            case "built":
                self._done(name, f"{place}{name}: {self._words.done} {detail} in {took}")
            case "failed":
                for line in progress.tail:
                    self._out.print(safe_line(f"  | {_COLOURS.sub('', line)}"), soft_wrap=True)
                self._done(name, f"{place}{name}: failed after {took}")
                self._failed.append(f"{name}: {detail}")
            case "passed_over":
                self._done(name, f"{place}{name}: {self._words.undone}: {safe_line(detail)}")

    def _done(self, name: str, text: str) -> None:
        self._under_way.pop(name, None)
        self._out.print(f"  {text}", soft_wrap=True)

    def _plain(self, text: str) -> None:
        if not self._out.is_terminal:
            self._out.print(f"  {text}", soft_wrap=True)


def _step(detail: str) -> str:
    """`9/22 RUN make` of the engine's `Step 9/22 : RUN make`, on one line."""
    match = _STEP.fullmatch(detail)
    return safe_line(" ".join((" ".join(match.groups()) if match else detail).split()), 120)
