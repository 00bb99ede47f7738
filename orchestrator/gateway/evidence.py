"""Reads what the gateway recorded of a cell back as evidence."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.adapter import Wire
from orchestrator.errors import StoreError
from orchestrator.gateway.contract import RawCall
from orchestrator.gateway.jsontext import storable
from orchestrator.gateway.record import ResponseEnd
from orchestrator.gateway.wire import Answer, Conversation, Prompt, Target, ToolRequest
from orchestrator.gateway.wires import WIRES
from scorers.evidence import ModelCall, Span, Usage


@dataclass(frozen=True)
class WireBody:
    """The bodies of one call: JSON as an object, a stream or a cut body as text.

    `headers` are those of the response that a client acts on, `chunks` when each part of it came
    (microseconds since the start of the call, bytes), `end` how it ended; a record of an earlier cab has none
    of these, nor `path` and `status`.
    """

    index: int
    request: Any
    response: Any
    wire: Wire = "chat"
    target: Target = "call"
    path: str | None = None
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    chunks: Sequence[tuple[int, int]] = ()
    end: ResponseEnd | None = None

    def conversation(self) -> Conversation:
        """What the request tells of the conversation; nothing where it is not an object."""
        told = WIRES[self.wire].conversation(self.request if isinstance(self.request, dict) else {})
        return Conversation(
            opening=storable(told.opening),
            offers_tools=told.offers_tools,
            calls=tuple(map(_stored, told.calls)),
            results=storable(dict(told.results)),
        )

    def prompts(self) -> tuple[Prompt, ...]:
        """The texts that were put before the model; none where the request is not an object."""
        told = WIRES[self.wire].prompts(self.request if isinstance(self.request, dict) else {})
        return tuple(Prompt(prompt.role, storable(prompt.text)) for prompt in told)

    def answer(self) -> Answer:
        """What the model said."""
        said = WIRES[self.wire].answer(self.response)
        return Answer(storable(said.text), tuple(map(_stored, said.calls)))


def _stored(call: ToolRequest) -> ToolRequest:
    return ToolRequest(storable(call.call_id), storable(call.name), storable(call.arguments))


def read_wire(wire_path: Path) -> Iterator[WireBody]:
    """The bodies of a cell's calls, in the order in which the calls ended; none when there is no file.

    A last member that was cut (the gateway was killed in the middle of it) is left out.
    Raises StoreError when the file is damaged otherwise.
    """
    if not wire_path.exists():
        return
    with gzip.open(wire_path, "rb") as file:
        while True:
            try:
                line = file.readline()
            except EOFError:
                return
            except (OSError, zlib.error) as error:
                raise StoreError("is damaged", place=str(wire_path), mend="run the cell again") from error
            if not line:
                return
            yield WireBody(**json.loads(line))


def recorded_wire(wire_path: Path) -> Wire | None:
    """The wire on which a cell's endpoint was asked; None where nothing was recorded."""
    return next((body.wire for body in read_wire(wire_path)), None)


def read_calls(
    calls_path: Path, wire_path: Path, origin: float, side_prompts: Sequence[str] = ()
) -> list[ModelCall]:
    """A cell's model calls in the order in which they began, with times in seconds since `origin`
    (monotonic). `side_prompts` are the adapter's.

    A last line that was cut is left out. Raises StoreError when another line cannot be read.
    """
    side = side_requests(read_wire(wire_path), side_prompts)
    return [_model_call(raw, origin, raw.index not in side) for raw in read_raw_calls(calls_path)]


def read_raw_calls(calls_path: Path) -> list[RawCall]:
    """A cell's model calls as recorded, in the order in which they began; none when there is no file.

    A last line that was cut is left out. Raises StoreError when another line cannot be read.
    """
    lines = calls_path.read_bytes().split(b"\n")[:-1] if calls_path.exists() else []
    raws: list[RawCall] = []
    for number, line in enumerate(lines, 1):
        try:
            raws.append(RawCall.model_validate_json(line))
        except ValueError as error:
            raise StoreError("is no model call", place=f"{calls_path}:{number}") from error
    return sorted(raws, key=lambda raw: raw.index)


def side_requests(wire: Iterable[WireBody], side_prompts: Sequence[str] = ()) -> set[int]:
    """The indices of requests beside the task, such as one for a title.

    In a cell in which requests offer tools, a request that offers none and whose conversation holds no tool
    call is one. A CLI that never offers tools has main requests only, but for those whose first text holds
    one of `side_prompts`.
    """
    toolless: set[int] = set()
    declared: set[int] = set()
    tools_seen = False
    for body in wire:
        told = body.conversation()
        tools_seen = tools_seen or told.offers_tools
        if not told.offers_tools and not told.calls and not told.results:
            toolless.add(body.index)
        if any(prompt in told.opening for prompt in side_prompts):
            declared.add(body.index)
    return declared | toolless if tools_seen else declared


def normalise_usage(wire: Wire, raw: dict[str, Any] | None) -> Usage | None:
    """Usage as cab counts it, by the wire that stated it; None unless both totals are stated.

    No request is without input: an endpoint that states 0 for it does not count.
    """
    usage = WIRES[wire].usage(raw) if raw is not None else None
    return usage if usage and usage.input else None


def _usage(raw: RawCall) -> Usage | None:
    """The usage of a call. What was stated of an answer that broke off is a part of it: not counted."""
    broke_off = raw.error is not None and raw.finish_reason is None
    return None if broke_off else normalise_usage(raw.wire, raw.usage_raw)


def _model_call(raw: RawCall, origin: float, main: bool) -> ModelCall:
    kept = raw.model_dump(exclude={"wire", "path", "waits"})
    moments = ("start", "end", "sent", "first_byte", "first_token", "last_byte")
    since = {name: kept[name] - origin for name in moments if kept[name] is not None}
    more = {"main": main, "usage": _usage(raw)}
    waits = [Span(start=start - origin, end=end - origin) for start, end in raw.waits]
    return ModelCall.model_validate({**kept, **since, **more, "waits": waits})
