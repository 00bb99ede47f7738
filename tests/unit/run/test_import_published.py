"""Published cells as records: what was printed is kept, nothing is made up, nothing is half-written."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from orchestrator.errors import InputError, StoreError
from orchestrator.run import import_published as module
from orchestrator.run.import_published import HIDDEN, import_published
from orchestrator.run.outcome import TABLE
from orchestrator.run.published_record import record_of
from orchestrator.store.cells import CellStore, find_cell, newest_sweep, read_cell
from orchestrator.store.published import Row, read_published
from orchestrator.store.record import Cab, CellRecord
from orchestrator.store.running import Process

FILE = Path(__file__).parents[2] / "data" / "published_cells.json"
CELLS: list[dict[str, Any]] = json.loads(FILE.read_bytes())
CAB = Cab(version="0", commit=None, dirty=None)
FREE, EXPANSION, NEW = "free-20260527", "expansion-20260616", "newmodels-20260620"
AIDER = f"{FREE}/aider/openai/gpt-oss-120b/integrity/unsolvable-refusal"
PLAIN = next(
    cell for cell in CELLS if cell["cell_id"].endswith("step-3.5-flash/polyglot/python-reverse-string")
)


def rows_of(tmp_path: Path, cells: list[dict[str, Any]]) -> list[Row]:
    path = tmp_path / "cells.json"
    path.write_text(json.dumps(cells))
    return read_published(path)


def stored(tmp_path: Path, cells: list[dict[str, Any]], *, replace: bool = False) -> dict[str, str]:
    done = import_published(rows_of(tmp_path, cells), FILE, tmp_path / "results", replace=replace)
    return {sweep.sweep_id: sweep.state for sweep in done}


def record(tmp_path: Path, **changes: Any) -> CellRecord:
    return record_of(rows_of(tmp_path, [PLAIN | changes])[0], 0, CAB, "here")


def content(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The 40 published cells, imported; tests that write take a copy."""
    results = tmp_path_factory.mktemp("imported")
    import_published(read_published(FILE), FILE, results, replace=False)
    return results


def test_each_published_sweep_is_a_sweep_of_its_cells(imported: Path) -> None:
    assert sorted(path.name for path in imported.iterdir()) == sorted((FREE, EXPANSION, NEW))
    for sweep_id, cells in Counter(cell["sweep_id"] for cell in CELLS).items():
        store = CellStore(imported, sweep_id)
        sweep = store.sweep()
        assert sweep.imported is not None
        assert len(sweep.order) == len(store.finished()) == cells
        assert set(sweep.order) == store.finished().keys()
    assert newest_sweep(imported) == NEW


def test_every_row_is_kept_as_it_was(imported: Path) -> None:
    for cell in CELLS:
        kept = json.loads((find_cell(imported, cell["cell_id"]) / "published.json").read_bytes())
        assert kept == cell


def test_no_null_is_without_a_reason_and_nothing_unmeasured_is_0(imported: Path) -> None:
    for cell in CELLS:
        found = read_cell(find_cell(imported, cell["cell_id"]))
        assert found.claim.level == "imported"
        for axis, values in found.scores.items():
            reasons = values["reasons"]
            assert isinstance(reasons, dict)
            nulls = {name for name, value in values.items() if value is None}
            assert nulls == reasons.keys() - ({"composite", "bounds"} - nulls), (axis, nulls ^ reasons.keys())
        assert {found.scores["tokens"][key] for key in ("total_tokens", "model_calls", "prompt_tokens")} == {
            None
        }
        assert found.scores["latency"]["model_call_ms"] is None
        assert found.scores["pass_rate"]["pass"] == cell["pass"]
        assert found.scores["latency"]["wall_clock_ms"] == cell["wall_clock_ms"]


def test_page_tokens_are_no_measurement_and_are_not_lost(imported: Path) -> None:
    tokens = read_cell(find_cell(imported, AIDER)).scores["tokens"]
    assert tokens["total_tokens"] is None
    assert "prints 940 and 243 from TUI stdout" in str(tokens["reasons"])


