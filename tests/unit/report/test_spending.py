"""Money, budgets and builds of a model in reports: what is not known is never 0, what changed is told."""

import json
from datetime import UTC, datetime

import pytest
from report_samples import SPEC, SWEEP, entry, evidence, record, store, sweep

from orchestrator.plan.expand import PlannedCell
from orchestrator.plan.spec import Spending, SweepSpec
from orchestrator.report.builds import changes
from orchestrator.report.cell import print_cell
from orchestrator.report.live import LiveView, PlainView
from orchestrator.report.spending import spent
from orchestrator.report.summary import summary
from orchestrator.report.table import print_sweep
from orchestrator.report.text import NOT_MEASURED, console
from orchestrator.run.budget import Budget
from orchestrator.store.cells import CellStore
from orchestrator.store.names import CellKey
from orchestrator.store.record import BudgetSet, ModelBuild
from scorers.evidence import ModelCall, Price, Rates, Usage

PRICE = Price(rates=[Rates(input=1000.0, output=1000.0)], source="sweep file")
ONE, TWO, THREE = (CellKey("opencode", "openai/gpt", f"polyglot/{name}") for name in ("one", "two", "three"))


def finished(key, *, price=None, build=None, **given):
    found = evidence(price=price, no_price=None if price else "the library does not know it", **given)
    made = record(found, key=key)
    if build is not None:
        builds = (ModelBuild(model=build[0], fingerprint=build[1]),)
        identity = made.identity.model_copy(update={"model_builds": builds})
        made = made.model_copy(update={"identity": identity})
    return made, found


def a_sweep(results, *cells, budget=None, left=()):
    """A stored sweep with some cells finished and some `left`."""
    place = store(results, *cells)
    spec = SweepSpec.of_data({**SPEC, "budget": budget or {}}).model_dump(mode="json")
    order = [cell.cell_id for cell, _ in cells] + [key.cell_id(SWEEP) for key in left]
    with CellStore(results, SWEEP) as held:
        held.write_sweep(sweep(*order).model_copy(update={"spec": spec}))
    return place


