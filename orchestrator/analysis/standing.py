"""Places in a ranking, as ranges: one stands above another only where their intervals do not meet.

Two 95 % intervals that do not meet are stronger evidence than a test at 5 % asks for, so a place says less
than a paired comparison could, and never more.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Better = Literal["higher", "lower"]


@dataclass(frozen=True)
class Span:
    """The values between which a number lies, by its interval and by what was not measured; low <= high."""

    low: float
    high: float


@dataclass(frozen=True)
class Place:
    """From the best place that is possible to the worst, from 1; `of` is the number of those ranked."""

    best: int
    worst: int
    of: int

    def __str__(self) -> str:
        return str(self.best) if self.best == self.worst else f"{self.best}–{self.worst}"


def places(spans: Mapping[str, Span], better: Better) -> dict[str, Place]:
    """The place of each: after all that are clearly better, before all that are clearly worse."""
    facing = {name: _facing(span, better) for name, span in spans.items()}
    lows = sorted(span.low for span in facing.values())
    highs = sorted(span.high for span in facing.values())
    total = len(facing)
    return {
        name: Place(
            best=1 + total - bisect_right(lows, span.high),
            worst=total - bisect_left(highs, span.low),
            of=total,
        )
        for name, span in facing.items()
    }


def leaders(spans: Mapping[str, Span], better: Better) -> list[str]:
    """Those that no other is clearly better than, by name: of these, chance may have chosen the first."""
    return sorted(name for name, place in places(spans, better).items() if place.best == 1)


def beaten_by(spans: Sequence[Mapping[str, Span]], betters: Sequence[Better]) -> dict[str, list[str]]:
    """For each name that all of `spans` have, those that are clearly better in every one of them, by name."""
    names = sorted(set.intersection(*(set(of) for of in spans))) if spans else []
    facing = [
        {name: _facing(of[name], better) for name in names} for of, better in zip(spans, betters, strict=True)
    ]
    return {
        name: [other for other in names if all(of[other].low > of[name].high for of in facing)]
        for name in names
    }


def _facing(span: Span, better: Better) -> Span:
    """A span turned so that higher is better."""
    return span if better == "higher" else Span(-span.high, -span.low)
