"""Outputs that several processes make at once: those of cells take most of a build's time.

The workers are forked, so that they have what was read already. A forked process may not use polars, whose
threads it has not: only outputs that say so (`apart`) are made here, and one that asks a frame all the
same is refused where it would wait for ever. What a worker could not make is left to the caller, who then
meets the fault itself. Workers end with the caller, however that ends.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from typing import NoReturn

import polars as pl

from orchestrator.site.output import File, Page

LEAST = 500
"""Outputs for which it is worth starting processes."""
_CHUNK = 100

Make = Callable[[Page | File], int]
"""Makes an output in its place, and says how many bytes it has."""

_PR_SET_PDEATHSIG = 1
_NATIVE = ((pl.DataFrame, "_df"), (pl.LazyFrame, "_ldf"), (pl.Series, "_s"), (pl.Expr, "_pyexpr"))
"""Through which member each of polars' kinds reaches its native part."""

_inherited: list[tuple[Sequence[Page | File], Make, mmap.mmap]] = []
"""What the workers of this process are forked to do, and memory that both see: its first byte tells them to
stop. Empty when there are none.
"""


@contextmanager
def made_apart(
    outputs: Sequence[Page | File], make: Make
) -> Iterator[Iterator[tuple[Page | File, int | None]]]:
    """Have outputs made while the caller does something else.

    Gives each with its size in bytes, in their order; None for one that is left to the caller: all of
    them where there are few, or no second core.
    """
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
    pool = _pool(cores) if cores > 1 and len(outputs) >= LEAST else None
    if pool is None:
        yield ((output, None) for output in outputs)
        return
    stop = mmap.mmap(-1, 1)
    _inherited.append((outputs, make, stop))
    try:
        starts = range(0, len(outputs), _CHUNK)
        yield _sizes(outputs, [pool.submit(_make_chunk, start) for start in starts])
    finally:
        stop[0] = 1
        pool.shutdown(cancel_futures=True)
        _inherited.clear()


def _pool(cores: int) -> ProcessPoolExecutor | None:
    """Processes to be forked; None where the system has no semaphores, as without /dev/shm."""
    try:
        return ProcessPoolExecutor(
            cores, mp_context=get_context("fork"), initializer=_begin, initargs=(os.getpid(),)
        )
    except (OSError, ImportError, NotImplementedError):
        return None


def _begin(parent: int) -> None:
    """In a worker, before its first output."""
    # A terminal's Ctrl-C reaches all of them; the caller is the one that answers it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # it was killed before that could be asked for
    for kind, member in _NATIVE:
        setattr(kind, member, property(_refused))
    # What was read before the fork is not garbage, and looking at it would copy all its memory. Garbage is
    # looked for between two chunks, when next to nothing is alive.
    gc.freeze()
    gc.disable()


def _refused(_: object) -> NoReturn:
    raise RuntimeError("an output that is made apart asks a frame")


def _sizes(
    outputs: Sequence[Page | File], chunks: Sequence[Future[list[int | None]]]
) -> Iterator[tuple[Page | File, int | None]]:
    for number, chunk in enumerate(chunks):
        of_chunk = outputs[number * _CHUNK : (number + 1) * _CHUNK]
        try:
            sizes = chunk.result()
        except BrokenProcessPool:
            sizes = [None] * len(of_chunk)
        yield from zip(of_chunk, sizes, strict=True)


def _make_chunk(start: int) -> list[int | None]:
    [(outputs, make, stop)] = _inherited
    sizes = [None if stop[0] else _size(make, output) for output in outputs[start : start + _CHUNK]]
    gc.collect()
    return sizes


def _size(make: Make, output: Page | File) -> int | None:
    try:
        return make(output)
    except Exception:  # noqa: BLE001  the caller meets it again, where it can be told
        return None
