"""Host names that are looked up in a container without a network: they are seen, and fail as they would."""

from __future__ import annotations

from harness import Runner

LOOKS_UP = """
import socket, struct, time
for name in ("Example.COM", "api.example.org", "example.com", "localhost"):
    began = time.monotonic()
    try:
        socket.getaddrinfo(name, 443)
    except socket.gaierror as error:
        assert error.errno == socket.EAI_AGAIN, error
        print(name, time.monotonic() - began < 4)
"""

HOSTILE = """
import os, socket
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def ask(*labels, head=b"\\0\\1\\1\\0\\0\\1" + bytes(6), tail=b"\\0\\0\\1\\0\\1"):
    question = b"".join(bytes([len(label)]) + label for label in labels)
    sender.sendto(head + question + tail, ("127.0.0.1", 53))
ask(b"a\\nend exit=0")
ask(b"\\x1b[2J", b"com")
ask(b"x" * 63, b"x" * 63, b"x" * 63, b"x" * 63, b"x" * 63)
ask(b"cut", tail=b"")
ask(b"answer", head=b"\\0\\1\\x81\\0\\0\\1" + bytes(6))
for size in (0, 1, 11, 12, 600, 60000):
    sender.sendto(b"\\xc0" * size, ("127.0.0.1", 53))
    sender.sendto(os.urandom(size), ("127.0.0.1", 53))
sender.settimeout(5)
for number in range(200):
    ask(b"n%d" % number)
    sender.recv(600)
"""


def test_each_name_is_told_once_with_its_first_time_and_count(run: Runner) -> None:
    end, output = run("python3", "-c", LOOKS_UP, names=True)
    assert (end.exit_code, output.stderr) == (0, b"")
    said = output.stdout.decode().split("\n")
    assert said == ["Example.COM True", "api.example.org True", "example.com True", ""]
    assert end.asked is not None
    assert [(asked.name, asked.count) for asked in end.asked] == [("example.com", 4), ("api.example.org", 2)]
    # What PID 1 reads in one go has one time.
    assert end.start < end.asked[0].first <= end.asked[1].first < end.end


def test_hostile_questions_neither_speak_for_pid_1_nor_fill_it(run: Runner) -> None:
    end, output = run("python3", "-c", HOSTILE, names=True)
    assert (end.exit_code, output.stderr) == (0, b"")
    assert end.asked is not None
    assert len(end.asked) == 64
    assert all(asked.name.startswith("n") for asked in end.asked)


def test_nobody_listens_where_names_are_not_asked_for(run: Runner) -> None:
    end, _ = run("true")
    assert end.asked is None
