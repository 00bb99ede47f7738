"""`cab sweep status` while a sweep runs, and after its runner died."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from report_samples import SWEEP, evidence, record, store, sweep

from orchestrator.report.table import print_sweep
from orchestrator.store.cells import CellStore
from orchestrator.store.names import CellKey
from orchestrator.store.running import runner_of

UNDER_WAY = CellKey("opencode", "openai/gpt", "polyglot/next")
CALL = {"wire": "chat", "usage_raw": {"prompt_tokens": 1200, "completion_tokens": 34}}


@pytest.fixture
def running(tmp_path: Path) -> CellStore:
    """A sweep with one finished cell and one in its second stage, run by this process."""
    cell = record(found := evidence())
    store(tmp_path, (cell, found))
    opened = CellStore(tmp_path, SWEEP)
    opened.open()
    opened.write_sweep(sweep(cell.cell_id, UNDER_WAY.cell_id(SWEEP)))
    staging = opened.staging(UNDER_WAY)
    opened.note_stage(staging, "task_setup")
    opened.note_stage(staging, "adapter_run")
    (staging.path / "calls.jsonl").write_text(
        f'{json.dumps(CALL)}\n{{"wire": "chat", "usage_raw": null}}\n{{"torn'
    )
    return opened


def shown(running: CellStore, capsys: pytest.CaptureFixture[str], *, as_json: bool = False) -> str:
    print_sweep(running, as_json=as_json, runner=runner_of(running.root))
    return capsys.readouterr().out


def test_cells_under_way_are_shown_with_stage_calls_and_tokens(
    running: CellStore, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = shown(running, capsys)
    assert f"{SWEEP}: 1 of 2 cells" in text
    assert "rates: mean over tasks" in text
    assert ": 1 in agent" in text
    row = next(line for line in text.splitlines() if line.rstrip().endswith("polyglot/next#run1"))
    assert re.match(r" *\d+ s agent +2  1\u202f234 opencode/", row)
    assert "go on with" not in text
    assert all(len(line) <= 80 for line in text.splitlines() if not line.startswith(("results", "  cab")))


def test_the_same_as_json(running: CellStore, capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(shown(running, capsys, as_json=True))
    assert data["finished"] == 1
    runner = data["runner"]
    assert runner["alive"] is True
    (cell,) = runner["under_way"]
    assert cell.pop("elapsed_s") >= 0
    assert cell == {"cell": UNDER_WAY.matrix_id(), "stage": "adapter_run", "model_calls": 2, "tokens": 1234}


def test_a_dead_runner_is_told_as_such(running: CellStore, capsys: pytest.CaptureFixture[str]) -> None:
    start = (running.root / "lock").read_text().split()[1]
    for path in (running.root / "lock", *(running.root / ".staging").glob("*.json")):
        path.write_text(path.read_text().replace(start, "1"))  # another process has the pid by now
    text = shown(running, capsys)
    assert "has died; what is lost: 1 cell under way\n" in text
    assert "go on with: cab sweep resume" in text
    assert json.loads(shown(running, capsys, as_json=True))["runner"]["alive"] is False


def test_a_sweep_that_nobody_runs_has_no_runner(running: CellStore) -> None:
    running.close()
    assert runner_of(running.root) is None


def test_a_stage_that_cannot_be_noted_stops_nothing(running: CellStore) -> None:
    staging = running.staging(CellKey("a", "b", "c/d"))
    staging.owner.unlink()
    staging.owner.mkdir()
    running.note_stage(staging, "verify")
