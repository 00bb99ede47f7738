"""One reading of both clocks at the start of a cell, from which all its times are computed.

Durations are monotonic, so that a change of the wall clock in the middle of a cell cannot bend them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Anchor:
    """`wall_ns` since the Unix epoch and `monotonic_ns`, read together."""

    wall_ns: int
    monotonic_ns: int

    @classmethod
    def now(cls) -> Anchor:
        return cls(time.time_ns(), time.monotonic_ns())

    @property
    def origin(self) -> float:
        """The start of the cell on `time.monotonic()`, in seconds."""
        return self.monotonic_ns / 1e9

    @property
    def started_at(self) -> datetime:
        """The start of the cell by the wall clock, in UTC, to the microsecond."""
        return _EPOCH + timedelta(microseconds=self.wall_ns // 1000)

    def elapsed(self) -> float:
        """Seconds since the start of the cell."""
        return (time.monotonic_ns() - self.monotonic_ns) / 1e9

    def since(self, monotonic: float) -> float:
        """Seconds from the start of the cell to a reading of `time.monotonic()`."""
        return monotonic - self.origin

    def unix_ns(self, at: float) -> int:
        """Wall time, in nanoseconds since the Unix epoch, of `at` seconds since the start of the cell."""
        return self.wall_ns + round(at * 1e9)
