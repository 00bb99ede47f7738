"""A finished cell is never lost and never there twice, whatever dies at whatever instruction."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from crash_worker import NEW, OLD
from store_samples import SWEEP_ID

from orchestrator.store.cells import CellStore

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    ("scenario", "key"),
    [("commit", NEW), ("replace", OLD), ("rewrite", OLD)],
    ids=["commit", "replace", "rewrite"],
)
def test_kill_at_every_point(tmp_path, scenario, key):
    command = [sys.executable, str(HERE / "crash_worker.py"), str(tmp_path), scenario]
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parents[2])])}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    points = int(done.stdout)
    assert points > 10
    outcomes = set()
    for point in range(points):
        outcomes.add(check(tmp_path / str(point), key))
    assert outcomes == {"old", "new"}


def check(results: Path, key) -> str:
    store = CellStore(results, SWEEP_ID)
    with store:
        store.open()
        finished = store.finished()
        lines = store.index_path.read_bytes().splitlines()
    cell_id = key.cell_id(SWEEP_ID)
    assert OLD.cell_id(SWEEP_ID) in finished
    written = results / "written"
    was_written = not written.exists() or written.read_text() == "True"
    new = cell_id in finished and finished[cell_id].order_index == 7
    assert new == was_written
    for each, entry in finished.items():
        kept = store.record(OLD if each == OLD.cell_id(SWEEP_ID) else NEW)
        assert kept.cell_id == each
        assert kept.order_index == entry.order_index
    assert sum(f'"order_index":{7 if new else 0}'.encode() in line for line in lines) == 1
    left = {str(path.relative_to(store.root)) for path in store.root.rglob("*") if path.is_file()}
    cells = {str(store.cell_dir(OLD).relative_to(store.root))}
    if cell_id in finished:
        cells.add(str(store.cell_dir(key).relative_to(store.root)))
    expected = {"sweep.json", "index.jsonl", "lock"}
    expected |= {f"{cell}/{name}" for cell in cells for name in ("cell.json", "diff.patch")}
    assert left == expected
    assert not list((store.root / ".staging").iterdir())
    store.rebuild_index()
    assert store.finished() == finished
    return "new" if new else "old"
