"""What was waited for at an endpoint: kept over the runs of a sweep, told in its summary and its table."""

import json

import pytest
from report_samples import evidence, record, store

from orchestrator.errors import StoreError
from orchestrator.gateway.contract import WindowReport
from orchestrator.report.summary import SUMMARY, write_summary
from orchestrator.report.table import print_sweep
from orchestrator.store.endpoints import ENDPOINTS, note_windows, read_windows

FIRST = WindowReport(endpoint="hosted", largest=9, end=4, rate_limited=2, waited_s=12.5)
SECOND = WindowReport(endpoint="hosted", largest=5, end=6, rate_limited=1, waited_s=0.5)
CALM = WindowReport(endpoint="calm", largest=3, end=4, rate_limited=0, waited_s=0.0)


def test_runs_of_a_sweep_are_added_up(tmp_path, capsys):
    place = store(tmp_path, (record(found := evidence()), found))
    write_summary(place)
    note_windows(place.root, [FIRST, CALM])
    note_windows(place.root, [SECOND])
    both = WindowReport(endpoint="hosted", largest=9, end=6, rate_limited=3, waited_s=13.0)
    assert read_windows(place.root) == [both, CALM]
    write_summary(place)
    assert json.loads((place.root / SUMMARY).read_text())["endpoints"][0] == both.model_dump()
    print_sweep(place, as_json=False)
    shown = capsys.readouterr().out
    assert "waited for hosted: 13.0 s over all calls, 3 rate limits, at most 9 calls at once" in shown
    assert "calm" not in shown


def test_a_line_that_was_cut_is_left_out_and_a_damaged_one_is_told(tmp_path):
    note_windows(tmp_path, [CALM])
    path = tmp_path / ENDPOINTS
    with path.open("a") as file:
        file.write('{"endpoint"')
    assert read_windows(tmp_path) == [CALM]
    with path.open("a") as file:
        file.write("\n")
    with pytest.raises(StoreError, match=r"endpoints\.jsonl:2: is no report of an endpoint"):
        read_windows(tmp_path)


def test_without_endpoints_there_is_no_file(tmp_path):
    note_windows(tmp_path, [])
    assert not (tmp_path / ENDPOINTS).exists()
    assert read_windows(tmp_path) == []
