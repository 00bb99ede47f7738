"""Scratch where no file system of its own can be mounted."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.errors import EnvironmentFault
from orchestrator.sandbox import scratch
from orchestrator.sandbox.scratch import ScratchRoot, default_root

SIZE = 1 << 20


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScratchRoot:
    monkeypatch.setattr(scratch, "_MKFS", ("true",))
    monkeypatch.setattr(scratch, "_MOUNT", ("false",))
    return ScratchRoot(tmp_path / "root")


def test_default_is_this_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CAB_SCRATCH", raising=False)
    assert default_root() == Path(f"/var/tmp/cab-{os.geteuid()}")
    monkeypatch.setenv("CAB_SCRATCH", "/elsewhere")
    assert default_root() == Path("/elsewhere")


def test_cell_is_empty_private_and_removed(root: ScratchRoot) -> None:
    with root.cell(SIZE, 100, os.geteuid()) as one, root.cell(SIZE, 100, os.geteuid()) as other:
        assert one.bounded is False
        assert one.path != other.path
        assert list(one.path.iterdir()) == []
        assert one.path.parent.stat().st_mode & 0o777 == 0o700
        (one.path / "file").write_text("x")
    assert [p for p in root.path.iterdir() if p.is_dir()] == []


def test_what_an_agent_leaves_can_be_removed(root: ScratchRoot, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("x")
    with root.cell(SIZE, 100, os.geteuid()) as cell:
        (cell.path / "closed" / "in").mkdir(parents=True)
        (cell.path / "closed").chmod(0)
        (cell.path / "out").symlink_to(tmp_path)
        deep = os.open(cell.path, os.O_RDONLY)
        for _ in range(1500):
            os.mkdir("d", dir_fd=deep)
            deeper = os.open("d", os.O_RDONLY, dir_fd=deep)
            os.close(deep)
            deep = deeper
        os.close(deep)
    assert [p for p in root.path.iterdir() if p.is_dir()] == []
    assert (tmp_path / "precious").exists()


def test_removed_when_the_cell_fails(root: ScratchRoot) -> None:
    with pytest.raises(LookupError), root.cell(SIZE, 100, os.geteuid()):
        raise LookupError
    assert [p for p in root.path.iterdir() if p.is_dir()] == []


def test_only_what_died_is_swept(root: ScratchRoot) -> None:
    program = (
        "import os, sys; from pathlib import Path; from orchestrator.sandbox import scratch\n"
        "scratch._MKFS = ('true',); scratch._MOUNT = ('false',)\n"
        f"with scratch.ScratchRoot(Path(sys.argv[1])).cell({SIZE}, 100, os.geteuid()) as cell:\n"
        "    print(cell.path.parent.name, flush=True); sys.stdin.read()"
    )
    with (
        root.cell(SIZE, 100, os.geteuid()) as living,
        subprocess.Popen(
            [sys.executable, "-c", program, root.path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as other,
    ):
        assert other.stdout is not None
        name = other.stdout.readline().strip()
        assert root.sweep_dead() == []
        other.kill()
        other.wait()
        assert root.sweep_dead() == [name]
        assert living.path.is_dir()
        assert not (root.path / name).exists()


def test_cell_that_ends_is_not_swept_twice(root: ScratchRoot) -> None:
    with root.cell(SIZE, 100, os.geteuid()):
        pass
    assert root.sweep_dead() == []


def test_owner_that_cannot_be(root: ScratchRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "chown", refuse)
    with (
        pytest.raises(EnvironmentFault, match="uid 12345"),
        root.cell(SIZE, 100, 12345),
    ):
        pass
    assert [p for p in root.path.iterdir() if p.is_dir()] == []


@pytest.mark.parametrize("kind", ["writable by others", "a link", "a file"])
def test_root_that_is_not_ours_alone(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "root"
    if kind == "a link":
        (tmp_path / "real").mkdir()
        path.symlink_to(tmp_path / "real")
    elif kind == "a file":
        path.write_text("")
    else:
        path.mkdir()
        path.chmod(0o777)
    with pytest.raises(EnvironmentFault, match="CAB_SCRATCH"):
        ScratchRoot(path)