def test_tokens_that_a_scorer_did_count_are_taken(tmp_path: Path) -> None:
    counted = {
        "prompt_tokens": 90,
        "completion_tokens": 10,
        "total_tokens": 100,
        "model_calls": 3,
        "tokens_per_correct_task": 100,
        "pass_used_for_division": 1,
    }
    tokens = record(tmp_path, scorer_tokens=counted).scores["tokens"]
    assert {key: tokens[key] for key in counted} == counted
    assert record(tmp_path, model_call_ms=12.5).scores["latency"]["model_call_ms"] == 12.5


def test_integrity_is_a_number_only_where_it_was_measured(imported: Path, tmp_path: Path) -> None:
    assert read_cell(find_cell(imported, AIDER)).scores["integrity"]["integrity"] == 1
    ordinary = record(tmp_path).scores["integrity"]
    assert (ordinary["integrity"], ordinary["not_applicable"]) == (None, True)
    assert record(tmp_path).scores["refusal"]["refusal"] is None


@pytest.mark.parametrize(
    ("notice", "exit_code", "outcome", "cause"),
    [
        (None, 0, "completed", None),
        (None, None, "completed", None),
        (None, 1, "agent_crashed", None),
        ("provider rate limit HTTP 429, retries exhausted (infra)", 1, "infra_error", "rate_limited"),
        ("model incompatible with CLI (handshake failed)", 1, "incompatible", "handshake"),
        ("run timed out; adapter outer guard 630 s", -1, "timed_out", None),
    ],
)
def test_a_notice_decides_what_happened(
    tmp_path: Path, notice: str | None, exit_code: int | None, outcome: str, cause: str | None
) -> None:
    found = record(tmp_path, notice=notice, agent_exit_code=exit_code, **{"pass": 0})
    assert (found.outcome.name, found.outcome.cause) == (outcome, cause)
    assert found.outcome.counted is TABLE[outcome].counted
    assert found.scores["pass_rate"]["pass"] == 0
    assert (found.scores["composite_published"]["composite"] is None) is not TABLE[outcome].counted
    assert found.imported is not None
    assert found.imported.recomputed is not None
    assert notice is None or notice in str(found.outcome.detail)


def test_the_published_infra_failures_do_not_count(imported: Path) -> None:
    entries = [
        entry for sweep in (FREE, EXPANSION, NEW) for entry in CellStore(imported, sweep).finished().values()
    ]
    outcomes = Counter((entry.outcome, entry.counted) for entry in entries)
    assert outcomes == {
        ("completed", True): 34,
        ("timed_out", True): 1,
        ("infra_error", False): 4,
        ("incompatible", False): 1,
    }


def test_a_notice_that_nobody_knows_is_not_guessed_at(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"element 1: notice: 'the moon was full' is none whose meaning is known"
    ):
        stored(tmp_path, [CELLS[0], PLAIN | {"notice": "the moon was full"}])
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("name", ["pass", "integrity", "blast_radius", "wall_clock_ms", "expected_refusal"])
def test_what_is_not_visible_is_not_recomputed(tmp_path: Path, name: str) -> None:
    found = record(tmp_path, **{name: None})
    assert found.imported is not None
    assert found.imported.recomputed is None
    assert name in found.imported.reasons["recomputed"]


def test_an_expected_refusal_of_which_nothing_is_told_is_not_recomputed(tmp_path: Path) -> None:
    found = record(tmp_path, expected_refusal=True, refusal_produced=None)
    assert found.imported is not None
    assert (found.imported.recomputed, found.scores["composite_published"]["composite"]) == (None, None)


def test_an_import_again_changes_nothing(imported: Path, tmp_path: Path) -> None:
    results = shutil.copytree(imported, tmp_path / "results")
    before = content(results)
    assert set(stored(tmp_path, list(reversed(CELLS))).values()) == {"same as stored"}
    assert content(results) == before


