"""Pages that several processes make at once: those of cells take most of a build's time.

The workers are forked, so that they have what was read already. A forked process may not use polars, whose
threads it has not: only pages that say so (`Page.apart`) are made here, and one that asks a frame all the
same is refused where it would wait for ever. What a worker could not make is left to the caller, who then
meets the fault itself. Workers end with the caller, however that ends.
"""

from __future__ import annotations

import ctypes
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

from orchestrator.site.output import Page

LEAST = 100
"""Pages for which it is worth starting processes."""
_CHUNK = 25

Make = Callable[[Page], int]
"""Makes a page in its place, and says how many bytes it has."""

_PR_SET_PDEATHSIG = 1
_NATIVE = ((pl.DataFrame, "_df"), (pl.LazyFrame, "_ldf"), (pl.Series, "_s"), (pl.Expr, "_pyexpr"))
"""Through which member each of polars' kinds reaches its native part."""

_inherited: list[tuple[Sequence[Page], Make, mmap.mmap]] = []
"""What the workers of this process are forked to do, and memory that both see: its first byte tells them to
stop. Empty when there are none.
"""


@contextmanager
def made_apart(pages: Sequence[Page], make: Make) -> Iterator[Iterator[tuple[Page, int | None]]]:
    """Have pages made while the caller does something else.

    Gives each page with its size in bytes, in their order; None for one that is left to the caller: all of
    them where there are few, or no second core.
    """
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
    pool = _pool(cores) if cores > 1 and len(pages) >= LEAST else None
    if pool is None:
        yield ((page, None) for page in pages)
        return
    stop = mmap.mmap(-1, 1)
    _inherited.append((pages, make, stop))
    try:
        starts = range(0, len(pages), _CHUNK)
        yield _sizes(pages, [pool.submit(_make_chunk, start) for start in starts])
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
    """In a worker, before its first page."""
    # A terminal's Ctrl-C reaches all of them; the caller is the one that answers it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # it was killed before that could be asked for
    for kind, member in _NATIVE:
        setattr(kind, member, property(_refused))


def _refused(_: object) -> NoReturn:
    raise RuntimeError("a page that is made apart asks a frame")


def _sizes(
    pages: Sequence[Page], chunks: Sequence[Future[list[int | None]]]
) -> Iterator[tuple[Page, int | None]]:
    for number, chunk in enumerate(chunks):
        of_chunk = pages[number * _CHUNK : (number + 1) * _CHUNK]
        try:
            sizes = chunk.result()
        except BrokenProcessPool:
            sizes = [None] * len(of_chunk)
        yield from zip(of_chunk, sizes, strict=True)


def _make_chunk(start: int) -> list[int | None]:
    [(pages, make, stop)] = _inherited
    return [None if stop[0] else _size(make, page) for page in pages[start : start + _CHUNK]]


def _size(make: Make, page: Page) -> int | None:
    try:
        return make(page)
    except Exception:  # noqa: BLE001  the caller meets it again, where it can be told
        return None
