"""A translated stream is the same however the endpoint's came in pieces, and does not say that it is complete
where that one did not.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from chat_answers import ANSWERS, CALLS, TEXT, ChatAnswer
from gateway_rig import chunk, event
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.adapter import Wire
from orchestrator.gateway.sse import event_data, split_events
from orchestrator.gateway.translate.answer import AnswerTranslator
from orchestrator.gateway.translate.contract import Writer
from orchestrator.gateway.translate.gemini_answer import GeminiWriter
from orchestrator.gateway.translate.messages_answer import MessagesWriter
from orchestrator.gateway.translate.responses_answer import ResponsesWriter
from orchestrator.gateway.translate.responses_tools import Tools
from orchestrator.gateway.wires import WIRES

WRITERS: dict[Wire, Callable[[], Writer]] = {
    "responses": lambda: ResponsesWriter({}, Tools()),
    "messages": lambda: MessagesWriter({"stop_sequences": ["END"]}),
    "gemini": lambda: GeminiWriter(listed=False),
}
STREAMS = [answer for answer in ANSWERS if answer.streamed]
DONE = b"data: [DONE]\n\n"


def translated(wire: Wire, *pieces: bytes) -> bytes:
    answer = AnswerTranslator(WRITERS[wire](), "tag")
    return b"".join(answer.feed(piece) for piece in pieces) + answer.finish()


def events(stream: bytes) -> list[dict[str, Any]]:
    return [json.loads(data) for part in split_events(stream) if (data := event_data(part)) is not None]


def said(wire: Wire, response: Any) -> tuple[str, list[tuple[str, str, Any]]]:
    """Text and calls of an answer as the wire itself reads them."""
    answer = WIRES[wire].answer(response)
    return answer.text, [(call.call_id, call.name, json.loads(call.arguments)) for call in answer.calls]


def call(index: int, arguments: str, **named: str) -> dict[str, Any]:
    begun = {"id": f"call_{named['name']}"} if named else {}
    return {"tool_calls": [{"index": index, **begun, "function": {**named, "arguments": arguments}}]}


@given(st.data())
@pytest.mark.parametrize("wire", WRITERS)
def test_the_pieces_of_a_stream_do_not_matter(wire: Wire, data: st.DataObject) -> None:
    answer = data.draw(st.sampled_from(STREAMS))
    stream = b"".join(answer.pieces)
    if data.draw(st.booleans()):
        stream = stream.replace(b"\n", b"\r\n")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    pieces = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert translated(wire, *pieces) == translated(wire, *answer.pieces)


@given(st.data())
@pytest.mark.parametrize("wire", WRITERS)
def test_a_stream_that_stops_early_never_says_that_it_is_complete(wire: Wire, data: st.DataObject) -> None:
    answer = data.draw(st.sampled_from(STREAMS))
    stream = b"".join(answer.pieces)
    until = stream.index(b'"finish_reason": "')
    found = events(translated(wire, stream[: data.draw(st.integers(0, until))]))
    ends = {"response.completed", "response.incomplete", "response.failed", "message_delta", "message_stop"}
    assert not ends & {event.get("type") for event in found}
    assert not any("finishReason" in c for event in found for c in event.get("candidates", []))


@pytest.mark.parametrize("answer", STREAMS, ids=str)
@pytest.mark.parametrize("wire", WRITERS)
def test_each_event_is_passed_on_as_soon_as_it_came(wire: Wire, answer: ChatAnswer) -> None:
    """All that a piece says is out before the next: but for a call on Gemini, which has whole ones only."""
    translator = AnswerTranslator(WRITERS[wire](), "tag")
    for piece, said in zip(answer.pieces, answer.events, strict=False):
        out = translator.feed(piece).decode()
        for choice in said["choices"]:
            text = choice["delta"].get("content") or choice["delta"].get("reasoning_content")
            assert (text or "") in out
            for part in choice["delta"].get("tool_calls", []):
                assert wire == "gemini" or json.dumps(part["function"]["arguments"])[1:-1] in out


@pytest.mark.parametrize("wire", WRITERS)
def test_the_stream_holds_what_the_plain_answer_holds(wire: Wire) -> None:
    """Read by the wire itself, as a recording of it is."""
    for answer in STREAMS:
        streamed = said(wire, translated(wire, *answer.pieces).decode())
        plain = AnswerTranslator(WRITERS[wire](), "tag")
        plain.plain(json.dumps(answer.body).encode())
        assert streamed == said(wire, plain.writer.whole())
        assert streamed == (TEXT, CALLS if answer.tools else [])


@pytest.mark.parametrize("wire", WRITERS)
def test_calls_told_in_turns_are_written_one_after_the_other(wire: Wire) -> None:
    deltas = [call(0, '{"a"', name="one"), call(1, '{"b"', name="two"), call(0, ": 1}"), call(1, ": 2}")]
    stream = translated(
        wire, *(event(chunk(delta)) for delta in deltas), event(chunk({}, "tool_calls")), DONE
    )
    calls = WIRES[wire].answer(stream.decode()).calls
    assert [(c.name, json.loads(c.arguments)) for c in calls] == [("one", {"a": 1}), ("two", {"b": 2})]


@pytest.mark.parametrize("wire", WRITERS)
def test_a_call_without_arguments_id_or_index_is_one_nonetheless(wire: Wire) -> None:
    pieces = [
        event(chunk({"tool_calls": [{"function": {"name": "list"}}]})),
        event(chunk({"content": "so"})),
        event(chunk({}, "stop")),
    ]
    answer = WIRES[wire].answer(translated(wire, *pieces, DONE).decode())
    assert [(c.name, c.arguments, bool(c.call_id)) for c in answer.calls] == [("list", "{}", True)]
    assert answer.text == "so"


def test_arguments_that_are_no_json_reach_the_cli_as_they_are() -> None:
    stream = [event(chunk(call(0, '{"a": ', name="one"))), event(chunk({}, "tool_calls")), DONE]
    last = events(translated("responses", *stream))[-1]
    assert last["response"]["output"][0]["arguments"] == '{"a": '
    (found,) = (e for e in events(translated("gemini", *stream)) if "functionCall" in json.dumps(e))
    args = found["candidates"][0]["content"]["parts"][0]["functionCall"]["args"]
    assert args == {"unparsed_arguments": '{"a": '}


ENDINGS = [
    ("length", {}, ("response.incomplete", "max_output_tokens"), "max_tokens", "MAX_TOKENS"),
    ("content_filter", {}, ("response.incomplete", "content_filter"), "refusal", "SAFETY"),
    ("stop", {}, ("response.completed", None), "end_turn", "STOP"),
    ("stop", {"stop_reason": "END"}, ("response.completed", None), "stop_sequence", "STOP"),
    ("stop", {"stop_reason": 2}, ("response.completed", None), "end_turn", "STOP"),
]


@pytest.mark.parametrize(("reason", "more", "responses", "messages", "gemini"), ENDINGS)
def test_why_an_answer_ended(
    reason: str, more: dict[str, Any], responses: tuple[str, str | None], messages: str, gemini: str
) -> None:
    last = chunk({}, reason)
    last["choices"][0] |= more
    stream = [event(chunk({"content": "x"})), event(last), DONE]
    ended = events(translated("responses", *stream))[-1]
    why = (ended["response"]["incomplete_details"] or {}).get("reason")
    assert (ended["type"], why) == responses
    assert events(translated("messages", *stream))[-2]["delta"]["stop_reason"] == messages
    assert events(translated("gemini", *stream))[-1]["candidates"][0]["finishReason"] == gemini


def test_a_refusal_is_one_on_wires_that_know_it() -> None:
    stream = [
        event(chunk({"refusal": "I "})),
        event(chunk({"refusal": "won't"})),
        event(chunk({}, "stop")),
        DONE,
    ]
    done = events(translated("responses", *stream))[-1]["response"]["output"]
    assert done[0]["content"] == [{"type": "refusal", "refusal": "I won't"}]
    assert events(translated("messages", *stream))[-2]["delta"]["stop_reason"] == "refusal"


@pytest.mark.parametrize("wire", WRITERS)
def test_done_without_any_answer_is_an_error(wire: Wire) -> None:
    assert "holds no answer" in translated(wire, DONE).decode()


def test_a_list_of_gemini_is_one_json_value() -> None:
    for answer in STREAMS:
        translator = AnswerTranslator(GeminiWriter(listed=True), "tag")
        text = b"".join(map(translator.feed, answer.pieces)) + translator.finish()
        assert json.loads(text) == events(translated("gemini", *answer.pieces))
