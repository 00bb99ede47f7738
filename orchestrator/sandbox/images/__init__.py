"""Building, locking and checking of the images that cells run in. See docs/images.md."""

from orchestrator.sandbox.images.builder import build
from orchestrator.sandbox.images.check import not_built, stale, verify
from orchestrator.sandbox.images.keep import init_is_current
from orchestrator.sandbox.images.layout import Layout
from orchestrator.sandbox.images.lock import Finding, Lock, LockedImage, known_lock, load_lock
from orchestrator.sandbox.images.progress import Progress
from orchestrator.sandbox.images.pull import pull
from orchestrator.sandbox.images.push import push
from orchestrator.sandbox.images.registry import Registry
from orchestrator.sandbox.images.relock import relock

__all__ = [
    "Finding",
    "Layout",
    "Lock",
    "LockedImage",
    "Progress",
    "Registry",
    "build",
    "init_is_current",
    "known_lock",
    "load_lock",
    "not_built",
    "pull",
    "push",
    "relock",
    "stale",
    "verify",
]
