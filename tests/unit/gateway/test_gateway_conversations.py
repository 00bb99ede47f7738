"""What is read from each wire's requests and usage: tool calls and their results, requests beside the task,
tokens.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from wire_corpus import ARGUMENTS, PLAIN, TEXT

from orchestrator.adapter import Wire
from orchestrator.gateway.evidence import WireBody, normalise_usage, side_requests
from orchestrator.gateway.wires import WIRES
from orchestrator.trace.tools import final_message, tool_calls
from scorers.evidence import ModelCall

USER = {"role": "user", "parts": [{"text": "go"}]}


def call(index: int) -> ModelCall:
    return ModelCall(index=index, start=10.0 * index, end=10.0 * index + 4, request_hash="0")


def chat_result(result: str) -> dict[str, Any]:
    asked = {"id": "call_1", "function": {"name": "read", "arguments": json.dumps(ARGUMENTS)}}
    answered = {"role": "tool", "tool_call_id": "call_1", "content": result}
    return {"messages": [{"role": "assistant", "tool_calls": [asked]}, answered]}


def responses_result(result: str) -> dict[str, Any]:
    asked = {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": json.dumps(ARGUMENTS)}
    return {"input": [asked, {"type": "function_call_output", "call_id": "call_1", "output": result}]}


def messages_result(result: str) -> dict[str, Any]:
    asked = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": ARGUMENTS}
    content = [{"type": "text", "text": result}]
    answered = {"type": "tool_result", "tool_use_id": "toolu_1", "content": content}
    return {"messages": [{"role": "assistant", "content": [asked]}, {"role": "user", "content": [answered]}]}


def gemini_result(result: str) -> dict[str, Any]:
    asked = {"functionCall": {"name": "read", "args": ARGUMENTS}}
    answered = {"functionResponse": {"name": "read", "response": {"output": result}}}
    return {"contents": [USER, {"role": "model", "parts": [asked]}, {"role": "user", "parts": [answered]}]}


RESULTS = {
    "chat": chat_result,
    "responses": responses_result,
    "messages": messages_result,
    "gemini": gemini_result,
}


@pytest.mark.parametrize("wire", WIRES)
def test_tool_call_runs_from_the_response_to_the_request_with_its_result(wire: Wire) -> None:
    exchange = PLAIN[wire]
    response = json.loads(b"".join(exchange.pieces))
    bodies = [
        WireBody(0, exchange.request, response, wire),
        WireBody(1, RESULTS[wire]("the content"), {}, wire),
    ]
    (tool,) = tool_calls(bodies, [call(0), call(1)])
    assert (tool.name, json.loads(tool.arguments)) == ("read", ARGUMENTS)
    assert (tool.start, tool.end, tool.result) == (4.0, 10.0, "the content")
    assert final_message(bodies, [call(0), call(1)]).text == TEXT


@pytest.mark.parametrize("wire", WIRES)
def test_requests_beside_the_task(wire: Wire) -> None:
    title = {key: value for key, value in PLAIN[wire].request.items() if key != "tools"}
    bodies = [
        WireBody(0, title, {}, wire),
        WireBody(1, PLAIN[wire].request, {}, wire),
        WireBody(2, RESULTS[wire]("summed up"), {}, wire),
    ]
    assert side_requests(bodies) == {0}
    opening = "go" if wire == "chat" else "Be brief"
    assert side_requests(bodies[:1], [opening]) == {0}
    assert side_requests(bodies[:1], ["another"]) == set()


def test_results_without_ids_belong_to_the_calls_in_turn() -> None:
    def asked(path: str) -> dict[str, Any]:
        return {"functionCall": {"name": "read", "args": {"path": path}}}

    def answered(result: str) -> dict[str, Any]:
        return {"function_response": {"name": "read", "response": {"content": result, "lines": 1}}}

    parts = [asked("a"), asked("b"), answered("A"), answered("B"), asked("a"), answered("C")]
    told = WIRES["gemini"].conversation({"contents": [{"parts": [part]} for part in parts]})
    found = [(json.loads(call.arguments)["path"], told.results[call.call_id]) for call in told.calls]
    assert found == [(path, f'{{"content":"{result}","lines":1}}') for path, result in ("aA", "bB", "aC")]


def test_tools_of_the_clis_own_on_the_responses_wire() -> None:
    items = [
        {"type": "custom_tool_call", "call_id": "a", "name": "apply_patch", "input": "*** Begin"},
        {"type": "custom_tool_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "ok"}]},
        {"type": "local_shell_call", "call_id": "b", "action": {"command": ["ls"]}},
        {"type": "shell_call_output", "call_id": "b", "output": [{"stdout": "x", "stderr": "y"}]},
        {"type": "web_search_call", "id": "ws_1"},
    ]
    told = WIRES["responses"].conversation({"input": items})
    assert [(call.name, call.arguments) for call in told.calls] == [
        ("apply_patch", "*** Begin"),
        ("local_shell", '{"command":["ls"]}'),
    ]
    assert told.results == {"a": "ok", "b": "xy"}


def test_answer_of_a_stream_without_its_end_is_what_had_come() -> None:
    events = [
        {"type": "response.output_text.delta", "output_index": 0, "delta": "Lo"},
        {"type": "response.output_text.delta", "output_index": 0, "delta": "ok"},
    ]
    stream = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    assert WIRES["responses"].answer(stream).text == "Look"


@pytest.mark.parametrize(
    ("wire", "raw", "expected"),
    [
        ("responses", {"input_tokens": 5, "output_tokens": 2}, (5, 2, None, None, None)),
        ("responses", {"input_tokens": 5}, None),
        ("messages", {"input_tokens": 5, "output_tokens": 2}, (5, 2, None, None, None)),
        (
            "messages",
            {
                "input_tokens": 0,
                "cache_read_input_tokens": 7,
                "cache_creation_input_tokens": 0,
                "output_tokens": 9,
                "output_tokens_details": {"thinking_tokens": 4},
            },
            (7, 9, 7, 0, 4),
        ),
        ("messages", {"input_tokens": 0, "output_tokens": 9}, None),
        (
            "gemini",
            {"promptTokenCount": 5, "toolUsePromptTokenCount": 3, "candidatesTokenCount": 2},
            (8, 2, None, None, None),
        ),
        (
            "gemini",
            {"promptTokenCount": 5, "thoughtsTokenCount": 4, "totalTokenCount": 9},
            (5, 4, None, None, 4),
        ),
        ("gemini", {"promptTokenCount": 5, "totalTokenCount": 9}, None),
        ("gemini", {"promptTokenCount": 5}, None),
        ("gemini", {"candidatesTokenCount": 5}, None),
    ],
)
def test_usage_by_wire(wire: Wire, raw: dict[str, Any], expected: tuple[Any, ...] | None) -> None:
    usage = normalise_usage(wire, raw)
    found = usage and (usage.input, usage.output, usage.cached_read, usage.cache_write, usage.reasoning)
    assert found == expected
