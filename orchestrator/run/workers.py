"""Threads that work off jobs together, while the main thread stays free for signals."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Generic, TypeVar

Job = TypeVar("Job")

_LISTEN_EVERY_S = 0.2


@dataclass
class Workers(Generic[Job]):
    """Has `do` done for each job, in their order and several at a time; `name` is that of the threads.

    What `do` raises ends all: no further job begins, those under way come to their end, and `run` raises the
    first such error in the main thread. `may_begin` is asked before each job, by one thread at a time. `stop`
    may come from a signal handler.
    """

    do: Callable[[Job], None]
    name: str
    may_begin: Callable[[], bool] = lambda: True
    left: deque[Job] = field(default_factory=deque)
    """What has not begun."""
    failure: BaseException | None = None
    stopping: Event = field(default_factory=Event)
    _lock: Lock = field(default_factory=Lock)

    @property
    def interrupted(self) -> bool:
        """Whether it was stopped before its end, and not by a failure."""
        return self.stopping.is_set() and self.failure is None

    def stop(self) -> None:
        """Begin no further job; those under way come to their end."""
        self.stopping.set()

    def fail(self, error: BaseException) -> None:
        """Stop for this reason, unless there was one before."""
        self.failure = self.failure or error
        self.stop()

    def again(self, job: Job) -> None:
        """Put a job behind all others that are left."""
        with self._lock:
            self.left.append(job)

    def run(self, jobs: Iterable[Job], number: int) -> None:
        """Work off `jobs`, at most `number` at a time, and return when the last has ended."""
        self.left.extend(jobs)
        threads = min(number, len(self.left))
        if not threads:
            return
        with ThreadPoolExecutor(threads, thread_name_prefix=self.name) as pool:
            try:
                under_way = {pool.submit(self._work) for _ in range(threads)}
                while under_way:
                    # A handler waits for the main thread, which a signal that came to another does not wake.
                    _, under_way = wait(under_way, _LISTEN_EVERY_S)
            except BaseException:
                # Ctrl-C: the pool waits for its threads, which would go on with what is left.
                self.stop()
                raise
        if self.failure is not None:
            raise self.failure

    def _work(self) -> None:
        while (job := self._next()) is not None:
            try:
                self.do(job)
            except BaseException as error:
                self.fail(error)
                raise

    def _next(self) -> Job | None:
        with self._lock:
            if self.stopping.is_set() or not self.left or not self.may_begin():
                return None
            return self.left.popleft()
