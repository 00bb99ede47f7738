from __future__ import annotations

import json
from datetime import timedelta, timezone

import pytest
from pydantic import ValidationError
from store_samples import STARTED, cell_record, sweep_record

from orchestrator.errors import StoreError
from orchestrator.store.evidence import load_evidence, save_evidence
from orchestrator.store.names import CellKey
from orchestrator.store.record import (
    CellRecord,
    SweepRecord,
    Timing,
    _of_today,
    data_of,
    parse,
    to_json,
    upgrade,
    validated,
)
from scorers.evidence import AgentEnd, Evidence, Span

KEY = CellKey("opencode", "embedded/reference", "polyglot/a", 2)


def changed(**changes) -> bytes:
    return json.dumps(json.loads(to_json(cell_record(KEY))) | changes).encode()


UNVERSIONED = json.dumps(
    {name: value for name, value in json.loads(changed()).items() if name != "schema_version"}
).encode()


def test_records_come_back_as_they_were():
    record, sweep = cell_record(KEY), sweep_record(KEY)
    assert parse(CellRecord, to_json(record), place="cell.json") == record
    assert parse(SweepRecord, to_json(sweep), place="sweep.json") == sweep
    assert record.identity.key == KEY


def test_in_one_go_and_the_long_way_a_record_is_the_same():
    scores = {
        "pass_rate": {"pass": 1.0, "n": 1, "long": 2**70, "small": 5e-324, "of": 0.1, "text": "é\u2028"}
    }
    raw = to_json(cell_record(KEY, scores=scores))
    found = _of_today(CellRecord, raw)
    assert found is not None
    assert (
        to_json(found) == to_json(validated(CellRecord, data_of(CellRecord, raw, place=""), place="")) == raw
    )


def test_times_are_utc_with_microseconds():
    there = STARTED.astimezone(timezone(timedelta(hours=5)))
    stored = json.loads(Timing.since(there, 1.5).model_dump_json())
    assert stored["started_at"] == "2026-11-27T12:00:00.000000Z"
    assert stored["ended_at"] == "2026-11-27T12:00:01.500000Z"
    with pytest.raises(ValidationError):
        Timing(started_at=STARTED.replace(tzinfo=None), ended_at=STARTED, duration_s=1)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"{", "is no JSON"),
        (b"[]", "is no JSON object"),
        (b"{}", "has no schema_version"),
        (changed(schema_version=True), "has no schema_version"),
        (UNVERSIONED, "has no schema_version"),
        (changed(schema_version=2), r"schema_version 2, newer than 1 \(update cab to read it\)"),
        (changed(extra=1), "extra: Extra inputs are not permitted"),
        (changed(outcome={"name": "lost", "counted": True}), "outcome.name"),
        (changed(order_index=-1), "order_index"),
    ],
)
def test_what_is_refused_is_named_in_one_line(raw, says):
    with pytest.raises(StoreError, match=says) as caught:
        parse(CellRecord, raw, place="here/cell.json")
    assert str(caught.value).startswith("here/cell.json: ")
    assert "\n" not in str(caught.value)


def test_an_id_that_its_parts_contradict_is_refused():
    data = json.loads(to_json(cell_record(KEY)))
    data["identity"]["run"] = 3
    with pytest.raises(StoreError, match=r"cell_id is .*#run2.* but its parts say .*#run3"):
        parse(CellRecord, json.dumps(data).encode(), place="cell.json")


def test_a_digest_without_its_kind_is_refused():
    data = json.loads(to_json(cell_record(KEY)))
    data["identity"]["digest_kind"] = None
    with pytest.raises(StoreError, match="together or not at all"):
        parse(CellRecord, json.dumps(data).encode(), place="cell.json")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_scores_are_never_nan(value):
    with pytest.raises(ValidationError, match="NaN or an infinity"):
        cell_record(KEY, scores={"tokens": {"cost": [value]}})
    with pytest.raises(ValidationError):
        Timing(started_at=STARTED, ended_at=STARTED, duration_s=value)


