"""Cells that wait for somebody else's verdict: while one does, no rate and no comparison tells of any."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from analysis_samples import cells, frame

from orchestrator.analysis.cells import cells_of
from orchestrator.analysis.compare import compare
from orchestrator.analysis.groups import pairs, rows_of, unjudged
from orchestrator.analysis.measures import NO_RUN, UNJUDGED
from orchestrator.analysis.sides import sides
from orchestrator.analysis.summary import BYS, summarise
from orchestrator.store.index import IndexEntry

WAITING = {"passed": None, "composite": None, "composite_bounds": (0.0, 1.0), "composite_published": None}


def sweep(*of_b: int | None, sweep_id: str = "ext-1") -> list[IndexEntry]:
    """Condition a, all judged, and b by its verdicts: None waits. A CLI without conditions beside them."""
    given = {"sweep_id": sweep_id}
    made = cells("codex", [[1]] * len(of_b), condition="a", **given) + cells("aider", [[1], [0]], **given)
    for number, passed in enumerate(of_b, start=1):
        changes = WAITING if passed is None else {"passed": passed}
        [entry] = cells("codex", [[1]], condition="b", **given)
        task = f"polyglot/t{number}"
        key = entry.cell_id.replace("polyglot/t1", task)
        made.append(entry.model_copy(update={"task": task, "cell_id": key, **changes}))
    return made


def test_only_cells_under_conditions_wait() -> None:
    assert unjudged("a", "completed", None)
    assert not unjudged(None, "completed", None)
    assert not unjudged("a", "completed", 0.0)
    assert not unjudged("a", "infra_error", None)


def test_one_that_waits_takes_the_verdicts_of_its_sweep_and_no_others() -> None:
    made = sweep(1, 1, None)
    assert [row.passed for row in rows_of(made)] == [None, None, None, 1, 0, None, None, None]
    assert {row.state for row in rows_of(made) if "@" in row.cli} == {"infra"}
    other = sweep(1, 1, 1, sweep_id="ext-2")
    of = {
        cell.sweep_id: [it for it in cells_of(frame(made, other)) if it.sweep_id == cell.sweep_id]
        for cell in cells_of(frame(made, other))
    }
    assert sum(cell.unjudged for cell in of["ext-1"]) == 6
    assert sum(cell.unjudged for cell in of["ext-2"]) == 0
    assert {cell.row.passed for cell in of["ext-1"] if cell.condition} == {None}
    assert {cell.row.passed for cell in of["ext-2"] if cell.condition} == {1}


@pytest.mark.parametrize("by", BYS)
def test_no_rate_depends_on_verdicts_while_one_is_missing(by) -> None:
    some, others = sweep(1, 0, None), sweep(0, 1, None)
    numbers = [
        [{**asdict(line), "sweeps": ()} for line in summarise(frame(made), by).lines]
        for made in (some, others)
    ]
    assert numbers[0] == numbers[1]


def test_a_line_says_why_it_has_no_rate() -> None:
    lines = {line.name: line for line in summarise(frame(sweep(1, 1, None)), "pair").lines}
    for name in ("codex@a × v/one", "codex@b × v/one"):
        line = lines[name]
        assert (line.pass_rate.value, line.pass_rate.reason) == (None, UNJUDGED)
        assert (line.counted, line.infra, line.unjudged, line.censored) == (0, 3, 3, (0, 1))
        assert line.wall_s.reason == UNJUDGED
    assert lines["aider × v/one"].pass_rate.value == 0.5
    assert lines["aider × v/one"].unjudged == 0
    of = {pair.group.name: pair.group.pass_rate.value for pair in pairs(sweep(1, 1, None))}
    assert of == {"aider × v/one": 0.5, "codex@a × v/one": None, "codex@b × v/one": None}


def test_lost_cells_do_not_wait() -> None:
    made = sweep(1, 1, 1)
    made[-1] = made[-1].model_copy(update={**WAITING, "outcome": "infra_error", "cause": "engine"})
    [line] = [it for it in summarise(frame(made), "pair").lines if it.name == "codex@b × v/one"]
    assert (line.pass_rate.value, line.counted, line.infra, line.unjudged) == (1, 2, 1, 0)
    alone = sweep(1)[-1].model_copy(update={**WAITING, "outcome": "infra_error", "cause": "engine"})
    [line] = summarise(frame([alone]), "pair").lines
    assert line.pass_rate.reason == NO_RUN


def test_a_comparison_says_why_it_has_no_verdict() -> None:
    [found] = compare(*sides(cells_of(frame(sweep(*[1] * 7, None))), "a", "b")).comparisons
    assert (found.tasks, found.infra_a, found.unjudged_a, found.unjudged_b) == (0, 8, 8, 8)
    assert {it.verdict for it in found.differences} == {"not measured"}
    assert {it.reason for it in found.differences} == {UNJUDGED}
    assert found.bounds_a == found.bounds_b == (0, 1)
    [whole] = compare(*sides(cells_of(frame(sweep(*[0] * 8))), "a", "b")).comparisons
    assert (whole.pass_rate.verdict, whole.unjudged_a) == ("worse", 0)
