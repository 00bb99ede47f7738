"""Files that several processes make: each once, whoever fails."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from orchestrator.site import workers


def writer(root: Path, here: int, fails: str) -> workers.Make:
    """Writes into each file which process made it. `fails` is "nowhere", "elsewhere" or "everywhere"."""

    def make(paths: Sequence[str]) -> dict[str, int]:
        if fails == "everywhere" or (fails == "elsewhere" and os.getpid() != here):
            raise ValueError("cannot be made")
        return {path: (root / path).write_text(f"{os.getpid()}") for path in paths}

    return make


def shared(root: Path, fails: str, count: int, told: list[tuple[int, int]]) -> dict[str, int]:
    here = os.getpid()
    prepare = partial(writer, root, here, fails)
    names = [f"{number}" for number in range(count)]
    return workers.share(prepare(), prepare, names, lambda *done: told.append(done), processes=2)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "WORTH", 20)
    monkeypatch.setattr(workers, "PART", 5)


def makers(root: Path) -> set[str]:
    return {path.read_text() for path in root.iterdir()}


@pytest.mark.parametrize("fails", ["nowhere", "elsewhere"])
def test_each_file_is_made(tmp_path: Path, fails: str) -> None:
    told: list[tuple[int, int]] = []
    sizes = shared(tmp_path, fails, 42, told)
    assert sizes == {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert len(sizes) == 42
    assert told[0][0] == 0
    assert {of for _, of in told} == {42}
    if fails == "elsewhere":
        assert makers(tmp_path) == {str(os.getpid())}


def test_what_nobody_can_make_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be made"):
        shared(tmp_path, "everywhere", 42, [])


def test_a_few_files_start_no_process(tmp_path: Path) -> None:
    assert len(shared(tmp_path, "elsewhere", 19, [])) == 19
    assert makers(tmp_path) == {str(os.getpid())}
