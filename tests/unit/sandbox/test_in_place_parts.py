"""Moving instead of mounting, clearing between two commands, and the limits that cab finds itself in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from orchestrator.errors import EnvironmentFault
from orchestrator.sandbox.contract import FoundLimits, Mount
from orchestrator.sandbox.inplace.limits import found_limits
from orchestrator.sandbox.inplace.mounts import listed, moved, remove_left


def test_a_source_is_at_its_target_and_back_again(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "deep" / "target"
    source.mkdir()
    (source / "file").write_text("x")
    with moved([Mount(source, str(target))]):
        assert (target / "file").read_text() == "x"
        assert not source.exists()
        (target / "made").symlink_to("/etc")
    assert sorted(path.name for path in source.iterdir()) == ["file", "made"]
    assert not target.exists()


def test_it_is_back_where_the_command_failed(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    with pytest.raises(KeyError), moved([Mount(tmp_path / "source", str(tmp_path / "target"))]):
        raise KeyError
    assert (tmp_path / "source").is_dir()


def test_a_target_that_is_taken_is_left_as_it_is(tmp_path: Path) -> None:
    for name in ("one", "other", "target"):
        (tmp_path / name).mkdir()
    (tmp_path / "target" / "precious").write_text("x")
    mounts = [
        Mount(tmp_path / "one", str(tmp_path / "free")),
        Mount(tmp_path / "other", str(tmp_path / "target")),
    ]
    with pytest.raises(EnvironmentFault, match="target"), moved(mounts):
        raise AssertionError
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "other", "target"]
    assert (tmp_path / "target" / "precious").exists()


def test_across_file_systems_everything_is_copied(tmp_path: Path) -> None:
    elsewhere = Path("/dev/shm")
    if not elsewhere.is_dir() or elsewhere.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is one file system")
    source, target = tmp_path / "source", elsewhere / f"cab-test-{os.getpid()}"
    source.mkdir()
    os.mkfifo(source / "fifo")
    (source / "file").write_text("x")
    with moved([Mount(source, str(target))]):
        assert (target / "fifo").is_fifo()
        assert not source.exists()
    assert (source / "fifo").is_fifo()
    assert not target.exists()


def test_what_is_new_in_shared_directories_goes_and_what_was_there_stays(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("x")
    before = listed([str(tmp_path), str(tmp_path / "not there")])
    deep = tmp_path / "new"
    for _ in range(40):
        deep = deep / "directory"
    deep.mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "old")
    remove_left(list(before), of=12345, before=before)
    assert [path.name for path in tmp_path.iterdir()] == ["old"]


def test_what_belongs_to_the_commands_user_goes_though_it_was_there(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("x")
    remove_left([str(tmp_path)], of=os.geteuid(), before=listed([str(tmp_path)]))
    assert list(tmp_path.iterdir()) == []


def test_on_a_machine_what_others_make_meanwhile_stays(tmp_path: Path) -> None:
    (tmp_path / "of somebody else").write_text("x")
    remove_left([str(tmp_path), str(tmp_path / "not there")], of=12345, before=None)
    assert [path.name for path in tmp_path.iterdir()] == ["of somebody else"]


def write(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_limits_of_a_unified_control_group(tmp_path: Path) -> None:
    write(tmp_path, memory_dot_max="1048576\n", cpu_dot_max="150000 100000\n", pids_dot_max="64\n")
    assert found_limits(tmp_path) == FoundLimits(memory_bytes=1 << 20, cpus=1.5, pids=64)


def test_limits_of_separate_control_groups(tmp_path: Path) -> None:
    for name, text in {
        "memory/memory.limit_in_bytes": "1048576",
        "cpu/cpu.cfs_quota_us": "50000",
        "cpu/cpu.cfs_period_us": "100000",
        "pids/pids.max": "64",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert found_limits(tmp_path) == FoundLimits(memory_bytes=1 << 20, cpus=0.5, pids=64)


def test_no_limit_is_none(tmp_path: Path) -> None:
    assert found_limits(tmp_path) == FoundLimits()
    write(tmp_path, memory_dot_max="max\n", cpu_dot_max="max 100000\n", pids_dot_max="max\n")
    assert found_limits(tmp_path) == FoundLimits()
    for name, text in {
        "memory/memory.limit_in_bytes": "9223372036854771712",
        "cpu/cpu.cfs_quota_us": "-1",
        "cpu/cpu.cfs_period_us": "100000",
    }.items():
        (tmp_path / "v1" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "v1" / name).write_text(text)
    assert found_limits(tmp_path / "v1") == FoundLimits()