def test_old_data_climbs_one_version_at_a_time():
    steps = {
        1: lambda data: {**data, "seen": [1]},
        2: lambda data: {**data, "seen": [*data["seen"], 2]},
    }
    assert upgrade({"schema_version": 1}, steps, current=3, place="") == {"schema_version": 3, "seen": [1, 2]}
    assert upgrade({"schema_version": 3}, steps, current=3, place="") == {"schema_version": 3}


def test_a_sweep_of_version_1_is_read_without_the_path_that_it_held():
    older = json.loads(to_json(sweep_record(KEY))) | {"schema_version": 1, "images_dir": "/a/b"}
    assert parse(SweepRecord, json.dumps(older).encode(), place="sweep.json") == sweep_record(KEY)
    with pytest.raises(StoreError, match="images_dir: Extra"):
        parse(SweepRecord, json.dumps(older | {"schema_version": 2}).encode(), place="sweep.json")


def test_records_are_frozen():
    with pytest.raises(ValidationError):
        cell_record(KEY).order_index = 5


def test_evidence_comes_back(tmp_path):
    evidence = Evidence(
        phases={"agent": Span(start=1, end=2.5)}, end=AgentEnd(exit_code=0), diff="-ä\n+\x1b[0m\n"
    )
    save_evidence(tmp_path, evidence)
    assert load_evidence(tmp_path) == evidence


def test_half_a_surrogate_pair_from_an_agent_loses_nothing(tmp_path):
    evidence = Evidence(stdout_tail="a\ud800b", diff="\udcff")
    save_evidence(tmp_path, evidence)
    assert load_evidence(tmp_path) == evidence
    stored = to_json(cell_record(KEY, scores={"pass_rate": {"stdout_tail": "a\ud800b"}}))
    assert parse(CellRecord, stored, place="").scores["pass_rate"]["stdout_tail"] == "a?b"


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"{", "is no JSON"),
        (b"[]", "is no JSON object"),
        (b'{"schema_version": 2}', "newer"),
        (b'{"schema_version": 1, "evidence": {"new": 1}}', "new: Extra"),
        (b'{"schema_version": 1}', "evidence: "),
    ],
)
def test_bad_evidence_is_named(tmp_path, raw, says):
    (tmp_path / "evidence.json").write_bytes(raw)
    with pytest.raises(StoreError, match=says):
        load_evidence(tmp_path)


def test_missing_evidence_is_named(tmp_path):
    with pytest.raises(StoreError, match=r"evidence\.json: No such file"):
        load_evidence(tmp_path)


def test_only_an_imported_record_may_lack_what_its_runner_knew():
    data = json.loads(to_json(cell_record(KEY)))
    data["identity"]["limits"] = None
    with pytest.raises(StoreError, match="limits is null without a reason"):
        parse(CellRecord, json.dumps(data).encode(), place="cell.json")
    imported = {
        "published_id": "x",
        "notice": None,
        "printed": 0.5,
        "printed_exact": None,
        "recomputed": 0.5,
        "reasons": {"limits": "not told"},
    }
    with pytest.raises(StoreError, match="given together or not at all"):
        parse(CellRecord, json.dumps(data | {"imported": imported}).encode(), place="cell.json")
    data |= {"imported": imported, "claim": {"level": "imported"}}
    assert parse(CellRecord, json.dumps(data).encode(), place="cell.json").identity.limits is None
    with pytest.raises(StoreError, match="isolation is null without a reason"):
        parse(CellRecord, json.dumps(data | {"isolation": None}).encode(), place="cell.json")
    sweep = json.loads(to_json(sweep_record(KEY))) | {"spec": None}
    with pytest.raises(StoreError, match="spec is null without a reason"):
        parse(SweepRecord, json.dumps(sweep).encode(), place="sweep.json")
