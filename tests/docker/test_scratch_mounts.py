"""Scratch as root, and what a container sees of it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from harness import REPO, UID, Runner

from orchestrator.sandbox.contract import Mount
from orchestrator.sandbox.scratch import ScratchRoot

SIZE = 32 << 20
root_only = os.geteuid() == 0


@pytest.fixture
def root(short_dir: Path) -> ScratchRoot:
    return ScratchRoot(short_dir / "scratch")


def test_bounded_exactly_where_this_user_may_mount(root: ScratchRoot) -> None:
    with root.cell(SIZE, 1000, UID) as cell:
        assert cell.bounded is root_only
        assert cell.path.stat().st_uid == UID
        assert list(cell.path.iterdir()) == []
        if root_only:
            with pytest.raises(OSError, match="No space left") as full:
                (cell.path / "big").write_bytes(bytes(SIZE + 1))
            assert full.value.errno == errno.ENOSPC
            (cell.path / "big").unlink()
            assert 900 < fill_with_files(cell.path) < 1100
    assert [p for p in root.path.iterdir() if p.is_dir()] == []
    assert str(root.path) not in Path("/proc/mounts").read_text() + loops()


def test_container_sees_no_name_of_the_host(root: ScratchRoot, run: Runner) -> None:
    with root.cell(SIZE, 1000, UID) as cell:
        workdir = cell.path / "work"
        workdir.mkdir()
        os.chown(workdir, UID, -1)
        _, output = run(
            "sh",
            "-c",
            "echo 1 > a; cat a; cat /proc/self/mountinfo",
            mounts=(Mount(workdir, "/workdir", False),),
            workdir="/workdir",
        )
    assert output.stdout.startswith(b"1\n"), output.stderr
    if root_only:
        assert str(root.path).encode() not in output.stdout


def test_scratch_of_a_killed_process_is_unmounted_and_removed(root: ScratchRoot) -> None:
    program = (
        "import sys; from pathlib import Path; from orchestrator.sandbox.scratch import ScratchRoot\n"
        f"with ScratchRoot(Path(sys.argv[1])).cell({SIZE}, 1000, {UID}) as cell:\n"
        "    print(cell.path, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, root.path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(REPO)},
    ) as other:
        assert other.stdout is not None
        path = Path(other.stdout.readline().strip())
        other.kill()
    assert path.is_mount() is root_only
    # A process that still stands in it, as a container may.
    with subprocess.Popen(["cat"], cwd=path, stdin=subprocess.PIPE) as holder:
        assert root.sweep_dead() == [path.parent.name]
        assert not path.parent.exists()
        holder.kill()
    assert str(root.path) not in Path("/proc/mounts").read_text() + loops()


def fill_with_files(path: Path) -> int:
    """How many empty files fit."""
    for count in range(2000):
        try:
            (path / str(count)).touch()
        except OSError:
            return count
    return 2000


def loops() -> str:
    """The files behind loop devices."""
    found = subprocess.run(["losetup", "--list", "--noheadings"], capture_output=True, text=True, check=True)
    return found.stdout
