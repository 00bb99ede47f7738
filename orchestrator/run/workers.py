"""Threads that work off something together, while the main thread stays free for signals."""

from __future__ import annotations

import threading
from collections.abc import Callable


def work_together(work: Callable[[], None], number: int, name: str) -> None:
    """Call `work` in so many threads, and return when all have ended."""
    workers = [threading.Thread(target=work, name=f"{name}-{count}") for count in range(number)]
    for worker in workers:
        worker.start()
    for worker in workers:
        # A plain join would keep the main thread from its signal handlers.
        while worker.is_alive():
            worker.join(0.2)
