from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.adapter import Adapter, Launch
from orchestrator.run.output import recorded
from orchestrator.sandbox.contract import TtySize
from orchestrator.trace.anchor import Anchor
from orchestrator.trace.render import MAX_LINE_BYTES, MAX_SHOWN, Rendered, shown

ANCHOR = Anchor(wall_ns=1_800_000_000_000_000_000, monotonic_ns=100_000_000_000)
CLEAR = "\x1b[2J"


def render(line: str) -> str:
    event = json.loads(line)
    if event["type"] == "call":
        return f"\x1b[1;36m{event['name']}\x1b[0m\n"
    return event["text"] if event["type"] == "text" else ""


def event(**fields: object) -> str:
    return json.dumps(fields)


def recording(directory: Path, *chunks: tuple[str, float, bytes], tty: bool = False, rendered: bool = True):
    how = render if rendered else None
    adapter = Adapter("tool", "1", lambda _: Launch(()), tty=tty, render=how)
    with recorded(adapter, directory, title="cell", anchor=ANCHOR, size=TtySize()) as sink:
        for chunk in chunks:
            sink(*chunk)
    lines = (directory / "recording.cast").read_text("utf-8").split("\n")[:-1]
    header, *events = map(json.loads, lines)
    return header, events


def test_events_are_shown_when_their_line_ended_and_kept_as_they_came(tmp_path):
    text = event(type="text", text="Fixed.\n") + "\n"
    header, events = recording(
        tmp_path,
        ("stdout", 101.0, event(type="call", name="edit").encode()),
        ("stdout", 102.0, b"\n" + text.encode() + b'{"type": "usage"'),
        ("stderr", 102.5, b"a warning\n"),
        ("stdout", 103.0, b"}\n"),
        ("stdout", 104.0, b'{"type": "text", "text": "no end"}'),
    )
    assert header["title"] == "cell (rendered)"
    assert events == [
        [2.0, "o", "\x1b[1;36medit\x1b[0m\r\n"],
        [2.0, "o", "Fixed.\r\n"],
        [2.5, "o", "a warning\r\n"],
        [4.0, "o", "no end"],
    ]
    assert (tmp_path / "stdout.log").read_text().startswith('{"type": "call"')
    assert (tmp_path / "stderr.log").read_text() == "a warning\n"


@pytest.mark.parametrize(
    ("tty", "title", "text"), [(False, "cell (plain)", "a\r\nb\r\n"), (True, "cell", "a\nb\n")]
)
def test_without_events_the_output_is_shown_as_it_is(tmp_path, tty, title, text):
    header, events = recording(tmp_path, ("stdout", 101.0, b"a\nb\n"), tty=tty, rendered=False)
    assert (header["title"], events) == (title, [[1.0, "o", text]])


@pytest.mark.parametrize(
    "line",
    [
        "",
        "npm warn old lockfile",
        '{"type": "text"}',
        '{"type": "text", "text": ["no string"]}',
        '{"type": "text", "text": 7}',
        "[" * 60_000,
        "1" * 60_000,
    ],
)
def test_what_the_adapter_cannot_read_is_shown_as_it_came(line):
    assert shown(render, line) == line + "\n"


def test_contents_can_neither_steer_the_terminal_nor_colour_it():
    for spelled in (json.dumps(f"a{CLEAR}b"), r'"a\u001B[2Jb"', r'"a\u009b2Jb"', f'"a{CLEAR}b"'):
        said = shown(render, '{"type": "text", "text": ' + spelled + "}")
        assert "\x1b" not in said
        assert "\x9b" not in said
    coloured = shown(render, event(type="call", name="\x1b[31mrm\x07\x08 -rf\r\nnext\tone"))
    assert coloured == "\x1b[1;36m�[31mrm�� -rf\nnext\tone\x1b[0m\n"


def test_a_spelled_out_escape_is_left_alone():
    assert shown(render, r'{"type": "text", "text": "in C: \\u001b, \u00e4"}') == r"in C: \u001b, ä"


def test_of_what_an_adapter_writes_itself_only_colours_pass():
    assert shown(lambda _: f"\x1b[31mred{CLEAR}\x1b]0;title\x07", "") == "\x1b[31mred�[2J�]0;title�"


def test_half_a_surrogate_pair_is_no_reason_to_fail(tmp_path):
    _, events = recording(tmp_path, ("stdout", 101.0, rb'{"type": "text", "text": "\ud83d!"}' + b"\n"))
    assert events == [[1.0, "o", "?!"]]


def test_a_long_line_is_not_shown_and_a_long_text_is_cut(tmp_path):
    line = event(type="text", text="x" * MAX_LINE_BYTES).encode()
    _, events = recording(
        tmp_path,
        *(("stdout", 101.0, line[at : at + 50_000]) for at in range(0, len(line), 50_000)),
        ("stdout", 102.0, b"\n" + event(type="text", text="y" * (MAX_SHOWN + 3)).encode() + b"\n"),
        ("stdout", 103.0, event(type="text", text="after").encode() + b"\n"),
    )
    assert [text for _, _, text in events] == [
        f"[cab: a line of {len(line)} bytes is not shown]\r\n",
        "y" * MAX_SHOWN + "\x1b[0m\r\n[cab: 3 characters are not shown]\r\n",
        "after",
    ]


@settings(max_examples=100)
@given(st.lists(st.binary(max_size=30), max_size=10), st.sampled_from([render, lambda line: line]))
def test_no_bytes_break_it_and_none_of_them_is_obeyed(chunks, how):
    seen: list[bytes] = []
    rendered = Rendered(lambda *chunk: seen.append(chunk[2]), how)
    for data in chunks:
        rendered("stdout", 0.0, data)
    rendered.close()
    said = b"".join(seen).decode()
    assert not {char for char in said if ord(char) < 32} - {"\t", "\n", "\r"}
    assert said.count("\r") == said.count("\r\n")
