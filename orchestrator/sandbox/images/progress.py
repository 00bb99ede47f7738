"""What is told of images while they are built, pushed or pulled."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Event = Literal["current", "started", "step", "output", "built", "failed", "passed_over"]


@dataclass(frozen=True)
class Progress:
    """What happened to one image, `seconds` after its start.

    A `step` is named by `detail`; an `output` is the last line that it printed so far. `built` is also an
    image that was pushed or pulled, `current` one with which nothing was to be done. `tail` is the end of a
    failed build's log. `passed_over` is an image that cannot be had, for the reason in `detail`. `at` is
    its place among the `of` images of the call, from 1. `left_s` is how long what was not through yet took
    when it was last built; None where that is not known of one of them.
    """

    image: str
    event: Event
    detail: str = ""
    seconds: float = 0.0
    tail: tuple[str, ...] = ()
    at: int = 0
    of: int = 0
    left_s: float | None = None


def ignore(progress: Progress) -> None:
    """Show nothing."""
    del progress


class Teller:
    """Tells what happens to the images of one call, one event at a time from whichever thread."""

    def __init__(self, on_progress: Callable[[Progress], None], names: Sequence[str]) -> None:
        self._on_progress = on_progress
        self._places = {name: place for place, name in enumerate(names, 1)}
        self._one = threading.Lock()
        self.left_s: float | None = None

    def __call__(self, name: str, event: Event, detail: str = "", **more: Any) -> None:
        at, of = self._places[name], len(self._places)
        with self._one:
            self._on_progress(Progress(name, event, detail, at=at, of=of, left_s=self.left_s, **more))
