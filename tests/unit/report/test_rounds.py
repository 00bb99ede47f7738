"""The rounds of a sweep of adaptive runs: what each adds to the stored sweep, and when it waits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from report_samples import entry

from orchestrator.errors import InputError
from orchestrator.plan.expand import interleave
from orchestrator.report.rounds import next_round, with_round
from orchestrator.run import machine, start
from orchestrator.run.start import Options, Ready, of_file, of_stored
from orchestrator.store.cells import CellStore
from orchestrator.store.index import IndexEntry
from orchestrator.store.names import CellKey, less_run
from orchestrator.store.preflight import PairResult, PreflightRecord, write_preflight

FILE = """\
name: mine
clis: [noop, oracle, opencode]
models: [embedded/idle]
tasks: [polyglot/python-reverse-string, polyglot/go-slice-aliasing]
runs: {min: 2, max: 12, until: ranking}
seed: 8
"""
ID = "mine-1"
Passes = dict[str, float]
"""By CLI: what its cells score."""


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> dict[str, IndexEntry]:
    """What is finished of the sweep, which a test fills, on a machine that has all and runs nothing."""
    found: dict[str, IndexEntry] = {}
    monkeypatch.setattr(machine, "pins_now", lambda *_: {})
    monkeypatch.setattr(machine, "pins_of", lambda *_: {})
    monkeypatch.setattr(machine, "start_engine", lambda *_: None)
    monkeypatch.setattr(machine, "start_bench", lambda *_: SimpleNamespace(pins={}))
    monkeypatch.setattr(CellStore, "finished", lambda _: dict(found))
    return found


@pytest.fixture
def call(tmp_path: Path, results: dict[str, IndexEntry]) -> Callable[..., Ready]:
    path = tmp_path / "mine.yaml"
    path.write_text(FILE)

    def start_it(verb: str = "run", **options: Any) -> Ready:
        given = Options(**options)
        asked = of_file(path, tmp_path, ID, given) if verb == "run" else of_stored(tmp_path, ID, given)
        with start.started(asked, with_round) as ready:
            return ready

    return start_it


def finish(results: dict[str, IndexEntry], ready: Ready, passes: Passes, **given: Any) -> None:
    for cell in ready.todo:
        passed = passes[cell.key.cli]
        fields = {"cell_id": cell.cell_id, "sweep_id": ID, "passed": passed, "claim": "pipeline_only"} | given
        results[cell.cell_id] = entry(cell.key.cli, cell.key.model, cell.key.task, cell.key.run, **fields)


def of_run(cells: Any) -> set[tuple[str, int]]:
    return {(CellKey.of_id(it)[1].cli, less_run(it)[1]) for it in cells}


APART: Passes = {"noop": 0.0, "oracle": 1.0, "opencode": 0.0}
TIED: Passes = {"noop": 0.0, "oracle": 0.0, "opencode": 0.0}


def to_the_end(ready: Ready, results: dict[str, IndexEntry], passes: Passes) -> Ready:
    coming: Ready | None = ready
    while coming is not None:
        ready = coming
        finish(results, ready, passes)
        coming = next_round(ready)
    return ready


def test_rounds_are_stored_and_end_when_the_ranking_is_decided(
    call: Callable[..., Ready], results: dict[str, IndexEntry]
) -> None:
    ready = call()
    assert of_run(ready.store.sweep().order) == {(cli, run) for cli in APART for run in (1, 2)}
    finish(results, ready, APART)
    second = next_round(ready)
    assert second is not None
    assert of_run(it.cell_id for it in second.todo) == {("noop", 3), ("oracle", 3)}
    assert ready.store.sweep().order == (
        *(it.cell_id for it in ready.todo),
        *(it.cell_id for it in second.todo),
    )
    assert [cell.order_index for cell in second.todo] == [12, 13, 14, 15]
    keys = [cell.key for cell in second.todo]
    assert keys == interleave(sorted(keys), seed=8)
    last = to_the_end(second, results, APART)
    assert max(run for _, run in of_run(results)) == 5
    assert {run for cli, run in of_run(results) if cli == "opencode"} == {1, 2}
    assert len(last.chosen) == len(results)


def test_rounds_end_at_the_most_and_a_resume_may_add_to_it(
    call: Callable[..., Ready], results: dict[str, IndexEntry]
) -> None:
    to_the_end(call(), results, TIED)
    assert max(run for _, run in of_run(results)) == 12
    assert call("resume").todo == []
    more = call("resume", runs=14)
    assert of_run(it.cell_id for it in more.todo) == {("noop", 13), ("oracle", 13)}
    stored = more.store.sweep().spec
    assert stored is not None
    assert stored["runs"] == {"min": 2, "max": 14, "until": "ranking"}
    to_the_end(more, results, TIED)
    assert max(run for _, run in of_run(results)) == 14
    with pytest.raises(InputError, match="--runs 13: mine-1 has runs: 2 to 14"):
        call("resume", runs=13)
    with pytest.raises(InputError, match=r"--runs 3: mine-1 has runs: 2 to 14 \(leave --runs out"):
        call(runs=3)


@pytest.mark.parametrize(("kept", "ordered"), [(5, 12), (12, 12), (12, 16), (14, 16), (16, 16), (17, 20)])
def test_a_resume_goes_on_where_a_killed_sweep_was(
    call: Callable[..., Ready], results: dict[str, IndexEntry], kept: int, ordered: int
) -> None:
    last = to_the_end(call(), results, APART)
    whole, record = dict(results), last.store.sweep()
    # Killed with so many cells finished, before or after the next round was stored.
    last.store.write_sweep(record.model_copy(update={"order": record.order[:ordered]}))
    for cell_id in record.order[kept:]:
        del results[cell_id]
    again = call("resume")
    coming = ordered + 4 if kept == ordered else ordered
    assert [cell.cell_id for cell in again.todo] == list(record.order[kept:coming])
    again = to_the_end(again, results, APART)
    assert results == whole
    assert again.store.sweep().order == record.order


def test_a_round_waits_for_the_cells_before_it(
    call: Callable[..., Ready], results: dict[str, IndexEntry]
) -> None:
    ready = call()
    finish(results, ready, APART)
    lost = next(iter(results))
    without = results.pop(lost)
    assert next_round(ready) is None
    assert [cell.cell_id for cell in call("resume").todo] == [lost]
    # One that the outcome table says to retry is run first, and the round is decided by what comes of it.
    results[lost] = without.model_copy(update={"outcome": "infra_error", "cause": "engine"})
    assert [cell.cell_id for cell in call("resume").todo] == [lost]
    assert next_round(ready) is not None


def test_only_limits_what_a_call_runs_and_not_the_round(
    call: Callable[..., Ready], results: dict[str, IndexEntry]
) -> None:
    finish(results, call(), APART)
    ready = call("resume", only=("noop/*",))
    assert of_run(cell.cell_id for cell in ready.todo) == {("noop", 3)}
    assert of_run(ready.store.sweep().order) >= {("noop", 3), ("oracle", 3)}
    finish(results, ready, APART)
    assert next_round(ready) is None  # oracle's cells are left
    assert of_run(cell.cell_id for cell in call("resume").todo) == {("oracle", 3)}


def test_a_dry_run_shows_the_next_round_and_writes_nothing(
    call: Callable[..., Ready], results: dict[str, IndexEntry], tmp_path: Path
) -> None:
    ready = call()
    finish(results, ready, APART)
    order = ready.store.sweep().order
    shown = with_round(of_stored(tmp_path, ID))
    assert of_run(cell.cell_id for cell in shown.todo()) == {("noop", 3), ("oracle", 3)}
    assert ready.store.sweep().order == order


def test_a_pair_that_cannot_work_together_is_waited_for_no_longer(
    call: Callable[..., Ready], results: dict[str, IndexEntry]
) -> None:
    ready = call()
    refused = PairResult.model_construct(
        cli="opencode",
        model="embedded/idle",
        endpoint=None,
        key=f"sha256:{'a' * 64}",
        verdict="incompatible",
        cause="no_edit",
        detail="made no edit",
        tries=1,
        tokens=None,
        known_tokens=0,
        cost_usd=None,
        duration_s=1.0,
        at=ready.store.sweep().started_at,
    )
    write_preflight(ready.store.root, PreflightRecord(pairs=(refused,)))
    finish(results, ready, APART)
    for cell_id in [it for it in results if "opencode" in it]:
        del results[cell_id]
    following = next_round(ready)
    assert following is not None
    assert of_run(cell.cell_id for cell in following.todo) == {("noop", 3), ("oracle", 3)}


def test_a_fixed_number_of_runs_has_no_rounds(tmp_path: Path, results: dict[str, IndexEntry]) -> None:
    path = tmp_path / "fixed.yaml"
    path.write_text(FILE.replace("{min: 2, max: 12, until: ranking}", "2"))
    with start.started(of_file(path, tmp_path, ID), with_round) as ready:
        finish(results, ready, TIED)
        assert next_round(ready) is None
