from __future__ import annotations

import random
import socket
import threading
import time

import pytest

from orchestrator.sandbox.output import OutputReader


def frame(stream: int, data: bytes) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(data).to_bytes(4, "big") + data


def test_frames_split_anywhere() -> None:
    parts = [(random.choice([1, 2]), random.randbytes(random.randrange(300))) for _ in range(50)]
    wire = b"".join(frame(*part) for part in parts)
    got: list[tuple[str, float, bytes]] = []
    ours, theirs = socket.socketpair()
    done = threading.Event()
    reader = OutputReader(ours, tty=False, sink=lambda *chunk: got.append(chunk), notify=done.set)
    before = time.monotonic()
    reader.start()
    with theirs:
        while wire:
            size = random.randrange(1, 100)
            theirs.send(wire[:size])
            wire = wire[size:]
    assert done.wait(60)
    assert reader.stop(10)
    for number, name in ((1, "stdout"), (2, "stderr")):
        assert b"".join(d for n, _, d in got if n == name) == b"".join(d for s, d in parts if s == number)
    assert all(before <= at <= time.monotonic() for _, at, _ in got)


def test_terminal_output_has_no_frames() -> None:
    got: list[bytes] = []
    ours, theirs = socket.socketpair()
    reader = OutputReader(ours, tty=True, sink=lambda _, __, data: got.append(data), notify=lambda: None)
    reader.start()
    with theirs:
        theirs.send(frame(1, b"looks like one"))
    assert reader.stop(10)
    assert b"".join(got) == frame(1, b"looks like one")


def test_reading_goes_on_when_the_sink_fails() -> None:
    calls = []

    def sink(*chunk: object) -> None:
        calls.append(chunk)
        raise LookupError

    ours, theirs = socket.socketpair()
    told = threading.Event()
    reader = OutputReader(ours, tty=True, sink=sink, notify=told.set)
    reader.start()
    with theirs:
        theirs.send(b"x")
        assert told.wait(60)
        theirs.settimeout(10)
        theirs.sendall(b"y" * (4 << 20))  # far more than the socket holds
    assert reader.stop(10)
    assert isinstance(reader.error, LookupError)
    assert len(calls) == 1


@pytest.mark.parametrize("sent", [b"", frame(1, b"unfinished")[:-3]])
def test_stream_that_does_not_end_is_cut_off(sent: bytes) -> None:
    ours, theirs = socket.socketpair()
    reader = OutputReader(ours, tty=False, sink=None, notify=lambda: None)
    reader.start()
    theirs.send(sent)
    assert reader.stop(0.01) is False
    assert reader.ended_at is not None
    theirs.close()
