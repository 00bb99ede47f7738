"""Choosing from many versions, given and returned as text."""

from __future__ import annotations

from collections.abc import Iterable

from semrange.range import Range
from semrange.version import Version


def sort_versions(texts: Iterable[str]) -> list[str]:
    """From the oldest to the newest; equal ones stay in the order given."""
    return sorted(texts, key=Version.parse)


def max_satisfying(texts: Iterable[str], wanted: str) -> str | None:
    """The newest that is in the range `wanted`; None where there is none."""
    found = _satisfying(texts, wanted)
    return found[-1] if found else None


def min_satisfying(texts: Iterable[str], wanted: str) -> str | None:
    """The oldest that is in the range `wanted`; None where there is none."""
    found = _satisfying(texts, wanted)
    return found[0] if found else None


def _satisfying(texts: Iterable[str], wanted: str) -> list[str]:
    allowed = Range.parse(wanted)
    return [text for text in sort_versions(texts) if Version.parse(text) in allowed]
