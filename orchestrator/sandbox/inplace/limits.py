"""The limits of the container or machine that cab finds itself in, as its control group states them."""

from __future__ import annotations

from pathlib import Path

from orchestrator.sandbox.contract import FoundLimits

CGROUP = Path("/sys/fs/cgroup")
UNLIMITED_BYTES = 1 << 62
"""Version 1 states some number near the largest where there is no limit."""


def found_limits(root: Path = CGROUP) -> FoundLimits:
    """Memory, processors and processes; None is no limit, or one that cannot be read."""
    memory = _number(root, "memory.max", "memory/memory.limit_in_bytes")
    quota, period = _quota(root)
    return FoundLimits(
        memory_bytes=memory if memory is not None and memory < UNLIMITED_BYTES else None,
        cpus=quota / period if quota is not None and quota > 0 and period else None,
        pids=_number(root, "pids.max", "pids/pids.max"),
    )


def _quota(root: Path) -> tuple[int | None, int | None]:
    """Microseconds of processor time, and the microseconds in which they may be used."""
    words = (_text(root / "cpu.max") or "").split()
    if len(words) == 2:
        return _whole(words[0]), _whole(words[1])
    return _number(root, "cpu/cpu.cfs_quota_us"), _number(root, "cpu/cpu.cfs_period_us")


def _number(root: Path, *names: str) -> int | None:
    """What the first of these files that is there says."""
    for name in names:
        if (text := _text(root / name)) is not None:
            return _whole(text)
    return None


def _whole(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:  # `max`
        return None


def _text(path: Path) -> str | None:
    try:
        return path.read_text("ascii").strip()
    except (OSError, ValueError):
        return None
