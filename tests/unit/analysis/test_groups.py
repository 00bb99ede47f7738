"""What is a row of a rate, and what may be said of the rate."""

import pytest
from analysis_samples import frame
from report_samples import entry

from orchestrator.analysis.groups import UNRANKED, pairs, rows_of
from orchestrator.analysis.summary import summarise


def state(**given):
    [row] = rows_of([entry(**given)])
    return row.state


def test_the_outcome_table_of_today_decides_what_counts():
    assert state(outcome="infra_error", counted=True) == "infra"
    assert state(outcome="completed", counted=False) == "counted"
    assert state(outcome="cancelled", passed=None) == "not_run"
    assert state(outcome="completed", passed=None) == "infra"


def test_a_pair_claims_no_more_than_its_weakest_cell():
    cells = [entry(run=run) for run in (1, 2, 3)]
    assert pairs(cells)[0].claim == "citable"
    assert pairs([*cells, entry(run=4, claim="provisional")])[0].claim == "provisional"
    mixed = [*cells, entry(run=4, claim="provisional"), entry(run=5, claim="pipeline_only")]
    assert pairs(mixed)[0].claim == "pipeline_only"


def test_a_rate_of_few_runs_is_unranked():
    assert pairs([entry(run=1), entry(run=2)])[0].claim == UNRANKED
    some = [entry(run=run) for run in (1, 2, 3)]
    assert pairs([*some, entry(task="polyglot/other")])[0].claim == UNRANKED


@pytest.mark.parametrize("outcome", ["incompatible", "skipped", "sweep_budget", "cancelled"])
def test_what_was_not_run_is_no_run_of_a_citable_rate(outcome):
    cells = [entry(run=1), entry(run=2), entry(run=3, outcome=outcome, passed=None, composite=None)]
    [line] = summarise(frame(cells), "pair").lines
    assert pairs(cells)[0].claim == line.claim == UNRANKED


def test_a_rate_of_low_coverage_is_unranked():
    cells = [entry(run=run) for run in range(1, 20)]
    lost = entry(run=20, outcome="infra_error", cause="engine", passed=None)
    assert pairs([*cells, lost])[0].claim == "citable"
    assert pairs([*cells[1:], lost, entry(run=1, outcome="infra_error", passed=None)])[0].claim == UNRANKED


def test_one_pair_a_cli_and_model():
    found = pairs([entry(), entry(model="embedded/wrong"), entry(cli="noop", model="none", passed=0.0)])
    assert [pair.group.name for pair in found] == [
        "noop × none",
        "opencode × embedded/wrong",
        "opencode × openai/gpt",
    ]
    assert found[0].group.pass_rate.value == pytest.approx(0)


def test_a_cli_with_a_stack_has_rates_of_its_own():
    found = pairs([entry(run=1), entry(run=2, stack="careful", passed=0.0)])
    rates = {pair.group.name: pair.group.pass_rate.value for pair in found}
    assert rates == {"opencode × openai/gpt": 1, "opencode+careful × openai/gpt": 0}
