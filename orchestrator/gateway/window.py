"""How many calls may be under way at one endpoint: a window that learns what the endpoint takes.

It grows with every call that was answered while it was full: by one at first, which doubles it in each round
of calls, and after the first 429 by one in a whole round. A 429 halves it, once for all calls that were sent
before. Calls get in by age, so those of no cell overtake another's.
"""

from __future__ import annotations

import asyncio
import bisect
import math
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Literal, Protocol

from orchestrator.gateway.contract import WindowReport

START = 4.0
"""Calls that may be under way before an endpoint has answered any."""

Ending = Literal["answered", "limited", "other"]
"""How a call left: with an answer, with a 429, or in a way that tells nothing of how many there may be."""


class Clock(Protocol):
    """Time as the gateway sees it, so that tests need not sleep."""

    def monotonic(self) -> float: ...

    def wall(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


@dataclass(frozen=True)
class Place:
    """A place of one attempt in the window. `generation` counts the halvings before it was sent."""

    generation: int


@dataclass
class Window:
    """The calls under way at the endpoint `name`, at most `cap` (None: as many as it takes).

    For one event loop. Every `Place` that was given is to be given back by `leave`.
    """

    name: str
    clock: Clock
    cap: int | None = None
    under_way: int = field(default=0, init=False)
    limited: int = field(default=0, init=False)
    waited_s: float = field(default=0.0, init=False)
    largest: int = field(default=0, init=False)
    _size: float = field(default=START, init=False)
    _slow_start: bool = field(default=True, init=False)
    _generation: int = field(default=0, init=False)
    _blocked_until: float = field(default=-math.inf, init=False)
    _tickets: int = field(default=0, init=False)
    _queue: list[tuple[int, asyncio.Future[Place]]] = field(default_factory=list, init=False)
    _timer: asyncio.Task[None] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._resize(START)

    @property
    def size(self) -> int:
        """Calls that may be under way now."""
        return int(self._size)

    def ticket(self) -> int:
        """A call's place in the order of age; it keeps it over its attempts."""
        self._tickets += 1
        return self._tickets

    def try_enter(self) -> Place | None:
        """A place, if one is free and nobody waits for it."""
        return None if self._queue or not self._open else self._take()

    async def enter(self, ticket: int) -> Place:
        """Wait for a place. A call that is cancelled while it waits holds none."""
        future: asyncio.Future[Place] = asyncio.get_running_loop().create_future()
        bisect.insort(self._queue, (ticket, future), key=itemgetter(0))
        self._admit()
        try:
            return await future
        except asyncio.CancelledError:
            if future.cancelled():
                self._queue = [entry for entry in self._queue if entry[1] is not future]
            else:
                # The place was given in the same instant.
                self.leave(future.result(), "other")
            raise

    def leave(self, place: Place, ending: Ending) -> None:
        """Give a place back, and let in who may then."""
        full = self.under_way >= self.size
        self.under_way -= 1
        if ending == "limited":
            self.limited += 1
            if place.generation == self._generation:
                self._generation += 1
                self._slow_start = False
                self._resize(self._size / 2)
        elif ending == "answered" and full:
            self._resize(self._size + (1.0 if self._slow_start else 1.0 / self._size))
        self._admit()

    def block(self, seconds: float) -> None:
        """Let nobody in for so long, as the endpoint asked. A longer block that holds already stays."""
        self._blocked_until = max(self._blocked_until, self.clock.monotonic() + seconds)

    def close(self) -> None:
        """Forget what was to come; for the end of the gateway."""
        if self._timer is not None:
            self._timer.cancel()

    def report(self) -> WindowReport:
        return WindowReport(
            endpoint=self.name,
            largest=self.largest,
            end=self.size,
            rate_limited=self.limited,
            waited_s=self.waited_s,
        )

    @property
    def _open(self) -> bool:
        return self.under_way < self.size and self.clock.monotonic() >= self._blocked_until

    def _resize(self, size: float) -> None:
        self._size = max(1.0, size if self.cap is None else min(size, float(self.cap)))

    def _take(self) -> Place:
        self.under_way += 1
        self.largest = max(self.largest, self.under_way)
        return Place(self._generation)

    def _admit(self) -> None:
        """Let in the oldest of those who wait while there is room; else see to it at the block's end."""
        while self._queue and self._open:
            _, future = self._queue.pop(0)
            if not future.cancelled():
                future.set_result(self._take())
        if self._queue and self._timer is None and self.clock.monotonic() < self._blocked_until:
            self._timer = asyncio.get_running_loop().create_task(self._unblock())

    async def _unblock(self) -> None:
        while (left := self._blocked_until - self.clock.monotonic()) > 0:
            await self.clock.sleep(left)
        self._timer = None
        self._admit()
