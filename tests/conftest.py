"""What holds of all tests: the order in which they start."""

from __future__ import annotations

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that need an engine or a browser first, in whatever order they were shuffled into: a file of them
    takes minutes, and started last it would leave the other worker with nothing to do.
    """
    items.sort(key=lambda item: not any(item.get_closest_marker(name) for name in ("docker", "browser")))
