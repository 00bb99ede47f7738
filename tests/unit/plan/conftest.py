"""Fixtures of the tests about tasks."""

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def root() -> Path:
    return Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def tasks(root: Path) -> Path:
    return root / "tasks"
