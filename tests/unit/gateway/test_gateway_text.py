"""The small tools that change nothing but what they are asked to."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.gateway.embedded.edits import hunks
from orchestrator.gateway.jsontext import drop_member, members, set_members
from orchestrator.gateway.scrub import Scrubber, StreamScrubber
from orchestrator.gateway.sse import EventSplitter, event_data, split_events

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
KEY = "sk-proj-ABCdef0123456789/+="


@given(st.dictionaries(st.text(max_size=4), JSON, max_size=5), st.sampled_from(["", " ", "\n\t "]), JSON)
def test_members_are_set_and_dropped_as_json_would(value: dict[str, object], space: str, new: object) -> None:
    text = space + json.dumps(value, indent=2 if space else None) + space
    found = members(text)
    assert {member.key: member.value for member in found} == value
    assert json.loads(set_members(text, found, {"model": new, "x": 1})) == {**value, "model": new, "x": 1}
    for key in value:
        rest = {name: item for name, item in value.items() if name != key}
        assert json.loads(drop_member(text, found, key)) == rest


def test_other_bytes_stay() -> None:
    text = '{"a" : 1.50,\n "usage": {"b": [1]} ,"model":"m", "usage":null, "z":"\\u00e9"}'
    assert drop_member(text, members(text), "usage") == '{"a" : 1.50 ,"model":"m", "z":"\\u00e9"}'
    assert set_members(text, members(text), {"model": "n"}) == text.replace('"m"', '"n"')


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"a"}', '{"a":1,}', "{1:2}", '{"a":1} 2', '{"a":' + "[" * 99999]
)
def test_text_that_is_no_object(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        members(text)


@given(
    st.lists(st.sampled_from([b"data: a", b"data:b\ndata: c", b": x", b"event: e\r\ndata: d"]), max_size=5),
    st.data(),
)
def test_events_are_whole_however_the_stream_is_cut(bodies: list[bytes], data: st.DataObject) -> None:
    ends = [data.draw(st.sampled_from([b"\n\n", b"\r\n\r\n"])) for _ in bodies]
    events = [body + end for body, end in zip(bodies, ends, strict=True)]
    stream = b"".join(events)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    splitter = EventSplitter()
    got: list[bytes] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        got += splitter.feed(stream[start:end])
    assert got == events
    assert splitter.rest() == b""
    assert split_events(stream) == events


def test_event_data_joins_lines() -> None:
    assert event_data(b"event: x\ndata: a\ndata:b\n\n") == b"a\nb"
    assert event_data(b": ping\n\n") is None


@pytest.mark.parametrize("before", ["", "x", "xy", "user:"])
@pytest.mark.parametrize("after", ["", "z", "zz"])
def test_key_is_found_inside_any_base64(before: str, after: str) -> None:
    secret = base64.b64encode((before + KEY + after).encode()).decode()
    cleaned = Scrubber([KEY]).clean_text(secret)
    assert len(cleaned) == len(secret)
    assert cleaned.count("*") >= len(base64.b64encode(KEY.encode())) - 6


@given(st.integers(0, 200), st.lists(st.integers(0, 80), max_size=5))
def test_key_is_found_however_the_stream_is_cut(offset: int, cuts: list[int]) -> None:
    stream = b"s" * (offset % 7) + KEY.encode() + b" sk-proj-no " + KEY.encode() + b"sk-"
    scrub = StreamScrubber(Scrubber([KEY]))
    points = sorted(min(cut, len(stream)) for cut in cuts)
    pieces = [stream[a:b] for a, b in zip([0, *points], [*points, len(stream)], strict=True)]
    cleaned = b"".join([scrub.feed(piece) for piece in pieces]) + scrub.rest()
    assert cleaned == stream.replace(KEY.encode(), b"*" * len(KEY))


def test_placeholders_are_no_secrets() -> None:
    assert Scrubber(["EMPTY", ""]).clean(b"EMPTY list") == b"EMPTY list"


LINES = st.lists(st.sampled_from(["a\n", "b\n", "\n", "  a\n", "c\r\n"]), max_size=12).map("".join)


@given(LINES, LINES, st.sampled_from(["", "tail"]))
def test_hunks_are_exact_and_unique(before: str, after: str, tail: str) -> None:
    text = before + tail
    if not text:
        with pytest.raises(ValueError, match="empty"):
            hunks(text, after)
        return
    for old, new in hunks(text, after):
        assert old
        assert text.count(old) == 1
        text = text.replace(old, new)
    assert text == after
