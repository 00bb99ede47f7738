"""Files made by several processes at once, where there are so many that starting these pays."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor

Make = Callable[[Sequence[str]], dict[str, int]]
"""Makes the files at these paths; their sizes in bytes."""

WORTH = 1500
"""Files from which on others are asked for help: making these takes longer than it takes to start one."""

PART = 100
MOST = 8

_make: Make | None = None


def share(
    make: Make,
    prepare: Callable[[], Make],
    paths: Sequence[str],
    progress: Callable[[int, int], None],
    *,
    processes: int | None = None,
) -> dict[str, int]:
    """Make the files at all paths, and give their sizes. There are as many `processes` as processors, if none
    are given.

    This process makes its files by `make`, each other by what `prepare` gives there, which can be pickled.
    What goes wrong in another process is made again in this one: there it succeeds, or says what is wrong.
    """
    parts = [paths[at : at + PART] for at in range(0, len(paths), PART)]
    others = (processes or min(MOST, len(os.sched_getaffinity(0)))) - 1
    if others < 1 or len(paths) < WORTH:
        sizes: dict[str, int] = {}
        for part in parts:
            progress(len(sizes), len(paths))
            sizes |= make(part)
        return sizes
    return _shared(make, prepare, parts, others, lambda done: progress(done, len(paths)))


def _shared(
    make: Make,
    prepare: Callable[[], Make],
    parts: Sequence[Sequence[str]],
    others: int,
    progress: Callable[[int], None],
) -> dict[str, int]:
    """This process takes parts from the end, the others from the start, until they meet."""
    sizes: dict[str, int] = {}
    # Not forked: polars has threads, of which a fork would have none.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(others, mp_context=context, initializer=_start, initargs=(prepare,))
    try:
        futures = [pool.submit(_run, part) for part in parts]
        for part, future in reversed(list(zip(parts, futures, strict=True))):
            progress(
                len(sizes) + sum(len(part) for part, it in zip(parts, futures, strict=True) if _made(it))
            )
            sizes |= make(part) if future.cancel() or future.exception() else future.result()
    finally:
        pool.shutdown(cancel_futures=True)
    return sizes


def _made(future: Future[dict[str, int]]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None


def _start(prepare: Callable[[], Make]) -> None:
    global _make  # noqa: PLW0603 - what a process of the pool keeps from one part to the next
    _make = prepare()


def _run(part: Sequence[str]) -> dict[str, int]:
    assert _make is not None
    return _make(part)
