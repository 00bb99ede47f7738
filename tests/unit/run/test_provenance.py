"""A record made with files that no commit has says so."""

import subprocess
from pathlib import Path

import pytest

from orchestrator.run.provenance import Provenance


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with one commit, in which `*.log` is ignored."""
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a").write_text("a")
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    for command in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "one"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    return tmp_path


def test_a_commit_as_it_is_is_clean(checkout: Path) -> None:
    (checkout / "images" / "x.log").touch()
    (checkout / "notes.txt").touch()
    found = Provenance.read(checkout)
    assert (found.dirty, len(found.commit or "")) == (False, 40)


@pytest.mark.parametrize(
    "path", [".gitignore", "images/a", "images/hello/adapter.py", "tasks/x/y/task.toml", "scorers/new.py"]
)
def test_changed_files_and_untracked_ones_that_decide_are_dirt(checkout: Path, path: str) -> None:
    (checkout / path).parent.mkdir(parents=True, exist_ok=True)
    (checkout / path).write_text("changed\n")
    assert Provenance.read(checkout).dirty is True


def test_outside_a_checkout_nothing_is_known(tmp_path: Path) -> None:
    found = Provenance.read(tmp_path)
    assert (found.commit, found.dirty) == (None, None)
