"""What holds of all tests: the order in which they start, and what a busy machine must not change."""

from __future__ import annotations

import gc
from collections.abc import Generator

import pytest
from hypothesis import settings

# How long an example takes is the machine's affair, and no finding.
settings.register_profile("cab", settings(), deadline=None)
settings.load_profile("cab")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Garbage is not looked for while thousands of tests are made, nor among them ever after: a look through
    all of them takes half a second, and some tests, and libraries that they compare with, ask for hundreds.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that need an engine or a browser first, in whatever order they were shuffled into: a file of them
    takes minutes, and started last it would leave the other worker with nothing to do.
    """
    items.sort(key=lambda item: not any(item.get_closest_marker(name) for name in ("docker", "browser")))