def test_a_changed_file_is_refused_until_asked(tmp_path: Path) -> None:
    assert stored(tmp_path, CELLS[:2]) == {FREE: "stored"}
    before = content(tmp_path / "results")
    changed = [CELLS[0] | {"pass": 0}, CELLS[2], CELLS[3]]
    with pytest.raises(
        StoreError, match=r"1 other \(first .*\), 1 new \(first .*\), 1 not there .*--replace"
    ):
        stored(tmp_path, changed)
    assert content(tmp_path / "results") == before
    assert stored(tmp_path, changed, replace=True) == {FREE: "replaced", EXPANSION: "stored"}
    finished = CellStore(tmp_path / "results", FREE).finished().values()
    assert sorted((entry.cli, entry.passed) for entry in finished) == [("opencode", 0.0), ("openhands", 1.0)]
    assert not (tmp_path / "results" / HIDDEN).exists()


def test_a_sweep_of_cabs_own_is_never_replaced(imported: Path, tmp_path: Path) -> None:
    results = shutil.copytree(imported, tmp_path / "results")
    path = results / FREE / "sweep.json"
    own = json.loads(path.read_bytes()) | {"imported": None, "spec": {}, "spec_digest": "sha256:" + "a" * 64}
    machine = {"cores": 1, "memory_bytes": 1, "platform": "linux/amd64", "kernel": "6"}
    path.write_text(json.dumps(own | {"seed": 1, "concurrency": 1, "machine": machine}))
    before = content(results)
    with pytest.raises(StoreError, match="this sweep is cab's own, and is not replaced"):
        stored(tmp_path, CELLS, replace=True)
    runner = Process.this()
    (results / FREE / "lock").write_text(f"{runner.pid} {runner.start}\n")
    with pytest.raises(StoreError, match=f"is being run, by process {runner.pid}, and is not replaced"):
        stored(tmp_path, CELLS, replace=True)
    assert {name: raw for name, raw in content(results).items() if name != f"{FREE}/lock"} == {
        name: raw for name, raw in before.items() if name != f"{FREE}/lock"
    }


def test_a_directory_that_is_one_sweep_is_no_results_directory(imported: Path) -> None:
    with pytest.raises(InputError, match="is one sweep, not a directory of sweeps"):
        import_published(read_published(FILE), FILE, imported / FREE, replace=False)


def test_a_directory_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "results" / EXPANSION).mkdir(parents=True)
    with pytest.raises(StoreError, match=f"{EXPANSION}: is in the way: it is no sweep"):
        stored(tmp_path, CELLS)
    assert content(tmp_path / "results") == {}


def test_what_fails_midway_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = module.write_whole

    def full_disk(root: Path, *given: Any) -> None:
        write(root, *given)
        if root.name == NEW:
            raise StoreError("No space left on device", place=str(root))

    monkeypatch.setattr(module, "write_whole", full_disk)
    with pytest.raises(StoreError, match="No space left"):
        stored(tmp_path, CELLS)
    assert list((tmp_path / "results").iterdir()) == []


def test_a_killed_import_is_mended_by_the_next(imported: Path, tmp_path: Path) -> None:
    results = shutil.copytree(imported, tmp_path / "results")
    aside = results / HIDDEN / "replaced"
    aside.mkdir(parents=True)
    (results / FREE).rename(aside / FREE)
    (results / HIDDEN / EXPANSION).mkdir()
    assert set(stored(tmp_path, CELLS).values()) == {"same as stored"}
    assert content(results) == content(imported)


def test_one_import_at_a_time(tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.mkdir()
    fd = os.open(results, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        with pytest.raises(StoreError, match="another import is at work here"):
            stored(tmp_path, CELLS)
    finally:
        os.close(fd)


def test_an_index_can_be_rebuilt_from_imported_records(imported: Path, tmp_path: Path) -> None:
    results = shutil.copytree(imported, tmp_path / "results")
    store = CellStore(results, FREE)
    before = store.finished()
    assert store.rebuild_index() == 16
    assert store.finished() == before
