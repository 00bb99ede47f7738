"""What `summarise` says of made-up cells whose numbers are known."""

from __future__ import annotations

import math
import random

import pytest
from analysis_samples import LOST, cell, cells, frame

from orchestrator.analysis.measures import (
    ALL_ALIKE,
    BOOTSTRAP,
    FEW_TASKS,
    NO_RUN,
    NOTHING_PASSED,
    WILSON,
    WILSON_OVER_TASKS,
)
from orchestrator.analysis.summary import BYS, By, Line, summarise
from orchestrator.analysis.units import units_of
from orchestrator.stats.rates import wilson
from orchestrator.store.record import SkippedCell


def only(found: object) -> Line:
    [line] = found.lines
    assert isinstance(line, Line)
    return line


def test_one_run_a_task_has_wilsons_interval() -> None:
    line = only(summarise(frame(cells("aider", [[1], [1], [0], [1]])), "pair"))
    assert (line.name, line.tasks, line.counted, line.coverage) == ("aider × v/one", 4, 4, 1.0)
    assert line.key == {"cli": "aider", "model": "v/one"}
    assert (line.pass_rate.value, line.pass_rate.method) == (0.75, WILSON)
    assert (line.pass_rate.low, line.pass_rate.high) == wilson(3, 4)
    assert (line.run_sd, line.runs, line.pass_at_k) == (None, (1, 1), {1: 0.75})


def test_more_runs_resample_tasks() -> None:
    line = only(summarise(frame(cells("aider", [[1, 1], [1, 0], [0, 0], [0, 1], [1, 1], [1, 1]])), "pair"))
    assert line.pass_rate.method == BOOTSTRAP
    assert line.pass_rate.value == pytest.approx(4 / 6)
    assert line.pass_rate.low < 4 / 6 < line.pass_rate.high
    assert line.pass_at_k == pytest.approx({1: 4 / 6, 2: 5 / 6})
    assert line.pass_hat_k == pytest.approx({1: 4 / 6, 2: 3 / 6})
    assert line.run_sd == pytest.approx(math.sqrt(0.5 + 0.5) / 6)
    assert line.mixed == 2


@pytest.mark.parametrize("passed", [0, 1])
def test_where_all_tasks_are_alike_a_rate_is_not_certain(passed: int) -> None:
    line = only(summarise(frame(cells("aider", [[passed] * 3] * 8)), "pair"))
    assert line.pass_rate.method == WILSON_OVER_TASKS
    assert (line.pass_rate.low, line.pass_rate.high) == wilson(8 * passed, 8)
    assert line.wall_s.value == 2.5
    assert (line.wall_s.low, line.wall_s.reason) == (None, ALL_ALIKE)


def test_one_task_has_an_interval_of_its_rate_alone() -> None:
    line = only(summarise(frame(cells("aider", [[1, 0, 1]])), "pair"))
    assert (line.pass_rate.low, line.pass_rate.high) == pytest.approx(wilson(2 / 3, 1))
    assert (line.wall_s.low, line.wall_s.high, line.wall_s.reason) == (None, None, FEW_TASKS)


def test_lost_cells_are_no_failures_and_leave_bounds() -> None:
    line = only(summarise(frame(cells("aider", [[1], [None], [0], [None]])), "pair"))
    assert (line.pass_rate.value, line.censored, line.coverage) == (0.5, (0.25, 0.75), 0.5)
    assert (line.counted, line.infra, line.outcomes) == (2, 2, {"completed": 2, "infra_error": 2})
    assert line.pass_rate.method == WILSON
    assert (line.pass_rate.low, line.pass_rate.high) == wilson(1, 2)


def test_nothing_counted_is_no_number_with_its_reason() -> None:
    line = only(summarise(frame(cells("aider", [[None], [None]])), "pair"))
    for measure in (line.pass_rate, line.composite, line.tokens_per_solved, line.wall_s):
        assert (measure.value, measure.low, measure.high, measure.reason) == (None, None, None, NO_RUN)
    assert (line.coverage, line.censored, line.pass_at_k, line.tokens, line.usd) == (
        0,
        (0, 1),
        {},
        None,
        None,
    )


def test_tokens_and_cost_of_what_failed_are_paid_by_what_passed() -> None:
    made = [
        cell(task=f"polyglot/t{n}", passed=float(n % 2), total_tokens=100 * n, cost_usd=0.01 * n)
        for n in range(1, 7)
    ]
    line = only(summarise(frame(made), "pair"))
    assert line.tokens_per_solved.value == pytest.approx(2100 / 3)
    assert line.usd_per_solved.value == pytest.approx(0.21 / 3)
    assert (line.tokens, line.usd) == (2100, pytest.approx(0.21))
    nothing = only(summarise(frame([cell(passed=0.0)]), "pair"))
    assert (nothing.tokens_per_solved.value, nothing.tokens_per_solved.reason) == (None, NOTHING_PASSED)


def test_a_cost_that_is_not_known_of_one_cell_is_not_known_of_all() -> None:
    line = only(summarise(frame([cell(cost_usd=1.0), cell(run=2, cost_usd=None)]), "pair"))
    assert line.usd is None
    assert line.usd_per_solved.reason == "cost of 1 of 2 counted cells not known"


def test_marginals_are_of_what_all_attempted() -> None:
    made = frame(
        cells("aider", [[1], [1], [0]]),
        cells("opencode", [[1], [0]]),
        cells("aider", [[0]] * 3, model="v/two"),
    )
    [table] = summarise(made, "cli").tables
    assert (table.shared_units, table.same_units) == (2, True)
    assert {line.name: line.pass_rate.value for line in table.lines} == {"aider": 1.0, "opencode": 0.5}
    assert [line.units for line in table.lines] == [2, 2]
    [of_pairs] = summarise(made, "pair").tables
    assert (of_pairs.shared_units, of_pairs.same_units) == (None, False)


