"""Evidence is given out to a directory that the agent may own, and nothing that it put there is followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from orchestrator.errors import EnvironmentFault, StoreError
from orchestrator.store.out import Out


@pytest.fixture
def evidence(tmp_path: Path) -> Path:
    made = tmp_path / "evidence"
    made.mkdir()
    (made / "cell.json").write_text("record")
    (made / "wire.jsonl.gz").write_bytes(b"\x1f\x8b")
    return made


@pytest.fixture
def above(tmp_path: Path) -> Path:
    made = tmp_path / "out"
    made.mkdir()
    return made


def test_all_files_are_there_owned_as_what_lies_around_them(above: Path, evidence: Path) -> None:
    if os.geteuid() == 0:
        os.chown(above, 1234, 1235)
    with Out(above, "cell") as out:
        held = above / "cell"
        assert held.stat().st_mode & 0o777 == 0o700, "no agent may look into it while it runs"
        assert out.give(evidence) == held
    assert {path.name: path.read_bytes() for path in held.iterdir()} == {
        "cell.json": b"record",
        "wire.jsonl.gz": b"\x1f\x8b",
    }
    owner = above.stat()
    for path in (held, held / "cell.json"):
        assert (path.stat().st_uid, path.stat().st_gid) == (owner.st_uid, owner.st_gid)
    assert held.stat().st_mode & 0o777 == 0o755


def test_what_was_put_in_its_place_is_not_followed(above: Path, evidence: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with Out(above, "cell") as out:
        (above / "cell").rename(above / "moved")
        (above / "cell").symlink_to(elsewhere)
        given = out.give(evidence)
    assert given.parent == above
    assert given.name.startswith("cell-")
    assert sorted(path.name for path in given.iterdir()) == ["cell.json", "wire.jsonl.gz"]
    assert list(elsewhere.iterdir()) == []
    assert (above / "cell").is_symlink()


def test_a_link_to_a_file_is_not_written_through(above: Path, evidence: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("mine")
    with Out(above, "cell") as out:
        (above / "cell" / "cell.json").symlink_to(target)
        with pytest.raises(StoreError, match="evidence cannot be written"):
            out.give(evidence)
    assert target.read_text() == "mine"


def test_an_older_cell_is_not_written_over(above: Path) -> None:
    (above / "cell").mkdir()
    (above / "cell" / "cell.json").touch()
    with pytest.raises(EnvironmentFault, match=r"cell is there already.*--run"):
        Out(above, "cell")


def test_what_a_killed_run_left_empty_is_taken(above: Path, evidence: Path) -> None:
    (above / "cell").mkdir()
    with Out(above, "cell") as out:
        assert out.give(evidence) == above / "cell"


def test_a_place_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match=r"nowhere.*-v"):
        Out(tmp_path / "nowhere", "cell")


def test_what_cannot_be_hidden_from_an_agent_is_refused(above: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Out(above, "cell") as out:
        monkeypatch.setattr("orchestrator.store.out.landlock_version", lambda: 1)
        assert out.hidden() == above
        (above / "older").mkdir()
        with pytest.raises(EnvironmentFault, match="could read what is in it"):
            out.hidden()
        monkeypatch.setattr("orchestrator.store.out.landlock_version", lambda: 2)
        assert out.hidden() == above


def test_nothing_is_left_of_a_cell_that_came_to_nothing(above: Path) -> None:
    with pytest.raises(KeyboardInterrupt), Out(above, "cell"):
        raise KeyboardInterrupt
    assert list(above.iterdir()) == []
