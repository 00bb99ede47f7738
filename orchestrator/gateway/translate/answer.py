"""Reads chat completions' answers, plain or streamed, and has them written on the CLI's wire."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from orchestrator.gateway.evidence import normalise_usage
from orchestrator.gateway.sse import EventSplitter, event_data
from orchestrator.gateway.translate.contract import Ending, Fault, Head, Segment, SegmentKind, Writer
from orchestrator.gateway.wire import Failure
from orchestrator.gateway.wires.chat import CallParts, first_choice
from orchestrator.gateway.wires.shared import (
    bounded,
    count,
    cumulated,
    json_object,
    member,
    objects,
    openai_failure,
    text_of,
)

NO_ANSWER = "the endpoint's response holds no answer of a model"

_TEXTS: tuple[tuple[SegmentKind, tuple[str, ...]], ...] = (
    ("reasoning", ("reasoning_content", "reasoning")),
    ("text", ("content",)),
    ("refusal", ("refusal",)),
)


class AnswerTranslator:
    """One answer on its way. `tag` tells the calls of this answer from those of others where the endpoint
    gives none an id.

    Segments are written one after the other, each as it grows. Chat does not say that a call has ended: the
    next segment is held until the arguments before it are whole JSON, or the answer ends. So however calls
    are interleaved, each is written in one piece.
    """

    def __init__(self, writer: Writer, tag: str) -> None:
        self.writer = writer
        self._tag = tag
        self._splitter = EventSplitter()
        self._begun = False
        self._over = False
        self._answered = False
        self._reason: str | None = None
        self._stop_sequence: str | None = None
        self._usage: dict[str, Any] | None = None
        self._segments: list[Segment] = []
        self._calls: dict[int, Segment] = {}
        self._parts = CallParts()
        self._open = 0
        self._written = -1

    def feed(self, data: bytes) -> bytes:
        """What is due on the CLI's wire after further bytes of the stream."""
        return b"".join([self._event(event) for event in self._splitter.feed(data)])

    def finish(self) -> bytes:
        """The stream is over: nothing ends an answer that has not said that it ended."""
        rest = self._splitter.rest()
        last = self._event(rest) if rest.strip() else b""
        return last + (self._end() if self._reason is not None else b"")

    def plain(self, body: bytes) -> bytes:
        """A whole response on the CLI's wire, as a stream; `writer.whole()` is then the answer itself. Raises
        ValueError for a body that holds no answer.
        """
        parsed = json_object(body)
        choice = first_choice(parsed)
        message = choice.get("message")
        if not isinstance(message, dict):
            raise ValueError(NO_ANSWER)
        if calls := objects(message.get("tool_calls")):
            # Each is a call of its own, whatever it lacks.
            message = {**message, "tool_calls": [{**call, "index": at} for at, call in enumerate(calls)]}
        return self._chunk({**parsed, "choices": [{**choice, "delta": message}]}) + self._end()

    def _event(self, event: bytes) -> bytes:
        data = event_data(event)
        if data is None or self._over:
            return b""
        if data.strip() == b"[DONE]":
            return self._end()
        return self._chunk(json_object(data))

    def _chunk(self, chunk: dict[str, Any]) -> bytes:
        if chunk.get("error"):
            self._over = True
            failure = openai_failure(200, json.dumps({"error": chunk["error"]}).encode())
            fault = Fault.of(failure, stated_message(chunk) or failure.detail)
            return self._begin(chunk) + self.writer.error(fault)
        self._usage = cumulated(self._usage, chunk.get("usage"))
        choice = first_choice(chunk)
        out = self._begin(chunk) if choice else b""
        # Some endpoints repeat the whole message beside its last delta.
        delta = choice.get("delta") or (None if self._segments else choice.get("message"))
        for kind, names in _TEXTS:
            if said := next(filter(None, (text_of(member(delta, name)) for name in names)), ""):
                out += self._add(self._text(kind), said)
        for part in _call_parts(delta):
            segment = self._call(part)
            arguments = member(part.get("function"), "arguments")
            text = arguments if isinstance(arguments, (str, type(None))) else json.dumps(arguments)
            out += self._add(segment, text or "")
        self._take_end(choice)
        return out

    def _take_end(self, choice: dict[str, Any]) -> None:
        self._reason = bounded(choice.get("finish_reason")) or self._reason
        # Some endpoints name the sequence that stopped the model; a number is a token's.
        self._stop_sequence = bounded(choice.get("stop_reason")) or self._stop_sequence

    def _begin(self, chunk: dict[str, Any]) -> bytes:
        self._answered = True
        if self._begun:
            return b""
        self._begun = True
        created = count(chunk, "created") or int(time.time())
        head = Head(bounded(chunk.get("id")) or self._tag, bounded(chunk.get("model")) or "", created)
        return self.writer.begin(head)

    def _text(self, kind: SegmentKind) -> Segment:
        last = self._segments[-1] if self._segments else None
        return last if last and last.kind == kind else self._new(Segment(kind, len(self._segments)))

    def _call(self, part: dict[str, Any]) -> Segment:
        """The call that a delta belongs to."""
        name = text_of(member(part.get("function"), "name"))
        number = self._parts.call_of(part)
        if number not in self._calls:
            place = len(self._segments)
            call_id = bounded(part.get("id")) or f"call_{self._tag}_{place}"
            self._calls[number] = self._new(Segment("call", place, call_id))
        call = self._calls[number]
        call.name = call.name or name
        return call

    def _new(self, segment: Segment) -> Segment:
        self._segments.append(segment)
        return segment

    def _add(self, segment: Segment, text: str) -> bytes:
        segment.text += text
        out = self._advance()
        if segment.number < self._open:
            # More of a call that was taken for whole, which only white space can be.
            return out
        if segment.number == self._open and text and self._written >= 0:
            out += self._rest(segment)
        return out

    def _advance(self, *, to_end: bool = False) -> bytes:
        """Close what has ended, and open what follows."""
        out = b""
        while self._open < len(self._segments):
            segment = self._segments[self._open]
            last = self._open == len(self._segments) - 1
            if last and not to_end and segment.kind == "call" and not segment.name:
                break
            if self._written < 0:
                self._written = 0
                out += self.writer.open(segment)
                out += self._rest(segment)
            if not to_end and (last or not _ended(segment)):
                break
            if segment.kind == "call" and not segment.text.strip():
                segment.text = "{}"
                self._written = 0
            out += self._rest(segment) + self.writer.close(segment)
            self._open, self._written = self._open + 1, -1
        return out

    def _rest(self, segment: Segment) -> bytes:
        """What has come of the open segment and was not yet written."""
        part = segment.text[self._written :]
        self._written = len(segment.text)
        return self.writer.add(segment, part) if part else b""

    def _end(self) -> bytes:
        if self._over:
            return b""
        self._over = True
        if not self._answered:
            fault = Fault.of(Failure("endpoint_down", NO_ANSWER), NO_ANSWER)
            return self._begin({}) + self.writer.error(fault)
        out = self._advance(to_end=True)
        reason = self._reason or "stop"
        if self._calls and reason in ("stop", "function_call"):
            reason = "tool_calls"
        return out + self.writer.end(
            Ending(reason, normalise_usage("chat", self._usage), self._stop_sequence)
        )


def stated_message(body: dict[str, Any]) -> str:
    """The message of an error as an endpoint of chat completions may write it; "" where there is none."""
    error = body.get("error")
    found = error if isinstance(error, str) else member(error if isinstance(error, dict) else body, "message")
    return found if isinstance(found, str) else ""


def _ended(segment: Segment) -> bool:
    """Whether a segment that another follows has ended."""
    if segment.kind != "call":
        return True
    try:
        json.loads(segment.text)
    except (ValueError, RecursionError):
        return False
    return True


def _call_parts(delta: Any) -> Iterator[dict[str, Any]]:
    """The deltas of tool calls; of the older `function_call` as that of a call without id."""
    yield from objects(member(delta, "tool_calls"))
    older = member(delta, "function_call")
    if isinstance(older, dict):
        yield {"index": 0, "function": older}
