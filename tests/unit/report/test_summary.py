"""`summary.json`: a sweep's rates and composites, with what they were made from."""

import json
import os

import pytest
from report_samples import evidence, record, store

from orchestrator.errors import StoreError
from orchestrator.report.summary import SUMMARY, summary, write_summary
from orchestrator.store.files import temporary_of
from orchestrator.store.names import CellKey


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
    assert [group["name"] for group in found["models"]["groups"]] == ["a", "b"]
    assert found["clis"]["groups"][0]["cab_1"]["value"] is not None
    assert found["composites"]["cab-1"]["pass"] == 0.7


def test_a_summary_newer_than_the_index_stays_and_an_older_one_does_not(tmp_path):
    place = store(tmp_path, (record(found := evidence()), found))
    write_summary(place)
    path, index = place.root / SUMMARY, place.index_path.stat().st_mtime_ns
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