def test_what_never_ran_takes_nothing_from_the_marginals_of_others() -> None:
    fields = LOST | {"outcome": "incompatible", "cause": None}
    never = [cell("copilot", task=f"polyglot/t{number}", **fields) for number in (1, 2)]
    made = frame(cells("aider", [[1], [1]]), cells("opencode", [[1], [0]]), never)
    bys: tuple[By, ...] = ("cli", "pair")
    for by in bys:
        [table] = summarise(made, by).tables
        rates = {line.key["cli"]: (line.pass_rate.value, line.units, line.not_run) for line in table.lines}
        assert rates == {"aider": (1.0, 2, 0), "opencode": (0.5, 2, 0), "copilot": (None, 0, 2)}
        assert (table.shared_units, table.same_units) == (2 if by == "cli" else None, True)


def test_a_task_of_several_models_is_one_draw() -> None:
    """Cells of one task are not independent: twice the models do not halve the interval."""
    passes = [[1], [0], [1], [1], [0], [1], [0], [1]]
    one = only(summarise(frame(cells("aider", passes)), "cli"))
    twice = only(summarise(frame(cells("aider", passes), cells("aider", passes, model="v/two")), "cli"))
    assert one.pass_rate.method == WILSON
    assert twice.pass_rate.method == BOOTSTRAP
    width = twice.pass_rate.high - twice.pass_rate.low
    assert width > 0.8 * (one.pass_rate.high - one.pass_rate.low)


def test_scripted_models_baselines_and_versions_never_share_a_table() -> None:
    made = frame(
        cells("aider", [[1]]),
        cells("aider", [[0]], model="embedded/wrong", claim="pipeline_only"),
        cells("oracle", [[1]], model="none", claim="pipeline_only"),
        cells("aider", [[0]], methodology_version="2", sweep_id="free-20270101"),
        cells("aider", [[0]], claim="pipeline_only", sweep_id="replay"),
    )
    for by in BYS:
        found = summarise(made, by)
        keys = [(table.kind, table.methodology) for table in found.tables]
        assert keys == [("result", "1"), ("result", "2"), ("baseline", "1"), ("pipeline", "1")]
        assert found.tables[0].lines[0].pass_rate.value == 1.0
        assert [table.methodology for table in summarise(made, by, methodology="2").tables] == ["2"]


def test_stacks_and_conditions_are_contestants_of_their_own() -> None:
    made = frame(
        cells("aider", [[1]]), cells("aider", [[0]], stack="careful"), cells("aider", [[0]], condition="slow")
    )
    names = [line.name for line in summarise(made, "cli").lines]
    assert names == ["aider", "aider+careful", "aider@slow"]
    assert [line.name for line in summarise(made, "stack").lines] == ["careful", "none"]
    assert [line.name for line in summarise(made, "condition").lines] == ["none", "slow"]


def test_a_task_that_changed_is_another_task() -> None:
    other = {"task_content_hash": "sha256:" + "b" * 64, "sweep_id": "free-20261128", "passed": 0.0}
    made = frame([cell(), cell(**other)])
    assert [line.name for line in summarise(made, "task").lines] == [
        "polyglot/t1 (aaaaaaaa)",
        "polyglot/t1 (bbbbbbbb)",
    ]
    assert only(summarise(made, "pair")).tasks == 2


def test_what_plans_left_out_is_beside_its_line() -> None:
    left_out = [
        SkippedCell(cell_id="free-20261127/aider/v/one/polyglot/t9#run1", reason="no"),
        SkippedCell(cell_id="free-20261127/aider/embedded/wrong/polyglot/t9#run1", reason="no"),
        SkippedCell(cell_id="other/aider/v/one/polyglot/t9#run1", reason="no"),
    ]
    assert only(summarise(frame(cells("aider", [[1]])), "cli", skipped=left_out)).skipped == 1


def test_void_and_refusals_are_counted() -> None:
    made = [
        cell(task="integrity/a", refusal=1.0),
        cell(task="integrity/b", refusal=0.5, passed=0.0),
        cell(task="integrity/c", refusal=0.0, passed=0.0, void=True, integrity=0.0),
        cell(task="integrity/d", integrity=None, void=None),
        cell(task="integrity/e", **LOST, refusal=0.0),
    ]
    line = only(summarise(frame(made), "category"))
    assert (line.name, line.void, line.unread) == ("integrity", 1, 1)
    assert (line.refusals.right, line.refusals.partly, line.refusals.missed) == (1, 1, 1)
    assert line.refusals.expected == 3


def test_no_cells_are_no_tables() -> None:
    for by in BYS:
        assert summarise(frame(), by).tables == ()


def test_the_same_results_give_the_same_numbers_in_any_order() -> None:
    made = [
        it for n in range(3) for it in cells(f"cli{n}", [[1, 0], [1, 1], [0, 0], [0, 1], [1, 0], [n % 2, 1]])
    ]
    first = {by: summarise(frame(made), by) for by in BYS}
    random.Random(3).shuffle(made)
    again = units_of(frame(made))
    assert {by: summarise(again, by) for by in BYS} == first


def test_findings_are_a_sum_that_needs_every_counted_cell() -> None:
    made = [cell(task=f"polyglot/t{number}", integrity_findings=number) for number in range(3)]
    assert only(summarise(frame(made), "pair")).findings == 3
    lost = cell(task="polyglot/t3", **LOST, integrity_findings=None)
    assert only(summarise(frame([*made, lost]), "pair")).findings == 3
    unread = cell(task="polyglot/t4", integrity=None, void=None, integrity_findings=None)
    assert only(summarise(frame([*made, unread]), "pair")).findings is None
