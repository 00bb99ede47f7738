"""The generated results that pages and reports are tested and measured with are what a store holds."""

from __future__ import annotations

import hashlib
from pathlib import Path

import polars as pl
import pytest
from generate_results import OLDER, generate
from generated_evidence import WAYS

from orchestrator.gateway.evidence import read_calls
from orchestrator.run.rescore import rescore
from orchestrator.store.cells import CELL, CellStore, read_cell
from orchestrator.store.evidence import load_evidence
from orchestrator.store.frame import load_frame

ASKED = 200


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("generated") / "results"
    assert generate(root, ASKED) >= ASKED
    return root


@pytest.fixture(scope="module")
def frame(results: Path) -> pl.DataFrame:
    return load_frame(results)


def tree(root: Path) -> dict[str, str]:
    files = (path for path in sorted(root.rglob("*")) if path.is_file())
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    }


def test_twice_the_same_number_gives_the_same_bytes(results: Path, tmp_path: Path) -> None:
    generate(tmp_path / "again", ASKED)
    assert tree(tmp_path / "again") == tree(results)


def test_nothing_in_it_could_be_taken_for_a_result(frame: pl.DataFrame) -> None:
    for column in ("sweep_id", "cli", "task"):
        assert all(name.startswith("made-up") for name in frame[column].unique())
    assert all(name.startswith(("made-up/", "embedded/")) for name in frame["model"].unique())


def test_it_has_all_that_pages_must_tell_apart(frame: pl.DataFrame) -> None:
    assert set(frame["claim"].unique()) == {"pipeline_only", "imported", "provisional", "citable"}
    assert {OLDER, "1", "published-0.1"} == set(frame["methodology_version"].unique())
    assert {way.outcome for way in WAYS.values()} <= set(frame["outcome"].unique())
    assert set(frame["stack"].unique()) == {"none", "careful", "facts"}
    assert frame["run"].max() == 3
    assert {0.0, 1.0} <= set(frame["refusal"].drop_nulls())
    assert True in set(frame["void"])
    assert frame["cost_usd"].null_count() not in (0, len(frame))


def test_stored_scores_are_those_of_the_stored_evidence(results: Path) -> None:
    cells = [path.parent for path in sorted(results.glob("made-up-large/cells/*/*/*/*/cell.json"))]
    assert all(rescore(cell).differences == {} for cell in cells[::5])


def test_a_store_reads_it_and_knows_the_cells_that_never_ran(results: Path) -> None:
    store = CellStore(results, "made-up-large")
    sweep, finished = store.sweep(), store.finished()
    assert set(finished) <= set(sweep.order)
    assert sweep.skipped
    assert not {cell.cell_id for cell in sweep.skipped} & set(finished)
    entry = next(iter(finished.values()))
    cell = store.cell_dir_of(entry)
    assert hashlib.sha256((cell / CELL).read_bytes()).hexdigest() == entry.record_sha256
    assert read_cell(cell).cell_id == entry.cell_id
    calls = read_calls(cell / "calls.jsonl", cell / "wire.jsonl.gz", 1000.0)
    assert [call.usage for call in calls] == [call.usage for call in load_evidence(cell).calls]
