"""What is said of a ranking: for people, in `summary.json`, and why it ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from report_samples import SWEEP, entry, sweep

from orchestrator.report.ranking import as_data, print_ranking
from orchestrator.report.summary import summary
from orchestrator.report.table import print_sweep
from orchestrator.report.text import console
from orchestrator.store.cells import CellStore
from orchestrator.store.index import IndexEntry

TASKS = [f"polyglot/t{number}" for number in range(6)]
MODELS = {"good": 1.0, "poor": 0.0, "tied": 0.0}


def store(
    results: Path, monkeypatch: pytest.MonkeyPatch, runs: int, most: int, **given: Any
) -> tuple[CellStore, list[IndexEntry]]:
    """A sweep of which so many runs of each model are finished, of at most `most`."""
    entries = [
        entry("opencode", model, task, run, passed=passed, total_tokens=1000, cost_usd=0.25, **given)
        for run in range(1, runs + 1)
        for model, passed in MODELS.items()
        for task in TASKS
    ]
    made = CellStore(results, SWEEP)
    record = sweep(*(it.cell_id for it in entries))
    spec = {**(record.spec or {}), "runs": {"min": 2, "max": most, "until": "ranking"}}
    made.create(record.model_copy(update={"spec": spec}))
    made.close()
    monkeypatch.setattr(CellStore, "finished", lambda _: {it.cell_id: it for it in entries})
    return made, entries


def shown(made: CellStore, capsys: pytest.CaptureFixture[str]) -> str:
    print_ranking(made.sweep(), made, console())
    return capsys.readouterr().out


def test_what_is_decided_and_why_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made, _ = store(tmp_path, monkeypatch, runs=3, most=3)
    text = shown(made, capsys)
    lines = [line.split() for line in text.splitlines()]
    assert ["1", "opencode", "×", "good", "6", "3", "1"] in lines
    assert ["2–3", "opencode", "×", "poor", "6", "3", "0"] in lines
    assert "not told apart: opencode × poor less opencode × tied: between -" in text
    assert "2 of 3 pairs told apart after 3 runs, the most; `--runs MORE` of a resume adds to them" in text
    assert "ran 54 cells, 3 runs of each are 54: 0 saved (0%), about 0 tokens and $0.0000" in text


def test_a_round_that_is_to_come_is_said_and_nothing_is_saved_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made, _ = store(tmp_path, monkeypatch, runs=2, most=9)
    text = shown(made, capsys)
    assert "2 of 3 pairs told apart, of 2 to 9 runs; 12 cells to come in this run" in text
    assert "saved" not in text
    data = as_data(made.sweep(), made)
    assert data is not None
    assert (data["state"], data["saved"]) == ("open", None)


def test_the_summary_has_it_as_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = store(tmp_path, monkeypatch, runs=2, most=2)
    data = json.loads(json.dumps(summary(made)))["ranking"]
    assert data["runs"] == {"min": 2, "max": 2, "until": "ranking"}
    assert (data["state"], data["pairs"], data["decided"], data["alpha"]) == ("max_runs", 3, 2, 0.05)
    assert [it["best_rank"] for it in data["standings"]] == [1, 2, 2]
    assert data["comparisons"][0]["better"] == "opencode × good"
    assert data["saved"]["tokens"] == 36000


def test_a_budget_that_is_used_up_is_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from orchestrator.plan.spec import Spending
    from orchestrator.run.budget import Budget

    made, _ = store(tmp_path, monkeypatch, runs=2, most=9)
    used = Budget(Spending(tokens=10), tokens=10)
    monkeypatch.setattr("orchestrator.report.ranking.budget_of", lambda *_: used)
    assert "2 of 3 pairs told apart: the budget was used up before" in shown(made, capsys)
    data = as_data(made.sweep(), made)
    assert data is not None
    assert data["state"] == "budget"


def test_a_sweep_of_a_fixed_number_of_runs_has_no_ranking(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = CellStore(tmp_path, SWEEP)
    made.create(sweep())
    made.close()
    assert as_data(made.sweep(), made) is None
    print_sweep(made, as_json=False)
    assert "told apart" not in capsys.readouterr().out


def test_the_table_of_a_sweep_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made, entries = store(tmp_path, monkeypatch, runs=2, most=2)
    monkeypatch.setattr("orchestrator.report.table.read_cell", lambda _: None)
    monkeypatch.setattr("orchestrator.report.table.one_container", lambda _: None)
    print_sweep(made, as_json=False)
    assert "2 of 3 pairs told apart after 2 runs" in capsys.readouterr().out
    assert len(entries) == 36


def test_runs_whose_tasks_moved_together_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made, entries = store(tmp_path, monkeypatch, runs=6, most=6)
    assert "together" not in shown(made, capsys)
    bad = [
        it.model_copy(update={"passed": float(it.run % 2)}) if it.model == "tied" else it for it in entries
    ]
    monkeypatch.setattr(CellStore, "finished", lambda _: {it.cell_id: it for it in bad})
    assert "opencode × tied: the tasks of a run passed or failed together (p = 0." in shown(made, capsys)
