"""Semantic versions and ranges of them."""

from semrange.pick import max_satisfying, min_satisfying, sort_versions
from semrange.range import Range, RangeError
from semrange.version import Version, VersionError

__all__ = [
    "Range",
    "RangeError",
    "Version",
    "VersionError",
    "max_satisfying",
    "min_satisfying",
    "sort_versions",
]
