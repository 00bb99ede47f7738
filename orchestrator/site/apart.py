"""Pages that several processes make at once: those of cells take most of a build's time.

The workers are forked, so that they have what was read already. A forked process may not use polars, whose
threads it has not: only pages that say so (`Page.apart`) are made here. What a worker could not make is left
to the caller, who then meets the fault itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context

from orchestrator.site.output import Page

LEAST = 100
"""Pages for which it is worth starting processes."""
_CHUNK = 25

Make = Callable[[Page], int]
"""Makes a page in its place, and says how many bytes it has."""

_inherited: list[tuple[Sequence[Page], Make]] = []
"""What the workers of this process are forked to do; empty when there are none."""


@contextmanager
def made_apart(pages: Sequence[Page], make: Make) -> Iterator[Iterator[tuple[Page, int | None]]]:
    """Have pages made while the caller does something else.

    Gives each page with its size in bytes, in their order; None for one that is left to the caller: all of
    them where there are few, or no second core.
    """
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
    if cores < 2 or len(pages) < LEAST:
        yield ((page, None) for page in pages)
        return
    _inherited.append((pages, make))
    try:
        with ProcessPoolExecutor(cores, mp_context=get_context("fork")) as pool:
            starts = range(0, len(pages), _CHUNK)
            yield _sizes(pages, [pool.submit(_make_chunk, start) for start in starts])
            pool.shutdown(cancel_futures=True)
    finally:
        _inherited.clear()


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
    [(pages, make)] = _inherited
    return [_size(make, page) for page in pages[start : start + _CHUNK]]


def _size(make: Make, page: Page) -> int | None:
    try:
        return make(page)
    except Exception:  # noqa: BLE001  the caller meets it again, where it can be told
        return None
