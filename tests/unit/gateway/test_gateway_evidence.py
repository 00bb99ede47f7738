"""From recorded files to evidence: usage, main thread, tool calls, final message."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from gateway_rig import chunk, event

from orchestrator.errors import StoreError
from orchestrator.gateway.contract import RawCall
from orchestrator.gateway.evidence import WireBody, normalise_usage, read_calls, read_wire, side_requests
from orchestrator.gateway.wires.chat import response_message
from orchestrator.trace.tools import final_message, tool_calls
from scorers.evidence import ModelCall


def asked(call_id: str, arguments: str = '{"p": 1}', name: str = "read") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def assistant(*tools: dict[str, Any], content: str | None = None) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(tools)}


def answer(call_id: str, content: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def body(
    index: int, messages: list[Any], reply: dict[str, Any] | None = None, *, tools: bool = True
) -> WireBody:
    request: dict[str, Any] = {"messages": messages, **({"tools": [{"x": 1}]} if tools else {})}
    return WireBody(index, request, {"choices": [{"index": 0, "message": reply or assistant(content="ok")}]})


def call(index: int, *, main: bool = True) -> ModelCall:
    return ModelCall(index=index, start=10.0 * index, end=10.0 * index + 4, request_hash="0", main=main)


def raw(index: int, **changes: Any) -> RawCall:
    return RawCall(
        index=index, wire="chat", path="/", start=50.0 + index, end=60.0, request_hash="0", **changes
    )


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        (None, None),
        ({}, None),
        ({"prompt_tokens": 5}, None),
        ({"prompt_tokens": True, "completion_tokens": 1}, None),
        ({"prompt_tokens": -1, "completion_tokens": 1}, None),
        ({"prompt_tokens": 5, "completion_tokens": 2}, (5, 2, None, None)),
        (
            {
                "prompt_tokens": 3300,
                "completion_tokens": 153,
                "prompt_tokens_details": {"cached_tokens": 768},
                "completion_tokens_details": {"reasoning_tokens": 0},
            },
            (3300, 153, 768, 0),
        ),
        ({"prompt_tokens": 4, "completion_tokens": 0, "prompt_tokens_details": None}, (4, 0, None, None)),
        ({"prompt_tokens": 0, "completion_tokens": 0}, None),
    ],
)
def test_usage_is_never_invented(stated: dict[str, Any] | None, expected: tuple[Any, ...] | None) -> None:
    usage = normalise_usage("chat", stated)
    assert (usage and (usage.input, usage.output, usage.cached_read, usage.reasoning)) == expected


def test_times_are_relative_and_calls_in_order(tmp_path: Path) -> None:
    lines = [raw(1, first_byte=52.0, waits=[(51.0, 51.5)]), raw(0)]
    (tmp_path / "calls").write_text(
        "".join(line.model_dump_json() + "\n" for line in lines) + '{"index": 2, "wi'
    )
    first, second = read_calls(tmp_path / "calls", tmp_path / "none", 50.0)
    assert (first.index, first.start, first.first_byte) == (0, 0.0, None)
    assert (second.start, second.end, second.first_byte) == (1.0, 10.0, 2.0)
    assert [(wait.start, wait.end) for wait in second.waits] == [(1.0, 1.5)]
    assert read_calls(tmp_path / "none", tmp_path / "none", 0.0) == []


def test_damaged_files(tmp_path: Path) -> None:
    members = [
        gzip.compress(json.dumps({"index": n, "request": {}, "response": "x" * 99}).encode() + b"\n")
        for n in (0, 1)
    ]
    path = tmp_path / "wire"
    path.write_bytes(members[0] + members[1][:-12])
    assert [wire.index for wire in read_wire(path)] == [0]
    path.write_bytes(b"nonsense, no gzip")
    with pytest.raises(StoreError, match="damaged"):
        list(read_wire(path))
    path.write_bytes(b"{}\n")
    with pytest.raises(StoreError, match="wire:1"):
        read_calls(path, tmp_path / "none", 0.0)


def test_side_requests() -> None:
    title = body(0, [{"role": "user", "content": "title"}], tools=False)
    main = body(1, [{"role": "user", "content": "do"}])
    summing_up = body(2, [assistant(asked("a")), answer("a", "r")], tools=False)
    assert side_requests([title, main, summing_up]) == {0}
    assert side_requests([title]) == set()


def test_side_requests_of_a_cli_without_tools_are_told_by_its_adapter() -> None:
    main = body(0, [{"role": "system", "content": "Edit"}, {"role": "user", "content": "do"}], tools=False)
    commit = body(1, [{"role": "system", "content": "Write a commit message."}], tools=False)
    assert side_requests([main, commit], ["a commit message"]) == {1}
    assert side_requests([main, commit]) == set()


def test_tool_call_runs_from_the_response_to_the_request_with_its_result() -> None:
    first = assistant(asked("a"), asked("b", '{"p": 2}'))
    wire = [
        body(0, [{"role": "user", "content": "do"}], first),
        body(
            1,
            [first, answer("a", "ra"), answer("b", [{"type": "text", "text": "rb"}])],
            assistant(asked("c")),
        ),
        body(2, [first, answer("a", "ra"), answer("b", "rb")]),
    ]
    found = tool_calls(wire, [call(n) for n in range(3)])
    seen = [(tool.call_id, tool.start, tool.end, tool.result) for tool in found]
    assert seen == [("a", 4.0, 10.0, "ra"), ("b", 4.0, 10.0, "rb"), ("c", 14.0, None, None)]


def test_rewritten_ids_are_followed_by_name_and_arguments() -> None:
    told = assistant(asked("x1", '{"p":1}'))
    again = assistant(asked("x2", '{ "p": 1 }'))
    wire = [
        body(0, [], assistant(asked("a"))),
        body(1, [told, answer("x1", "first")], assistant(asked("b"))),
        body(2, [told, answer("x1", "first"), again, answer("x2", "second")]),
    ]
    found = tool_calls(wire, [call(n) for n in range(3)])
    assert [(tool.call_id, tool.end, tool.result) for tool in found] == [
        ("a", 10.0, "first"),
        ("b", 20.0, "second"),
    ]


def test_streamed_deltas_are_assembled() -> None:
    def part(
        index: int | None, name: str | None, arguments: str, call_id: str | None = None
    ) -> dict[str, Any]:
        given = {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}
        return chunk({"tool_calls": [{key: value for key, value in given.items() if value is not None}]})

    chunks = [
        chunk({"role": "assistant", "content": "Lo"}),
        chunk({"content": "ok"}),
        part(1, "write", '{"q"', "b"),
        part(0, "read", "", "a"),
        part(0, None, '{"p":'),
        part(1, "write", ": 2}"),
        part(0, None, " 1}"),
        chunk({}, "tool_calls"),
    ]
    stream = b"".join([b": hi\n\n", *map(event, chunks), b"data: [DONE]\n\n"]).decode()
    message = response_message(stream)
    assert message["content"] == "Look"
    assert message["tool_calls"] == [asked("a"), asked("b", '{"q": 2}', "write")]


def test_final_message_is_the_main_threads_last_text() -> None:
    wire = [
        body(0, [], assistant(content="title"), tools=False),
        body(1, [], assistant(asked("a"), content="I look")),
        body(2, [], assistant(content="Done.\n")),
        body(3, [], assistant(content="summary"), tools=False),
    ]
    calls = [call(0, main=False), call(1), call(2), call(3, main=False)]
    assert final_message(wire, calls).text == "Done."
    assert final_message(wire[:2], calls[:2]).text == "I look"
    assert final_message(wire[:1], calls[:1]).source == "none"
