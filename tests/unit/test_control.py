from __future__ import annotations

import contextlib
import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import CellFault, EnvironmentFault
from orchestrator.sandbox.contract import AskedName, ContainerEnd
from orchestrator.sandbox.control import (
    Asked,
    Closed,
    ControlLine,
    ControlSocket,
    Ended,
    Failed,
    Ready,
    Started,
    Wake,
    parse_line,
)

END = b"end exit=3 signal=- timeout=0 oom=2 cpu_ms=1500 rss_kb=7 start=1500000000 end=2750000000"


@pytest.fixture
def wake() -> Iterator[Wake]:
    wake = Wake()
    yield wake
    wake.close()


@pytest.fixture
def pair() -> Iterator[tuple[ControlLine, socket.socket]]:
    ours, theirs = socket.socketpair()
    line = ControlLine(ours)
    yield line, theirs
    line.close()
    theirs.close()


def soon() -> float:
    return time.monotonic() + 10


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"ready", Ready()),
        (b"ready names", Ready(names=True)),
        (b"asked 1500000000 4 api.example.com", Asked(AskedName("api.example.com", 1.5, 4))),
        (b"started 1500000000", Started(at=1.5)),
        (b"failed 2 No such file or directory", Failed(errno=2, text="No such file or directory")),
        (
            END,
            Ended(
                ContainerEnd(
                    exit_code=3,
                    signal=None,
                    timed_out=False,
                    oom_kills=2,
                    cpu_s=1.5,
                    max_rss_bytes=7168,
                    start=1.5,
                    end=2.75,
                )
            ),
        ),
    ],
)
def test_lines(line: bytes, message: object) -> None:
    assert parse_line(line) == message


@pytest.mark.parametrize("timeout", [b"0", b"1"])
def test_end_by_a_signal(timeout: bytes) -> None:
    line = END.replace(b"exit=3 signal=-", b"exit=- signal=9").replace(b"timeout=0", b"timeout=" + timeout)
    message = parse_line(line)
    assert isinstance(message, Ended)
    assert (message.end.exit_code, message.end.signal) == (None, 9)
    assert message.end.timed_out is (timeout == b"1")


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"Ready",
        b"ready ",
        b"ready\r",
        b"asked 1 2",
        b"asked 1 2 Upper.example",
        b"asked 1 2 bell\x07",
        b"asked 1 2 " + b"x" * 254,
        b"started",
        b"started -1",
        b"started 1 2",
        b"started \xd9\xa1",
        b"failed 2",
        b"failed x y",
        b"failed 2 bell\x07",
        END + b" ",
        END.replace(b"exit=3", b"exit=-"),
        END.replace(b"signal=-", b"signal=9"),
        END.replace(b"timeout=0", b"timeout=2"),
        END.replace(b"oom=2", b"oom=-1"),
        END.replace(b" end=2750000000", b""),
    ],
)
def test_what_is_no_message_is_an_engine_fault(line: bytes) -> None:
    with pytest.raises(CellFault, match=re.escape("not in the protocol")) as fault:
        parse_line(line)
    assert fault.value.cause == "engine"


@given(st.binary(max_size=200))
def test_no_bytes_break_the_parser(line: bytes) -> None:
    with contextlib.suppress(CellFault):
        parse_line(line)


def test_lines_in_pieces_and_in_one(pair: tuple[ControlLine, socket.socket], wake: Wake) -> None:
    line, theirs = pair
    theirs.send(b"ready\nstarted 10")
    assert line.receive(soon(), wake) == Ready()
    assert line.receive(time.monotonic(), wake) is None
    theirs.send(b"00000000\n")
    assert line.receive(soon(), wake) == Started(at=1.0)
    theirs.close()
    assert line.receive(soon(), wake) == Closed()
    assert line.send("kill") is False


def test_line_without_an_end(pair: tuple[ControlLine, socket.socket], wake: Wake) -> None:
    line, theirs = pair
    theirs.send(b"x" * 2000)
    with pytest.raises(CellFault, match="without an end"):
        line.receive(soon(), wake)


def test_wake_ends_a_wait_once(pair: tuple[ControlLine, socket.socket], wake: Wake) -> None:
    line, theirs = pair
    setter = threading.Timer(0, wake.set)
    setter.start()
    assert line.receive(None, wake) is None
    setter.join()
    theirs.send(b"ready\n")
    assert line.receive(None, wake) == Ready()


def test_wake_after_close_is_nothing() -> None:
    wake = Wake()
    wake.close()
    wake.set()


def test_commands_are_lines(pair: tuple[ControlLine, socket.socket]) -> None:
    line, theirs = pair
    assert all([line.send("go"), line.send("pause"), line.send("bye")])
    assert theirs.recv(100) == b"go\npause\nbye\n"


def test_one_connection_and_no_more(tmp_path: Path, wake: Wake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # pytest's own paths are too long for sockets
    control = ControlSocket(Path(), (os.geteuid(), os.getegid()))
    assert Path("control.sock").stat().st_mode & 0o777 == 0o600
    with socket.socket(socket.AF_UNIX) as first, socket.socket(socket.AF_UNIX) as second:
        first.connect("control.sock")
        first.send(b"ready\n")
        line = control.accept(soon(), wake)
        assert line is not None
        with pytest.raises(FileNotFoundError):
            second.connect("control.sock")
        assert line.receive(soon(), wake) == Ready()
        line.close()
    control.close()


def test_waiting_for_nobody_ends(tmp_path: Path, wake: Wake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    control = ControlSocket(Path(), (os.geteuid(), os.getegid()))
    assert control.accept(time.monotonic(), wake) is None
    wake.set()
    assert control.accept(soon(), wake) is None
    control.close()
    assert not Path("control.sock").exists()


def test_stranger_is_refused(tmp_path: Path, wake: Wake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "chown", lambda *_: None)
    control = ControlSocket(Path(), (os.geteuid() + 1, os.getegid()))
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect("control.sock")
        with pytest.raises(CellFault, match="connected instead of"):
            control.accept(soon(), wake)
    control.close()


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match="No such file"):
        ControlSocket(tmp_path / "none", (os.geteuid(), os.getegid()))


def test_socket_that_cannot_be_given_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "chown", refuse)
    with pytest.raises(EnvironmentFault, match="run cab as root"):
        ControlSocket(Path(), (os.geteuid() + 1, os.getegid()))
