"""`summary.json`: a sweep's rates and composites, with what they were made from."""

import json
import os
from pathlib import Path

import pytest
from report_samples import evidence, record, store

from orchestrator.analysis.summary import By, summarise
from orchestrator.errors import StoreError
from orchestrator.report.summary import SUMMARY, summary, write_summary
from orchestrator.store.cells import SWEEP
from orchestrator.store.files import temporary_of
from orchestrator.store.frame import load_frame
from orchestrator.store.names import CellKey
from scorers import METHODOLOGY_VERSION


def test_a_sweeps_composites_stand_by_cli_model_and_pair(tmp_path):
    cells = [
        (record(found := evidence(failing), key=CellKey("opencode", model, task)), found)
        for model, failing in (("a", ()), ("b", ("t1",)))
        for task in ("polyglot/one", "polyglot/two")
    ]
    place = store(tmp_path, *cells)
    write_summary(place)
    found = json.loads((place.root / SUMMARY).read_text())
    assert found == json.loads(json.dumps(summary(place)))
    rates = {pair["name"]: pair["pass_rate"]["value"] for pair in found["pairs"]}
    assert rates == {"opencode × a": 1.0, "opencode × b": 0.0}
    [models], [clis] = found["models"], found["clis"]
    assert [group["name"] for group in models["groups"]] == ["a", "b"]
    assert clis["groups"][0]["cab_1"]["value"] is not None
    assert found["composites"]["cab-1"]["pass"] == 0.7


def test_its_marginals_are_those_of_the_report(tmp_path: Path) -> None:
    asked = [("oracle", "none", ()), ("opencode", "embedded/wrong", ("t1",)), ("opencode", "a", ())]
    made = [
        (record(found := evidence(failing), key=CellKey(cli, model, task)), found)
        for cli, model, failing in (*asked, ("pi", "a", ("t1",)), ("pi", "embedded/wrong", ()))
        for task in ("polyglot/one", "polyglot/two")
    ]
    place = store(tmp_path, *made)
    said = summary(place)
    marginals: dict[str, By] = {"clis": "cli", "models": "model"}
    for name, by in marginals.items():
        told = [
            (
                *(table[name] for name in ("kind", "methodology", "shared_units")),
                *((it["name"], it["units"], it["pass_rate"]["value"]) for it in table["groups"]),
            )
            for table in said[name]
        ]
        reported = [
            (
                *(table.kind, table.methodology, table.shared_units),
                *((line.name, line.units, line.pass_rate.value) for line in table.lines),
            )
            for table in summarise(load_frame(place.root), by).tables
        ]
        assert told == reported
        assert all(table["shared_units"] for table in said[name])


def test_its_methodology_is_that_of_its_cells(tmp_path: Path) -> None:
    older = {"methodology_version": "0"}
    made = [
        (record(found := evidence(), key=CellKey("opencode", "a", f"polyglot/{task}"), **given), found)
        for task, given in (("one", older), ("two", older), ("three", {}))
    ]
    assert summary(store(tmp_path / "old", *made[:2]))["methodology_version"] == "0"
    assert summary(store(tmp_path / "both", *made))["methodology_version"] == f"0, {METHODOLOGY_VERSION}"
    assert summary(store(tmp_path / "none"))["methodology_version"] == METHODOLOGY_VERSION


def test_a_summary_older_than_the_sweeps_record_is_made_again(tmp_path: Path) -> None:
    place = store(tmp_path, (record(found := evidence()), found))
    path = place.root / SUMMARY
    write_summary(place)
    path.write_bytes(b"old")
    # As where runs were added, and none of them ended.
    later = path.stat().st_mtime_ns + 1
    os.utime(place.root / SWEEP, ns=(later, later))
    write_summary(place)
    assert path.read_bytes() != b"old"


def test_a_summary_newer_than_the_index_stays_and_an_older_one_does_not(tmp_path):
    place = store(tmp_path, (record(found := evidence()), found))
    write_summary(place)
    path, index = place.root / SUMMARY, place.index_path.stat().st_mtime_ns
    os.utime(place.root / SWEEP, ns=(index, index))
    whole = path.read_bytes()
    for newer, kept in ((1, True), (0, False), (-1, False)):
        path.write_bytes(b"old")
        os.utime(path, ns=(index + newer, index + newer))
        write_summary(place)
        assert path.read_bytes() == (b"old" if kept else whole)


def test_a_summary_that_cannot_be_written_is_one_line(tmp_path):
    place = store(tmp_path, (record(found := evidence()), found))
    temporary_of(place.root / SUMMARY).mkdir()
    with pytest.raises(StoreError, match=r"summary\.json\S*: Is a directory"):
        write_summary(place)
