"""One definition of columns: nothing of a record is lost without a word."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from pydantic import BaseModel
from store_samples import cell_record

from orchestrator.store import column
from orchestrator.store.column import DTYPES, Column, Dtype, cell_data
from orchestrator.store.columns import COLUMNS, INDEX_COLUMNS, LEFT_OUT
from orchestrator.store.frame import POLARS
from orchestrator.store.index import IndexEntry, entry_of
from orchestrator.store.names import CellKey
from orchestrator.store.record import CellRecord, to_json
from scorers.score import Scores

KEY = CellKey("opencode", "embedded/reference", "polyglot/t0")
NAMES = [one.name for one in COLUMNS]


def models_in(annotation: Any) -> Iterator[tuple[type[BaseModel], bool]]:
    """The models that a field may hold, and whether it holds many."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, False
    many = getattr(annotation, "__origin__", None) in (list, tuple)
    for inner in get_args(annotation):
        yield from ((model, many or more) for model, more in models_in(inner))


def places(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Every field of a record down to its last, by the words of a column's source."""
    for name, field in model.model_fields.items():
        place = prefix + (field.serialization_alias or name)
        inner = [(Scores, False)] if place == "scores" else list(models_in(field.annotation))
        if not inner:
            yield place
        for kind, many in inner:
            yield from places(kind, f"{place}.*." if many else f"{place}.")


def covered(place: str, one: Column) -> bool:
    whole = one.derive is column.builds or (one.derive is None and one.dtype == "json")
    above = place.startswith(f"{one.source}.")
    read = {column.severe_findings_of: "severity", column.rules_of: "rule"}.get(one.derive)
    of_findings = read is not None and place == f"{one.source}.findings.*.{read}"
    return place == one.source or one.source.startswith(f"{place}.") or (whole and above) or of_findings


PLACES = [place for place in places(CellRecord) if place != "scores.methodology_version"]


def test_each_field_of_the_record_is_a_column_or_said_to_be_none() -> None:
    columns = {place for place in PLACES if any(covered(place, one) for one in COLUMNS)}
    # The column `null_reasons`.
    columns |= {place for place in PLACES if place.startswith("scores.") and place.endswith(".reasons")}
    left_out = {
        place
        for place in PLACES
        if any(
            place == known or place.startswith((f"{known}.", known.removesuffix("*"))) for known in LEFT_OUT
        )
    }
    assert [place for place in PLACES if place not in columns | left_out] == []
    assert sorted(columns & set(LEFT_OUT)) == []


def test_what_is_left_out_is_there() -> None:
    for known in LEFT_OUT:
        stem = known.removesuffix("*")
        assert any(place == known or place.startswith(stem) for place in PLACES), known
    assert len(PLACES) > 120


def test_a_columns_source_is_a_place_of_the_record_or_of_the_task() -> None:
    of_cells = {"record_sha256", "scores", "task.language"}
    of_cells |= {f"task.ref_{name}" for name in ("tokens", "active_s", "diff_lines")}
    for one in COLUMNS:
        known = any(covered(place, one) or place.startswith(f"{one.source}.") for place in PLACES)
        below_a_dict = any(one.source.startswith(f"{place}.") for place in PLACES)
        assert known or below_a_dict or one.source in of_cells, one


def test_the_index_is_made_of_its_columns() -> None:
    assert [one.name for one in INDEX_COLUMNS] == [name for name in IndexEntry.model_fields if name != "v"]
    record = cell_record(KEY)
    raw = to_json(record)
    entry = entry_of(record, raw)
    cell = cell_data(record.model_dump(mode="json"), hashlib.sha256(raw).hexdigest())
    assert entry.model_dump(mode="json", exclude={"v"}) == {one.name: one.of(cell) for one in INDEX_COLUMNS}


def test_every_column_is_named_once_and_documented() -> None:
    assert len(NAMES) == len(set(NAMES))
    assert set(DTYPES) == set(POLARS) == set(get_args(Dtype))
    for one in COLUMNS:
        assert one.about
        assert "|" not in one.about
        if one.name.endswith(("_ms", "_s", "_usd", "_bytes", "_tokens")) and one.dtype in ("int", "float"):
            unit = one.name.rpartition("_")[2]
            assert one.unit == {"usd": "USD"}.get(unit, unit), one


def test_a_number_is_a_number_whatever_json_made_of_it() -> None:
    one = Column("x", "float", None, "a.b", "")
    assert repr(one.of({"a": {"b": 1}})) == "1.0"
    assert one.of({"a": None}) is None
    assert one.of({}) is None


def test_elements_of_a_list_and_what_is_made_of_them() -> None:
    total = Column("x", "int", None, "tries.*.tokens", "", column.total)
    assert total.of({"tries": [{"tokens": 1}, {"tokens": 2}]}) == 3
    assert total.of({"tries": [{"tokens": 1}, {"tokens": None}]}) is None
    assert total.of({"tries": []}) == 0
    assert total.of({"tries": None}) is None


SEVERE, NOTE = {"severity": "severe", "rule": "b"}, {"severity": "note", "rule": "a"}


@pytest.mark.parametrize(
    ("integrity", "told"),
    [
        ({"integrity": 1, "findings": []}, (0, 0, [])),
        ({"integrity": 0, "findings": [SEVERE, NOTE, NOTE]}, (3, 1, ["a", "b"])),
        # What was not read may hold more.
        ({"integrity": None, "findings": [NOTE]}, (None, None, None)),
        # Published cells do not tell.
        ({"integrity": 1}, (None, None, None)),
        (None, (None, None, None)),
    ],
)
def test_findings_are_told_where_all_was_read(integrity: Any, told: tuple[Any, ...]) -> None:
    names = ("integrity_findings", "integrity_severe", "integrity_rules")
    of = {one.name: one for one in COLUMNS}
    assert tuple(of[name].of({"scores": {"integrity": integrity}}) for name in names) == told


def test_reasons_for_nulls_are_found_at_any_depth() -> None:
    scores = {"latency": {"reasons": {"a": "why"}, "partition": {"reasons": {"b": "since"}}}, "empty": {}}
    assert column.null_reasons(scores) == {"latency.a": "why", "latency.partition.b": "since"}
