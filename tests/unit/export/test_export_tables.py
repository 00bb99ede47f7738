"""Parquet, CSV and JSON Lines hold the same values, and those of the index."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path

import polars as pl
import pytest
from export_samples import FAILED, HOSTILE, SOLVED, SWEEP

from orchestrator.errors import StoreError
from orchestrator.export.cells import Seen, cells_of
from orchestrator.export.columns_doc import markdown
from orchestrator.export.tables import (
    COLUMNS_KEY,
    csv,
    frame,
    guarded,
    json_line,
    jsonl,
    rows_of,
    unguarded,
    write_parquet,
)
from orchestrator.store import load_frame
from orchestrator.store.chosen import chosen_sweeps
from orchestrator.store.column import as_json_text
from orchestrator.store.columns import COLUMNS, INDEX_COLUMNS
from orchestrator.store.frame import POLARS

ROOT = Path(__file__).parents[3]
BY_NAME = {column.name: column for column in COLUMNS}


@pytest.fixture(scope="module")
def rows(stores):
    return list(rows_of(cells_of(stores), COLUMNS))


def one(rows, key):
    return next(row for row in rows if row["cell_id"] == key.cell_id(SWEEP))


def test_what_was_measured_is_there_and_what_was_not_is_null_with_its_reason(rows):
    solved = one(rows, SOLVED)
    assert (solved["category"], solved["language"], solved["claim"]) == ("polyglot", "rust", "provisional")
    assert (solved["passed"], solved["tests_run"], solved["tests_passed"]) == (1.0, 2, 2)
    assert (solved["prompt_tokens"], solved["completion_tokens"], solved["model_calls"]) == (257, 31, 3)
    assert solved["cached_read_tokens"] is None
    assert solved["null_reasons"]["tokens.cached_read"] == "1 of 3 counted calls did not state it"
    assert (solved["egress"], solved["isolation"], solved["verifier"]) == ("none", "separate", "fresh")
    assert solved["time_limit_s"] == 600.0
    assert sum(
        solved[f"{part}_ms"] or 0 for part in ("setup", "model", "tool", "cli", "verify", "score")
    ) == (pytest.approx(solved["total_ms"]))
    broken = next(row for row in rows if row["outcome"] == "infra_error")
    assert (broken["attempts"], broken["attempts_prompt_tokens"]) == (1, 5)
    assert broken["attempts_completion_tokens"] is None
    assert broken["composite"] is None


def test_imported_and_pipeline_cells_keep_their_words(rows):
    assert {row["claim"] for row in rows} == {"provisional", "pipeline_only", "imported"}
    for row in rows:
        imported = row["claim"] == "imported"
        assert imported == (row["published_id"] is not None) == (row["imported_reasons"] is not None)
        assert imported == (row["methodology_version"] == "published-0.1")


def test_rows_come_by_sweep_and_place_whatever_the_order_of_the_index(made, results):
    index = results / SWEEP / "index.jsonl"
    lines = index.read_bytes().splitlines(keepends=True)
    random.Random(1).shuffle(lines)
    index.write_bytes(b"".join(lines))
    of = [
        b"".join(jsonl(rows_of(cells_of(chosen_sweeps([SWEEP], it)), COLUMNS), COLUMNS))
        for it in (made, results)
    ]
    assert of[0] == of[1]
    order = [json.loads(line)["order_index"] for line in of[0].splitlines()]
    assert order == [0, 1, 2]


def test_columns_of_the_index_are_those_of_the_frame(stores, rows, made):
    of_index = load_frame(made).sort("cell_id")
    names = [column.name for column in INDEX_COLUMNS]
    assert frame(rows, COLUMNS).select(names).sort("cell_id").equals(of_index)


def test_json_lines_give_every_value_back(rows):
    lines = b"".join(jsonl(rows, COLUMNS)).decode().splitlines()
    assert [json.loads(line) for line in lines] == rows
    assert all(list(json.loads(line)) == list(BY_NAME) for line in lines)


def test_parquet_gives_every_value_back(tmp_path, rows):
    path = tmp_path / "cells.parquet"
    assert write_parquet(path, iter(rows), COLUMNS) == len(rows)
    read = pl.read_parquet(path)
    assert read.schema == pl.Schema({name: POLARS[column.dtype] for name, column in BY_NAME.items()})
    texts = {"json": as_json_text, "time": lambda value: value}
    for row, back in zip(rows, read.iter_rows(named=True), strict=True):
        for name, value in row.items():
            dtype, found = BY_NAME[name].dtype, back[name]
            if dtype == "time" and found is not None:
                found = found.isoformat(timespec="microseconds").replace("+00:00", "Z")
            assert found == (value if value is None else texts.get(dtype, lambda it: it)(value)), name
    facts = json.loads(pl.read_parquet_metadata(path)[COLUMNS_KEY])
    assert [fact["name"] for fact in facts] == list(BY_NAME)
    assert next(fact for fact in facts if fact["name"] == "wall_clock_ms")["unit"] == "ms"


def test_half_a_character_is_the_same_in_every_format(tmp_path, rows):
    [first, *_] = rows
    row = {**first, "detail": "half \ud800 of one", "claim_reasons": ["\udfff"]}
    write_parquet(tmp_path / "cells.parquet", [row], COLUMNS)
    [stored] = pl.read_parquet(tmp_path / "cells.parquet").to_dicts()
    line = json.loads(json_line(row))
    for name in ("detail", "claim_reasons"):
        assert stored[name] == line[name]
    assert line["detail"] == "half ? of one"


def test_csv_gives_every_value_back(rows):
    text = b"".join(csv(rows, COLUMNS))
    schema = {
        name: pl.String if column.dtype in ("json", "texts", "floats", "time") else POLARS[column.dtype]
        for name, column in BY_NAME.items()
    }
    read = pl.read_csv(io.BytesIO(text), schema=schema)
    assert read.height == len(rows)
    for row, back in zip(rows, read.iter_rows(named=True), strict=True):
        for name, value in row.items():
            dtype, found = BY_NAME[name].dtype, back[name]
            listed = value is not None and dtype in ("json", "texts", "floats")
            told = unguarded(found) if isinstance(found, str) else found
            assert told == (as_json_text(value) if listed else value), name


def test_no_field_of_csv_is_a_formula(rows):
    import csv as reader

    text = b"".join(csv(rows, COLUMNS)).decode()
    fields = [field for line in reader.reader(io.StringIO(text, newline="")) for field in line]
    numbers = [field for field in fields if field[:1] in "=+-@\t\r\n" and field]
    assert all(float(field) < 0 for field in numbers)
    assert "'=HYPERLINK(1)" in "".join(fields)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_guarded_text_comes_back(text):
    assert unguarded(guarded(text)) == text
    assert not guarded(text).startswith(("=", "+", "-", "@", "\t", "\r", "\n"))


def test_a_null_and_an_empty_text_are_two_things(rows):
    row = {**one(rows, FAILED), "cause": "", "condition": None}
    chosen = [BY_NAME["cause"], BY_NAME["condition"]]
    assert b"".join(csv([row], chosen)).splitlines() == [b"cause,condition", b'"",']
    assert frame([row], chosen).row(0) == ("", None)


def test_a_record_that_was_changed_is_refused(results):
    path = results / SWEEP / "cells" / SOLVED.path() / "cell.json"
    path.write_bytes(path.read_bytes().replace(b'"pass": 1', b'"pass": 0'))
    with pytest.raises(StoreError, match=r"cell\.json: is not the record that the index names"):
        list(cells_of(chosen_sweeps([SWEEP], results)))


def test_what_was_seen_is_said_with_claims_and_versions(stores):
    seen = Seen()
    assert len(list(seen.through(cells_of(stores)))) == 43
    assert str(seen) == (
        "43 cells (40 imported, 1 pipeline_only, 2 provisional; methodology 1 and published-0.1); "
        "keep claims and versions apart, each row says its own"
    )


def test_the_documented_columns_are_the_columns():
    stored = (ROOT / "docs" / "columns.md").read_text("utf-8")
    assert stored == markdown(COLUMNS), "make it anew: cab export columns > docs/columns.md"
