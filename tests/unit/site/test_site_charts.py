"""Where points of a chart stand, and which stand in front."""

from __future__ import annotations

import pytest

from orchestrator.site.charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Point, scatter, ticks
from orchestrator.site.pages.pareto import front_of


def point(name: str, x: float, y: float, spread: float = 0.1) -> Point:
    return Point(name, x, y, (x * (1 - spread), x * (1 + spread)), (max(0, y - spread), min(1, y + spread)))


def test_a_logarithmic_axis_keeps_ratios() -> None:
    marks = scatter([point("a", 1, 0.5), point("b", 10, 0.5), point("c", 100, 0.5)], [], str).marks
    assert marks[1].x - marks[0].x == pytest.approx(marks[2].x - marks[1].x, abs=0.2)
    assert {mark.y for mark in marks} == {(TOP + HEIGHT - BOTTOM) / 2}


def test_everything_lies_on_the_paper() -> None:
    points = [
        Point("free", 0, 1, (None, None), (0.9, 1)),
        Point("wide", 1, 0, (1e-9, 1e9), (None, None)),
        point("same", 1, 0.5),
    ]
    chart = scatter(points, ["free", "wide"], str)
    for mark in chart.marks:
        assert all(LEFT <= x <= WIDTH - RIGHT for x in (mark.x, *mark.x_whisker))
        assert all(TOP <= y <= HEIGHT - BOTTOM for y in (mark.y, *mark.y_whisker))
    assert chart.marks[0].x == LEFT


def test_labels_that_would_meet_are_left_out() -> None:
    chart = scatter([point("first", 1, 0.5), point("second", 1.01, 0.5)], ["first", "second"], str)
    assert [mark.label is not None for mark in chart.marks] == [True, False]
    near_edge = scatter([point("a", 1, 0.2), point("on the right", 50, 0.9)], ["a", "on the right"], str)
    label = near_edge.marks[1].label
    assert label is not None
    assert label[2] == "end"


def test_a_front_of_one_has_no_line() -> None:
    assert scatter([point("a", 1, 0.5)], ["a"], str).path == ""
    assert scatter([point("a", 1, 0.5), point("b", 2, 0.6)], ["a", "b"], str).path.count("L") == 1


def test_ticks_are_round() -> None:
    assert ticks(0.9, 25) == [1, 2, 5, 10, 20]
    assert ticks(1, 1e6) == [1, 10, 100, 1000, 10000, 100000, 1000000]


def test_the_front_is_what_nothing_beats_in_both() -> None:
    points = {"cheap": (1, 0.5), "good": (3, 0.9), "behind": (3, 0.8), "dear": (9, 0.9), "twin": (1, 0.5)}
    assert front_of(points) == ["cheap", "twin", "good"]
