"""Charts as coordinates: what stands where in an SVG. Templates draw it, and escape its texts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 960.0, 520.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 24.0, 18.0, 52.0
LABEL_HEIGHT, LABEL_LETTER = 14.0, 6.6
_STEPS = (1, 2, 5)


@dataclass(frozen=True)
class Point:
    """One point with its intervals; bounds are None where they are not known. `y` is a share."""

    name: str
    x: float
    y: float
    x_bounds: tuple[float | None, float | None]
    y_bounds: tuple[float | None, float | None]


@dataclass(frozen=True)
class Mark:
    """A point on paper: its middle, its whiskers, and where its label stands and which end of it that is."""

    name: str
    x: float
    y: float
    x_whisker: tuple[float, float]
    y_whisker: tuple[float, float]
    label: tuple[float, float, str] | None


@dataclass(frozen=True)
class Tick:
    at: float
    text: str


@dataclass(frozen=True)
class Scatter:
    """A chart of points over a logarithmic axis of x and a share as y, from 0 to 1."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    marks: list[Mark]
    path: str
    """Through those of `front`, from left to right, as the data of an SVG path; empty of less than two."""


def scatter(points: Sequence[Point], front: Sequence[str], shown: Callable[[float], str]) -> Scatter:
    """Lay points out; those named in `front` are joined and labelled where there is room.

    `shown` makes text of a value of x. Values of x that are not positive stand at the left edge.
    """
    low, high = _range(points)
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def across(value: float) -> float:
        share = (math.log10(max(value, low)) - math.log10(low)) / (math.log10(high) - math.log10(low))
        return round(LEFT + (right - LEFT) * min(1.0, max(0.0, share)), 1)

    def up(share: float) -> float:
        return round(bottom - (bottom - TOP) * min(1.0, max(0.0, share)), 1)

    joined = sorted((point for point in points if point.name in front), key=lambda point: (point.x, point.y))
    labels = _labels([(point.name, across(point.x), up(point.y)) for point in joined], right)
    marks = [
        Mark(
            point.name,
            across(point.x),
            up(point.y),
            _whisker(point.x_bounds, point.x, across),
            _whisker(point.y_bounds, point.y, up),
            labels.get(point.name),
        )
        for point in points
    ]
    steps = [f"{across(point.x)} {up(point.y)}" for point in joined]
    return Scatter(
        *(WIDTH, HEIGHT, LEFT, right, TOP, bottom),
        x_ticks=[Tick(across(value), shown(value)) for value in ticks(low, high)],
        y_ticks=[Tick(up(share / 5), f"{share * 20} %") for share in range(6)],
        marks=marks,
        path="M" + "L".join(steps) if len(steps) > 1 else "",
    )


def ticks(low: float, high: float) -> list[float]:
    """Round values from low to high on a logarithmic scale: 1, 2 and 5 of each power, or 1 of many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = _STEPS if len(powers) <= 4 else _STEPS[:1]
    values = [float(f"{step}e{power}") for power in powers for step in steps]
    return [value for value in values if low <= value <= high]


def _range(points: Sequence[Point]) -> tuple[float, float]:
    """The values of x from edge to edge: all of the points, most of their intervals, at least a factor 2."""
    values = [point.x for point in points if point.x > 0]
    low, high = min(values, default=1.0), max(values, default=1.0)
    bounds = [bound for point in points for bound in point.x_bounds if bound is not None and bound > 0]
    # One wide interval would squeeze all points: whiskers are cut at the edge instead.
    low, high = max(min([low, *bounds]), low / 3) * 0.85, min(max([high, *bounds]), high * 3) * 1.15
    middle = math.sqrt(low * high)
    return min(low, middle / 1.5), max(high, middle * 1.5)


def _whisker(
    bounds: tuple[float | None, float | None], value: float, place: Callable[[float], float]
) -> tuple[float, float]:
    low, high = (value if bound is None else bound for bound in bounds)
    return place(low), place(high)


def _labels(points: Sequence[tuple[str, float, float]], right: float) -> dict[str, tuple[float, float, str]]:
    """Where labels stand: beside their points and above their whiskers, left out where another label is."""
    taken: list[tuple[float, float, float]] = []
    found: dict[str, tuple[float, float, str]] = {}
    for name, x, y in points:
        length = len(name) * LABEL_LETTER
        fits = x + 10 + length <= right
        begin = x + 10 if fits else x - 10 - length
        meets = any(
            abs(y - other_y) < LABEL_HEIGHT and begin < other_end and other_begin < begin + length
            for other_begin, other_end, other_y in taken
        )
        if meets or begin < LEFT:
            continue
        taken.append((begin, begin + length, y))
        found[name] = (round(x + 10, 1), y - 6, "start") if fits else (round(x - 10, 1), y - 6, "end")
    return found
