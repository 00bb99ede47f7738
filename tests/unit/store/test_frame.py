from __future__ import annotations

import subprocess
import sys

import polars as pl
import pytest
from store_samples import STARTED, SWEEP_ID, cell_record, sweep_record

from orchestrator.errors import StoreError
from orchestrator.store import load_frame
from orchestrator.store.cells import CellStore
from orchestrator.store.frame import SCHEMA
from orchestrator.store.index import IndexEntry
from orchestrator.store.names import CellKey

KEYS = [CellKey("opencode", "embedded/reference", f"polyglot/t{number}") for number in range(3)]


@pytest.fixture
def store(tmp_path):
    with CellStore(tmp_path, SWEEP_ID) as store:
        store.create(sweep_record(*KEYS))
        for index, key in enumerate(KEYS):
            store.commit(store.staging(key), cell_record(key, order_index=index))
        yield store


def test_the_columns_are_those_of_the_index():
    assert [*SCHEMA, "v"] == [*(name for name in IndexEntry.model_fields if name != "v"), "v"]


@pytest.mark.parametrize(
    "of", [lambda store: store.root, lambda store: store.root.parent, lambda store: [store.root]]
)
def test_one_row_for_each_finished_cell(store, of):
    frame = load_frame(of(store))
    assert frame.schema == pl.Schema(SCHEMA)
    assert frame["task"].to_list() == ["polyglot/t0", "polyglot/t1", "polyglot/t2"]
    row = frame.row(0, named=True)
    assert row["started_at"] == STARTED
    assert row["composite_bounds"] == [0.91, 0.91]
    assert (row["passed"], row["total_tokens"], row["model_call_ms"], row["counted"]) == (
        1.0,
        150,
        None,
        True,
    )


def test_a_replaced_cell_has_its_last_row_and_a_torn_line_none(store):
    store.rewrite(cell_record(KEYS[0], order_index=9))
    with store.index_path.open("ab") as index:
        index.write(b'{"v":1,"cell')
    frame = load_frame(store.root)
    assert frame.height == 3
    assert frame.filter(pl.col("task") == "polyglot/t0")["order_index"].to_list() == [9]


def test_nothing_is_an_empty_frame(tmp_path):
    assert load_frame(tmp_path).schema == pl.Schema(SCHEMA)
    with CellStore(tmp_path, SWEEP_ID) as store:
        store.create(sweep_record())
        assert load_frame(store.root).height == 0


def test_what_is_no_results_directory_is_named(tmp_path, store):
    with pytest.raises(StoreError, match="there is no such directory"):
        load_frame(tmp_path / "missing")
    with store.index_path.open("ab") as index:
        index.write(b"{]\n")
    with pytest.raises(StoreError, match=r"index\.jsonl: is damaged"):
        load_frame(store.root)


def test_the_store_does_not_import_polars():
    code = "import sys, orchestrator.store.cells, orchestrator.store.evidence; print('polars' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"
