"""A listening socket does not tell who connects where it is, and may be anywhere."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from orchestrator.unix_socket import bound


def test_who_connects_does_not_learn_the_path(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 120)
    deep.mkdir()
    with bound(deep / "a.sock") as listener, socket.socket(socket.AF_UNIX) as client:
        assert (deep / "a.sock").is_socket()
        listener.listen(1)
        entry = os.open(deep, os.O_PATH)
        client.connect(f"/proc/self/fd/{entry}/a.sock")
        os.close(entry)
        assert str(tmp_path) not in client.getpeername()
        assert str(tmp_path) not in Path("/proc/net/unix").read_text()


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        bound(tmp_path / "none" / "a.sock")
