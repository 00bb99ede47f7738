"""A results directory with cab's own sweeps and imported ones: every reader knows which is which."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from click.testing import CliRunner, Result
from report_samples import SWEEP, evidence, record, store

from orchestrator.analysis.groups import pairs
from orchestrator.cli.cell_cmd import cell as cell_command
from orchestrator.cli.import_cmd import import_
from orchestrator.cli.sweep_cmd import sweep as sweep_command
from orchestrator.errors import InputError, StoreError
from orchestrator.report.summary import summary
from orchestrator.run.start import of_file, of_stored
from orchestrator.store import load_frame
from orchestrator.store.cells import CellStore, find_cell, newest_sweep

FILE = Path(__file__).parents[2] / "data" / "published_cells.json"
CELLS: list[dict[str, Any]] = json.loads(FILE.read_bytes())
FREE, NEW = "free-20260527", "newmodels-20260620"
LIMITED = f"{NEW}/openhands/minimaxai/minimax-m3/integrity/ambiguous-ticket"
PASSED = f"{FREE}/opencode/meta/llama-3.3-70b-instruct/polyglot/rust-lifetime-fix"


def call(command: Any, *arguments: object) -> Result:
    return CliRunner(env={"COLUMNS": "160"}).invoke(command, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    results = tmp_path_factory.mktemp("both")
    found = evidence(("a",))
    store(results, (record(found), found))
    return results, call(import_, "published", FILE, "-o", results)


@pytest.fixture(scope="module")
def both(made: tuple[Path, Result]) -> Path:
    """An own sweep of one cell, and the 40 published ones. Read-only."""
    return made[0]


# The command


def test_the_import_shows_every_composite_and_sums_up(made: tuple[Path, Result]) -> None:
    results, done = made
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert sum("#run1" in line and "0.9" in line for line in lines) == sum(
        c["composite_shown"] >= 0.9 for c in CELLS
    )
    assert "40 of 40 composites as printed, recomputed from the published axes with published-0.1" in lines
    assert "2 of 2 that are published whole, to the last bit" in lines
    assert "1 incompatible (handshake), 4 infra_error (rate_limited)" in done.stdout
    assert f"{FREE}: 16 cells, stored" in lines
    assert any(f"sweep status {FREE} -r {results}" in line for line in lines)


def test_json_is_the_same_as_data(both: Path) -> None:
    data = json.loads(call(import_, "published", FILE, "-o", both, "--json").stdout)
    assert data["summary"] == {
        "cells": 40,
        "printed": 40,
        "reproduce_in_digits": 40,
        "printed_exact": 2,
        "reproduce_to_the_bit": 2,
        "differ": 0,
        "not_comparable": 0,
        "not_counted": 5,
    }
    assert {sweep["state"] for sweep in data["sweeps"]} == {"same as stored"}
    printed = {cell["cell_id"]: cell["composite_shown"] for cell in CELLS}
    assert {cell["published_id"]: cell["printed"] for cell in data["cells"]} == printed
    assert {cell["difference"] for cell in data["cells"]} == {0.0}


@pytest.mark.parametrize(
    ("changes", "difference", "summed"),
    [
        ({"composite_shown": 0.961}, "+0.00118", "0 of 1 composite as printed"),
        ({"composite_exact": 0.9621796428558477}, "-1.11e-16", "0 of 1 that are published whole"),
    ],
)
def test_a_composite_that_differs_is_said_by_the_exit_code(
    tmp_path: Path, changes: dict[str, float], difference: str, summed: str
) -> None:
    file, results = tmp_path / "cells.json", tmp_path / "results"
    exact = {} if "composite_exact" in changes else {"composite_exact": None}
    file.write_text(json.dumps([CELLS[0] | exact | changes]))
    done = call(import_, "published", file, "-o", results)
    assert done.exit_code == 1, done.output
    assert difference in done.stdout
    assert summed in done.stdout
    assert CellStore(results, FREE).finished()


def test_what_cannot_be_compared_is_no_difference(tmp_path: Path) -> None:
    file, results = tmp_path / "cells.json", tmp_path / "results"
    file.write_text(json.dumps([CELLS[0] | {"integrity": None}, CELLS[1] | {"composite_shown": None}]))
    done = call(import_, "published", file, "-o", results)
    assert done.exit_code == 0, done.output
    assert "1 cell of which a term or the composite is not visible" in done.stdout
    assert "cannot be compared" in done.stdout


def test_a_bad_file_is_one_error(tmp_path: Path) -> None:
    done = call(import_, "published", tmp_path / "none.json", "-o", tmp_path / "results")
    assert isinstance(done.exception, InputError)
    assert done.exception.exit_code == 2
    assert not (tmp_path / "results").exists()


# The readers


def test_the_frame_holds_both_and_tells_them_apart(both: Path) -> None:
    frame = load_frame(both)
    assert frame.height == 41
    imported = frame.filter(pl.col("claim") == "imported")
    assert imported.height == 40
    assert imported["total_tokens"].null_count() == 40
    assert imported["composite"].null_count() == 40
    assert imported["composite_published"].null_count() == imported.filter(~pl.col("counted")).height == 5
    assert imported["methodology_version"].unique().to_list() == ["published-0.1"]
    assert set(imported["passed"].to_list()) == {0.0, 1.0}
    own = frame.filter(pl.col("claim") != "imported")
    assert own["sweep_id"].to_list() == [SWEEP]


def test_own_and_imported_cells_are_grouped_by_the_same_rules(both: Path) -> None:
    entries = [entry for sweep in (SWEEP, FREE, NEW) for entry in CellStore(both, sweep).finished().values()]
    groups = {pair.group.name: pair for pair in pairs(entries)}
    limited = groups["openhands × minimaxai/minimax-m3"]
    assert (limited.group.counted, limited.group.infra, limited.group.coverage) == (0, 2, 0.0)
    assert limited.group.pass_rate.value is None
    assert limited.claim == "imported"
    handshake = groups["openhands × openai/gpt-oss-120b"].group
    assert (handshake.counted, handshake.infra, handshake.not_run) == (0, 0, 1)
    aider = groups["aider × openai/gpt-oss-120b"].group
    assert (aider.pass_rate.value, aider.cab_1.value, aider.tokens_per_correct_task) == (1.0, None, None)
    assert (aider.cab_1.low, aider.cab_1.high) == (0.0, 1.0)
    assert groups["opencode × openai/gpt"].claim != "imported"


def test_a_status_reads_an_imported_sweep_like_its_own(both: Path) -> None:
    done = call(sweep_command, "status", NEW, "-r", both)
    assert done.exit_code == 0, done.output
    assert f"{NEW}: 5 of 5 cells" in done.stdout
    assert "infra_error (rate_limited)" in done.stdout
    assert "not finished" not in done.stdout
    assert "n/a" not in done.stdout
    data = json.loads(call(sweep_command, "status", FREE, "-r", both, "--json").stdout)
    assert data == json.loads((both / FREE / "summary.json").read_bytes())
    assert (data["methodology_version"], data["planned"], data["finished"]) == ("published-0.1", 16, 16)
    assert {cell["claim"] for cell in data["cells"]} == {"imported"}
    assert summary(CellStore(both, SWEEP))["methodology_version"] == "1"


def test_the_newest_sweep_is_the_one_started_last(both: Path) -> None:
    assert newest_sweep(both) == SWEEP


def test_cell_show_says_what_is_known_of_an_imported_cell(both: Path) -> None:
    done = call(cell_command, "show", PASSED, "-r", both)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0] == "passed: as published by others"
    assert "printed   composite 0.962, recomputed 0.962" in lines
    assert "no finding" not in done.stdout
    assert "None" not in done.stdout
    assert "score it again" not in done.stdout
    assert "published.json" in done.stdout
    limited = call(cell_command, "show", f"{LIMITED}#run1", "-r", both).stdout
    assert limited.startswith("did not count: the endpoint answered 429 to the end\n")
    assert "published notice: provider rate limit HTTP 429" in limited
    data = json.loads(call(cell_command, "show", LIMITED, "-r", both, "--json").stdout)
    assert data["imported"]["published_id"] == LIMITED
    assert data["imported"]["reasons"]["limits"] == "the published file does not tell it"
    assert (
        json.loads(
            call(
                cell_command, "show", f"{SWEEP}/opencode/openai/gpt/polyglot/sum", "-r", both, "--json"
            ).stdout
        )["imported"]
        is None
    )


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell["cell_id"])
def test_every_imported_cell_can_be_shown(both: Path, cell: dict[str, Any]) -> None:
    done = call(cell_command, "show", find_cell(both, cell["cell_id"]))
    assert done.exit_code == 0, done.exception
    assert "None" not in done.stdout
    assert "the record gives no reason" not in done.stdout


def test_an_imported_cell_has_no_evidence_to_score(both: Path) -> None:
    done = call(cell_command, "score", PASSED, "-r", both)
    assert isinstance(done.exception, StoreError)
    assert "no evidence is stored of an imported cell" in str(done.exception)


def test_an_imported_sweep_cannot_be_run(both: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="imported, and cannot be run"):
        of_stored(both, FREE)
    spec = tmp_path / "mine.yaml"
    spec.write_text("name: mine\nclis: [noop]\ntasks: [polyglot/python-reverse-string]\n")
    with pytest.raises(InputError, match="imported, and cannot be run"):
        of_file(spec, both, FREE)


def test_an_imported_cell_can_be_moved_away(both: Path, tmp_path: Path) -> None:
    moved = shutil.copytree(find_cell(both, PASSED), tmp_path / "cell")
    assert call(cell_command, "show", moved).stdout.startswith("passed: as published by others")
