from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import CellFault
from orchestrator.trace.recording import LogCapture, Recorder, tail_of, tee


@pytest.fixture
def path(tmp_path):
    return tmp_path / "recording.cast"


def record(path, chunks, **options):
    recorder = Recorder(path, 100.0, 120, 40, "opencode: polyglot/a", **options)
    for stream, at, data in chunks:
        recorder(stream, at, data)
    recorder.close()
    header, *events = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return header, events


def test_header_and_times(path):
    chunks = [("stdout", 100.5, b"a"), ("stdout", 101.25, b"\x1b[31mb"), ("stderr", 101.0, b"late")]
    header, events = record(path, chunks, started_unix=1_800_000_000)
    assert header == {
        "version": 2,
        "width": 120,
        "height": 40,
        "timestamp": 1_800_000_000,
        "title": "opencode: polyglot/a",
        "env": {"TERM": "xterm-256color"},
    }
    assert events == [[0.5, "o", "a"], [1.25, "o", "\x1b[31mb"], [1.25, "o", "late"]]


def test_what_came_before_the_origin_is_at_zero(path):
    assert record(path, [("stdout", 99.0, b"x")])[1] == [[0.0, "o", "x"]]


def test_a_character_split_between_reads_is_put_together(path):
    data = "ä€😀".encode()
    chunks = [("stdout", 100.0 + index, bytes([byte])) for index, byte in enumerate(data)]
    _, events = record(path, chunks)
    assert [text for _, _, text in events] == ["ä", "€", "😀"]
    assert [at for at, _, _ in events] == [1.0, 4.0, 8.0]


def test_streams_are_decoded_apart(path):
    _, events = record(path, [("stdout", 100, b"\xc3"), ("stderr", 100, b"x"), ("stdout", 101, b"\xa4")])
    assert [text for _, _, text in events] == ["x", "ä"]


def test_what_is_no_utf8_is_shown_as_such(path):
    assert [
        text for _, _, text in record(path, [("stdout", 100, b"a\xffb"), ("stdout", 101, b"\xe2\x82")])[1]
    ] == [
        "a�b",
        "�",
    ]


@settings(max_examples=50)
@given(st.lists(st.binary(max_size=8), max_size=20))
def test_any_bytes_make_a_recording_of_what_they_say(tmp_path_factory, chunks):
    path = tmp_path_factory.mktemp("any") / "r.cast"
    _, events = record(path, [("stdout", 100.0 + index, data) for index, data in enumerate(chunks)])
    assert "".join(text for _, _, text in events) == b"".join(chunks).decode("utf-8", "replace")
    assert [at for at, _, _ in events] == sorted(at for at, _, _ in events)


def test_a_cut_is_marked_where_it_is_and_counted_at_the_end(path):
    chunks = [("stdout", 100.0 + index, b"x" * 100) for index in range(100)]
    _, events = record(path, chunks, max_bytes=1000)
    kept = [event for event in events if event[1] == "o"]
    cut, end = [event for event in events if event[1] == "m"]
    assert cut[2] == "recording cut: it reached its size limit"
    assert cut[0] == len(kept)
    assert end[2] == f"{10_000 - 100 * len(kept)} bytes left out"
    assert path.stat().st_size < 1400


def test_closing_twice_is_closing_once(path):
    recorder = Recorder(path, 0, 80, 24, "t")
    recorder.close()
    size = path.stat().st_size
    recorder.close()
    assert path.stat().st_size == size


def log(path, chunks, max_bytes):
    capture = LogCapture(path, max_bytes)
    for data in chunks:
        capture("stdout", 0.0, data)
    capture("stderr", 0.0, b"of another stream")
    capture.close()
    capture.close()
    return path.read_bytes()


@settings(max_examples=50)
@given(st.lists(st.binary(max_size=12), max_size=30), st.integers(0, 60))
def test_a_log_is_whole_or_says_what_it_lacks(tmp_path_factory, chunks, max_bytes):
    data = b"".join(chunks)
    kept = log(tmp_path_factory.mktemp("any") / "log", chunks, max_bytes)
    if len(data) <= max_bytes:
        assert kept == data
    else:
        head, tail = max_bytes - max_bytes // 2, max_bytes // 2
        lost = b"\n[cab: %d bytes left out]\n" % (len(data) - max_bytes)
        assert kept == data[:head] + lost + (data[-tail:] if tail else b"")


def test_the_tail_of_a_log(tmp_path):
    path = tmp_path / "log"
    path.write_bytes("begin ä end".encode())
    assert tail_of(path, 5) == "\ufffd end"
    assert tail_of(path, 500) == "begin ä end"
    assert tail_of(tmp_path / "none", 5) == ""


def test_one_sink_feeds_several_from_several_threads(tmp_path):
    one, two = LogCapture(tmp_path / "1"), Recorder(tmp_path / "2", 0, 80, 24, "t")
    sink = tee(one, two)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda index: sink("stdout", float(index), b"%03d\n" % index), range(200)))
    one.close()
    two.close()
    assert sorted((tmp_path / "1").read_text().split()) == [f"{index:03d}" for index in range(200)]
    assert len((tmp_path / "2").read_text().splitlines()) == 201


@pytest.mark.parametrize("make", [LogCapture, lambda path: Recorder(path, 0, 80, 24, "t")])
def test_a_full_disk_is_told_at_the_end_and_stops_no_reader(make):
    sink = make(Path("/dev/full"))
    for _ in range(100):
        sink("stdout", 0.0, b"x" * 1000)
    with pytest.raises(CellFault, match="No space left on device") as caught:
        sink.close()
    assert caught.value.cause == "disk"


def test_an_unwritable_place_is_told_at_once(tmp_path):
    with pytest.raises(CellFault, match="output cannot be kept"):
        LogCapture(tmp_path / "missing" / "log")
