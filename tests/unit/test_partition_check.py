"""The check that the docker tests, and a person, run over a sweep's cells."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.docker.partition import wrong_cells


def cell(where: Path, name: str, duration_s: float, **parts: float | None) -> None:
    partition = {"setup": 1000.0, "cli": 9000.0, "verify": None, "reasons": {"verify": "x"}} | parts
    latency = {"partition": partition, "total_ms": 10_000.0}
    directory = where / "cells" / name
    directory.mkdir(parents=True)
    record = {
        "identity": {"cell_id": name},
        "timing": {"duration_s": duration_s},
        "scores": {"latency": latency},
    }
    (directory / "cell.json").write_text(json.dumps(record))


def test_a_cell_whose_parts_miss_its_time_is_named(tmp_path: Path) -> None:
    cell(tmp_path, "right", 10.05)
    cell(tmp_path, "short", 10.2)
    cell(tmp_path, "twice", 10.0, verify=500.0)
    assert set(wrong_cells(tmp_path)) == {"short", "twice"}


def test_a_sweep_without_cells_is_no_success(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="holds no cell"):
        wrong_cells(tmp_path)
