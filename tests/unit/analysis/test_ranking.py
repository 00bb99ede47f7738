"""Who is told apart on given results, and which cells come next."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
from analysis_samples import SWEEP
from report_samples import entry

from orchestrator.analysis.ranking import Ranking, cells_at_most, decided_earliest, rank, saved, upcoming
from orchestrator.plan.runs import AdaptiveRuns
from orchestrator.store.index import IndexEntry
from orchestrator.store.names import CellKey

TASKS = [f"polyglot/t{number}" for number in range(8)]
RUNS = AdaptiveRuns(min=2, max=8, until="ranking")
World = Mapping[tuple[str, str], float]
"""By CLI and model: the probability of a pass."""
THREE: World = {("good", "m"): 0.95, ("fair", "m"): 0.5, ("same", "m"): 0.5}


def cell_id(cli: str, model: str, task: str, run: int) -> str:
    return CellKey(cli, model, task, run).cell_id(SWEEP)


def first_round(world: World, tasks: list[str] = TASKS) -> list[str]:
    return [cell_id(cli, model, task, 1) for cli, model in world for task in tasks]


def result(world: World, cell: str, **given: Any) -> IndexEntry:
    """What a cell comes to: the same whenever it is run."""
    key = CellKey.of_id(cell)[1]
    passed = random.Random(cell).random() < world[key.cli, key.model]
    return entry(key.cli, key.model, key.task, key.run, passed=float(passed), **given)


def sweep(world: World, runs: AdaptiveRuns = RUNS) -> tuple[Ranking, dict[str, IndexEntry]]:
    """A whole sweep, round by round."""
    order = first_round(world)
    finished: dict[str, IndexEntry] = {}
    while coming := upcoming(order, finished, runs):
        assert not finished.keys() & set(coming)
        finished |= {cell: result(world, cell) for cell in coming}
        order = list(dict.fromkeys((*order, *coming)))
    return rank(order, finished, runs), finished


def runs_of(finished: Mapping[str, IndexEntry]) -> dict[str, int]:
    return {
        it.cli: max(that.run for that in finished.values() if that.cli == it.cli) for it in finished.values()
    }


def test_only_those_that_are_not_told_apart_run_on() -> None:
    found, finished = sweep(THREE)
    assert found.state == "max_runs"
    assert found.decided == 2
    assert runs_of(finished) == {"good": runs_of(finished)["good"], "fair": 8, "same": 8}
    assert runs_of(finished)["good"] < 6
    ranks = {it.name: (it.best_rank, it.worst_rank) for it in found.standings}
    assert ranks == {"good × m": (1, 1), "fair × m": (2, 3), "same × m": (2, 3)}
    [tied] = [it for it in found.comparisons if it.better is None]
    assert (tied.first, tied.second) == ("fair × m", "same × m")
    assert tied.low < 0 < tied.high


def test_every_run_has_all_tasks() -> None:
    _, finished = sweep(THREE)
    counts: dict[tuple[str, int], set[str]] = {}
    for it in finished.values():
        counts.setdefault((it.cli, it.run), set()).add(it.task)
    assert set(map(len, counts.values())) == {len(TASKS)}


def test_it_ends_when_all_are_told_apart() -> None:
    world = {("good", "m"): 1.0, ("fair", "m"): 0.5, ("poor", "m"): 0.0}
    found, finished = sweep(world)
    assert (found.state, found.decided, found.to_run) == ("decided", 3, ())
    assert len(finished) < len(first_round(world)) * RUNS.max / 2
    assert all(it.decided_in is not None and it.decided_in <= it.runs for it in found.comparisons)


def test_the_fewest_runs_are_made_even_where_the_first_decides() -> None:
    _, finished = sweep({("good", "m"): 1.0, ("poor", "m"): 0.0}, AdaptiveRuns(min=4, max=9, until="ranking"))
    assert runs_of(finished) == {"good": 4, "poor": 4}


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_cells_and_results_does_not_matter(seed: int) -> None:
    found, finished = sweep(THREE)
    shuffled, order = list(finished.items()), list(finished)
    random.Random(seed).shuffle(shuffled)
    random.Random(seed + 1).shuffle(order)
    assert rank(order, dict(shuffled), RUNS) == found


@pytest.mark.parametrize("left", [1, 25, 50, 85])
def test_a_sweep_that_was_killed_comes_to_the_decisions_it_would_have_come_to(left: int) -> None:
    whole, finished = sweep(THREE)
    kept = dict(list(finished.items())[:left])
    order = list(dict.fromkeys((*first_round(THREE), *kept)))
    while coming := upcoming(order, kept, RUNS):
        # A few cells at a time, as if each were the last before the power went.
        kept |= {cell: result(THREE, cell) for cell in coming[:5]}
        order = list(dict.fromkeys((*order, *coming)))
    assert rank(order, kept, RUNS) == whole
    assert kept.keys() == finished.keys()


def test_scripted_models_run_the_fewest_and_are_not_ranked() -> None:
    world = {**THREE, ("good", "embedded/reference"): 1.0, ("good", "embedded/idle"): 0.0}
    found, finished = sweep(world)
    assert found.scripted == ("good × embedded/idle", "good × embedded/reference")
    assert {it.kind for it in found.standings} == {"result"}
    assert max(it.run for it in finished.values() if it.model.startswith("embedded/")) == RUNS.min
    alone, finished = sweep({("good", "embedded/idle"): 0.0, ("fair", "embedded/idle"): 0.0})
    assert (alone.state, len(finished)) == ("nothing_to_rank", 2 * 8 * RUNS.min)


def test_baselines_are_ranked_among_themselves() -> None:
    found, _ = sweep({("good", "m"): 0.9, ("poor", "m"): 0.1, ("oracle", "none"): 1.0, ("noop", "none"): 0.0})
    assert [(it.first, it.second, it.kind) for it in found.comparisons] == [
        ("good × m", "poor × m", "result"),
        ("noop × none", "oracle × none", "baseline"),
    ]
    assert [it.better for it in found.comparisons] == ["good × m", "oracle × none"]


def test_a_cell_without_a_result_is_no_reason_to_tell_apart() -> None:
    world = {("good", "m"): 1.0, ("lost", "m"): 0.0}
    order = [cell_id(cli, "m", task, run) for cli, _ in world for task in TASKS for run in (1, 2)]
    finished = {cell: result(world, cell) for cell in order}
    assert rank(order, finished, RUNS).state == "decided"
    for cell in order:
        if "lost" in cell:
            finished[cell] = result(world, cell, outcome="infra_error", cause="engine")
    found = rank(order, finished, RUNS)
    assert found.state == "open"
    assert {CellKey.of_id(cell)[1].run for cell in found.to_run} == {3}
    [pair] = found.comparisons
    assert (pair.difference, pair.censored, pair.better) == (None, 16, None)
    assert pair.low <= 0 < pair.high


def test_a_contestant_that_cannot_be_run_is_none() -> None:
    order = first_round(THREE)
    found = rank(order, {}, RUNS, left_out={cell for cell in order if "same" in cell})
    assert {CellKey.of_id(cell)[1].cli for cell in found.to_run} == {"good", "fair"}


def test_contestants_are_compared_over_the_tasks_that_both_have() -> None:
    order = [cell_id("one", "m", task, 1) for task in TASKS[:5]] + [
        cell_id("two", "m", task, 1) for task in TASKS[3:]
    ]
    world = {("one", "m"): 1.0, ("two", "m"): 1.0}
    cells = [cell.replace("#run1", f"#run{run}") for cell in order for run in (1, 2)]
    [pair] = rank(cells, {cell: result(world, cell) for cell in cells}, RUNS).comparisons
    assert pair.tasks == 2
    apart = [cell_id("one", "m", TASKS[0], 1), cell_id("two", "m", TASKS[1], 1)]
    assert rank(apart, {}, RUNS).comparisons == ()
    assert decided_earliest(apart) is None
    assert cells_at_most(apart, RUNS) == 2 * RUNS.min


def test_more_runs_go_on_from_what_there_is() -> None:
    found, finished = sweep(THREE)
    more = rank(list(finished), finished, RUNS.model_copy(update={"max": 20}))
    assert more.state == "open"
    assert {(CellKey.of_id(cell)[1].cli, CellKey.of_id(cell)[1].run) for cell in more.to_run} == {
        ("fair", 9),
        ("same", 9),
    }
    assert more.comparisons == found.comparisons


def test_stacks_are_contestants_of_their_own() -> None:
    keys = [CellKey("cli", "vendor/m", TASKS[0], 1, stack) for stack in ("none", "careful")]
    [pair] = rank([key.cell_id(SWEEP) for key in keys], {}, RUNS).comparisons
    assert (pair.first, pair.second) == ("cli × vendor/m", "cli+careful × vendor/m")


def test_what_was_saved_is_what_the_other_runs_would_have_taken() -> None:
    world = {("good", "m"): 1.0, ("poor", "m"): 0.0, ("oracle", "none"): 1.0}
    order = [cell_id(cli, model, task, run) for cli, model in world for task in TASKS for run in (1, 2)]
    finished = {cell: result(world, cell, total_tokens=100, cost_usd=0.5) for cell in order}
    found = saved(order, finished, RUNS)
    assert (found.cells, found.uniform_cells) == (48, 24 * 8)
    assert (found.tokens, found.uniform_tokens) == (3200, 3200 * 4)
    assert (found.usd, found.uniform_usd) == (16, 64)
    finished[order[0]] = result(world, order[0], total_tokens=None, cost_usd=0.5)
    found = saved(order, finished, RUNS)
    assert (found.tokens, found.uniform_tokens, found.usd) == (None, None, 16)


def test_how_many_cells_and_runs_it_may_take_is_known_before() -> None:
    order = first_round({**THREE, ("good", "embedded/idle"): 0.0})
    assert cells_at_most(order, RUNS) == 8 * (3 * 8 + 2)
    earliest = decided_earliest(order)
    assert earliest is not None
    assert earliest <= 2
    of_one_task = decided_earliest(first_round(THREE, TASKS[:1]))
    assert of_one_task is not None
    assert of_one_task > RUNS.max
