"""The time left is told from what each kind of cell has taken, not from how many have ended."""

from __future__ import annotations

import pytest

from orchestrator.plan.expand import PlannedCell
from orchestrator.report.forecast import Forecast
from orchestrator.store.names import CellKey


def cells(cli: str, amount: int, model: str = "m") -> list[PlannedCell]:
    keys = [CellKey(cli, model, f"t/{number}") for number in range(amount)]
    return [PlannedCell(key.cell_id("s"), key, None, 0) for key in keys]


class Told:
    """A forecast whose clock is moved by hand."""

    def __init__(self, planned: list[PlannedCell], at_once: int = 1) -> None:
        self.at = 0.0
        self.forecast = Forecast(planned, at_once, lambda: self.at)

    def took(self, cell: PlannedCell, seconds: float) -> None:
        self.forecast.started(cell)
        self.at += seconds
        self.forecast.ended(cell)


def test_nothing_is_told_before_a_cell_has_ended_and_after_the_last() -> None:
    (one,) = cells("a", 1)
    told = Told([one])
    assert told.forecast.left() is None
    told.took(one, 5)
    assert told.forecast.left() is None


def test_each_kind_counts_by_its_own_mean() -> None:
    quick, slow = cells("noop", 11), cells("agent", 11)
    told = Told([*quick, *slow])
    told.took(quick[0], 1)
    assert told.forecast.left() == 21  # of agent nothing is known yet
    told.took(slow[0], 100)
    assert told.forecast.left() == 10 * 1 + 10 * 100


def test_a_new_model_is_guessed_from_its_cli() -> None:
    known, other, new = cells("agent", 1), cells("noop", 1), cells("agent", 2, "new")
    told = Told([*known, *other, *new])
    told.took(known[0], 60)
    told.took(other[0], 2)
    assert told.forecast.left() == 120


def test_places_share_the_work_and_the_last_cell_decides() -> None:
    all_cells = cells("a", 6)
    told = Told(all_cells, at_once=2)
    told.took(all_cells[0], 10)
    assert told.forecast.left() == 25
    told.forecast.started(all_cells[1])
    told.at += 4
    assert told.forecast.left() == pytest.approx((6 + 4 * 10) / 2)
    for cell in all_cells[2:]:
        told.took(cell, 0)
    assert told.forecast.left() == 0  # under way beyond its mean (2 s by now): soon, not less than nothing


def test_a_cell_that_is_tried_again_waits_again_and_a_stopped_one_does_not() -> None:
    first, second, third = cells("a", 3)
    told = Told([first, second, third])
    told.took(first, 10)
    told.forecast.started(second)
    told.forecast.again(second)
    assert told.forecast.left() == 20
    told.forecast.started(second)
    told.forecast.stopped(second)
    assert told.forecast.left() == 10
