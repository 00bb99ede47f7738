"""Building, locking and checking of the images that cells run in. See docs/images.md."""

from orchestrator.sandbox.images.builder import Layout, Progress, build, init_is_current
from orchestrator.sandbox.images.check import not_built, stale, verify
from orchestrator.sandbox.images.lock import Finding, Lock, LockedImage, known_lock, load_lock

__all__ = [
    "Finding",
    "Layout",
    "Lock",
    "LockedImage",
    "Progress",
    "build",
    "init_is_current",
    "known_lock",
    "load_lock",
    "not_built",
    "stale",
    "verify",
]