@pytest.fixture
def shown(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")

    def show(*cells, **given):
        print_sweep(a_sweep(tmp_path, *cells, **given), as_json=False)
        return capsys.readouterr().out

    return show


def test_a_cost_that_is_not_known_is_a_dash_beside_one_that_is(shown):
    text = shown(finished(ONE, price=PRICE), finished(TWO))
    rows = [line for line in text.splitlines() if "polyglot/" in line and "completed" in line]
    assert ["$0.1000" in row for row in rows] == [True, False]
    assert NOT_MEASURED in rows[1]
    assert "$0.00" not in text.replace("$0.1000", "")


def test_without_any_price_there_is_no_column_of_costs(shown):
    assert "cost" not in shown(finished(ONE), finished(TWO))


def test_a_cells_cost_is_told_or_why_there_is_none(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    place = store(tmp_path, finished(ONE, price=PRICE), finished(TWO))
    said = []
    for found in (place.finished()[key.cell_id(SWEEP)] for key in (ONE, TWO)):
        print_cell(place.cell_dir_of(found), as_json=False)
        said.append(capsys.readouterr().out)
    assert "$0.1000" in said[0]
    assert "$" not in said[1]
    assert "the library does not know it" in said[1]


def test_a_budget_that_is_used_up_says_how_many_cells_were_not_run(shown):
    cells = [finished(ONE, price=PRICE), finished(TWO, price=PRICE)]
    text = shown(*cells, budget={"tokens": 150, "usd": 9.0}, left=[THREE])
    assert "budget: 200 of 150 tokens and $0.2000 of $9.00 used; sweep_budget: 1 cell not run\n" in text


@pytest.mark.parametrize(
    ("budget", "options"),
    [
        ({"tokens": 150, "usd": 9.0}, "--budget-tokens MORE "),
        ({"tokens": 900, "usd": 0.1}, "--budget-usd MORE "),
        ({"tokens": 150, "usd": 0.1}, "--budget-tokens MORE --budget-usd MORE "),
        ({"tokens": 900}, ""),
    ],
)
def test_the_command_to_go_on_raises_what_of_the_budget_is_used_up(shown, budget, options):
    text = shown(finished(ONE, price=PRICE), finished(TWO, price=PRICE), budget=budget, left=[THREE])
    assert f"go on with: cab sweep resume {SWEEP} {options}-r" in text


@pytest.mark.parametrize(("limit", "left"), [(200, 1), (201, 0)])
def test_the_budget_in_summary(tmp_path, limit, left):
    cells = [finished(ONE), finished(TWO)]
    found = summary(a_sweep(tmp_path, *cells, budget={"tokens": limit}, left=[THREE]))["budget"]
    assert found == {
        "limit": {"tokens": limit, "usd": None},
        "spent": {"tokens": 200, "usd": None},
        "used_up": bool(left),
        "sweep_budget": left,
    }


def test_a_sweep_without_a_budget_tells_of_none(tmp_path, shown):
    assert "budget:" not in shown(finished(ONE))
    assert summary(CellStore(tmp_path, SWEEP))["budget"] is None


def test_what_is_used_of_a_budget_is_shown_while_the_sweep_runs(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    budget = Budget(Spending(tokens=500, usd=2.0))
    budget.add(150, None)
    budget.add(None, 0.5)
    said = "150 of 500 tokens and $0.5000 of $2.00 used"
    assert spent(budget) == said
    view = LiveView([], used=lambda: spent(budget))
    out = console()
    with out.capture() as drawn:
        out.print(view)
    assert said in drawn.get()
    cell = PlannedCell(ONE.cell_id(SWEEP), ONE, "hosted", 0)
    plain = PlainView(console(stderr=True), [cell], used=lambda: spent(budget))
    plain.started(cell)
    plain.ended(cell, entry())
    assert f"; {said}" in capsys.readouterr().err


def test_a_model_that_changed_in_mid_sweep_is_named_with_its_builds_and_their_first_cells(tmp_path, shown):
    cells = [finished(ONE, build=("gpt-7", "fp_1")), finished(TWO, build=("gpt-8", None))]
    first, second = (key.cell_id(SWEEP) for key in (ONE, TWO))
    assert (
        f"openai/gpt changed in mid-sweep: gpt-7 fp_1 in 1 cell, first {first}; "
        f"gpt-8 in 1 cell, first {second}\n"
    ) in shown(*cells)
    found = json.loads(json.dumps(summary(CellStore(tmp_path, SWEEP))))["model_changes"]
    assert found == {
        "openai/gpt": [
            {"build": "gpt-7 fp_1", "cells": 1, "first_cell": first},
            {"build": "gpt-8", "cells": 1, "first_cell": second},
        ]
    }


def test_an_answer_without_a_fingerprint_is_no_other_build():
    def one(task, *builds, at=0):
        return entry(task=task, model_builds=builds, started_at=f"2026-11-27T12:00:0{at}.000000Z")

    assert changes([one("p/a", "gpt fp_1"), one("p/b", "gpt"), one("p/c")]) == {}
    found = changes([one("p/b", "gpt fp_2", "gpt fp_1", at=1), one("p/a", "gpt fp_1")])
    assert [(build.build, build.cells) for build in found["openai/gpt"]] == [("gpt fp_1", 2), ("gpt fp_2", 1)]


def test_a_cell_shows_builds_settings_and_calls_for_other_models(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    calls = [
        ModelCall(index=0, start=2, end=4, request_hash="h", usage=Usage(input=90, output=10)),
        ModelCall(index=1, start=4, end=5, request_hash="h", request_model="small", other_model=True),
        ModelCall(
            index=2, start=5, end=5, request_hash="h", request_model="s\x1b[1m", other_model=True,
            error="other_model",
        ),
    ]  # fmt: skip
    made, found = finished(ONE, build=("gpt-7", "fp_1"), calls=calls)
    update = {"settings_set": {"temperature": 0.0}, "settings_overridden": ({"temperature": 0.9},)}
    identity = made.identity.model_copy(update=update)
    place = store(tmp_path, (made.model_copy(update={"identity": identity}), found))
    (finished_cell,) = place.finished().values()
    print_cell(place.cell_dir_of(finished_cell), as_json=False)
    text = capsys.readouterr().out
    assert "1 call asked for small: sent to the cell's model\n" in text
    assert ": refused\n" in text
    assert "\x1b" not in text
    assert "openai/gpt, reported as gpt-7 fp_1\n" in text
    assert 'set by the sweep: {"temperature": 0.0}' in text
    assert 'the CLI had asked for: {"temperature": 0.9}' in text


def test_a_budget_that_a_resume_ran_under_is_told_with_its_time(tmp_path, capsys):
    place = a_sweep(tmp_path, finished(ONE), left=[TWO], budget={"tokens": 50})
    raised = (
        BudgetSet(at=datetime(2026, 11, 27, 13, 5, tzinfo=UTC), tokens=5000, usd=None),
        BudgetSet(at=datetime(2026, 11, 27, 14, 0, tzinfo=UTC), tokens=5000, usd=2.0),
    )
    with CellStore(tmp_path, SWEEP) as held:
        held.write_sweep(held.sweep().model_copy(update={"budgets": raised}))
    print_sweep(place, as_json=False)
    text = capsys.readouterr().out
    assert "budget: 100 of 50 tokens used; sweep_budget: 1 cell not run\n" in text
    assert "budget from 2026-11-27 13:05 UTC: 5\u202f000 tokens\n" in text
    assert "budget from 2026-11-27 14:00 UTC: 5\u202f000 tokens and $2.00\n" in text
    assert [one["tokens"] for one in summary(place)["budgets"]] == [5000, 5000]
