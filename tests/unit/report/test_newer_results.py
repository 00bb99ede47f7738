"""Results that a newer cab wrote are refused with the place and the mend, and left as they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from report_samples import SWEEP, evidence, record, store

from orchestrator import cli
from orchestrator.errors import NewerThanCab
from orchestrator.store.cells import CellStore


def newer(path: Path, key: str) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: 99}) + "\n")


@pytest.mark.parametrize(
    ("file", "key", "says"),
    [
        ("sweep.json", "schema_version", "has schema_version 99, newer than 2 (update cab to read it)"),
        ("index.jsonl", "v", "has version 99, newer than 1 (update cab to read it)"),
        ("cell.json", "schema_version", "has schema_version 99, newer than 1 (update cab to read it)"),
    ],
)
def test_it_is_one_line(
    tmp_path: Path,
    file: str,
    key: str,
    says: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cli.signal, "signal", lambda *_: None)
    cell = record(found := evidence())
    stored = store(tmp_path, (cell, found))
    (path,) = stored.root.rglob(file)
    newer(path, key)
    before = path.read_bytes()
    command = ["cell", "show", cell.cell_id] if file == "cell.json" else ["sweep", "status", SWEEP]
    with pytest.raises(SystemExit) as end:
        cli.main([*command, "-r", str(tmp_path)])
    assert end.value.code == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert str(path) in err
    assert says in err
    assert path.read_bytes() == before


def test_a_newer_index_is_not_rebuilt(tmp_path: Path) -> None:
    cell = record(found := evidence())
    stored = store(tmp_path, (cell, found))
    newer(stored.index_path, "v")
    before = stored.index_path.read_bytes()
    with pytest.raises(NewerThanCab, match=r"index\.jsonl:1: has version 99"):
        CellStore(tmp_path, SWEEP).open()
    assert stored.index_path.read_bytes() == before
