"""Reads what the gateway recorded of a cell back as evidence."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.errors import StoreError
from orchestrator.gateway.chat import text_of
from orchestrator.gateway.contract import RawCall
from orchestrator.gateway.record import ResponseEnd
from scorers.evidence import ModelCall, Span, Usage


@dataclass(frozen=True)
class WireBody:
    """The bodies of one call: JSON as an object, a stream or a cut body as text.

    `headers` are those of the response that a client acts on, `chunks` when each part of it came
    (microseconds since the start of the call, bytes), `end` how it ended; a record of an earlier cab has none
    of these.
    """

    index: int
    request: Any
    response: Any
    headers: Mapping[str, str] = field(default_factory=dict)
    chunks: Sequence[tuple[int, int]] = ()
    end: ResponseEnd | None = None

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The request's messages; empty where the request is not an object."""
        found = self.request.get("messages") if isinstance(self.request, dict) else None
        return [message for message in found or [] if isinstance(message, dict)]


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
    call is one. A CLI that never offers tools has main requests only, but for those whose first message holds
    one of `side_prompts`.
    """
    toolless: set[int] = set()
    declared: set[int] = set()
    tools_seen = False
    for body in wire:
        offers = isinstance(body.request, dict) and bool(body.request.get("tools"))
        tools_seen = tools_seen or offers
        if not offers and not any(_is_tool_traffic(message) for message in body.messages):
            toolless.add(body.index)
        first = text_of(body.messages[0].get("content")) if body.messages else ""
        if any(prompt in first for prompt in side_prompts):
            declared.add(body.index)
    return declared | toolless if tools_seen else declared


def normalise_usage(raw: dict[str, Any] | None) -> Usage | None:
    """Chat completions usage as cab counts it; None unless both totals are stated.

    On this wire `prompt_tokens` includes cached input and `completion_tokens` includes reasoning.
    """
    if raw is None:
        return None
    asked, said = _count(raw, "prompt_tokens"), _count(raw, "completion_tokens")
    if asked is None or said is None:
        return None
    prompt, completion = raw.get("prompt_tokens_details"), raw.get("completion_tokens_details")
    return Usage(
        input=asked,
        output=said,
        cached_read=_count(prompt, "cached_tokens"),
        cache_write=_count(prompt, "cache_write_tokens"),
        reasoning=_count(completion, "reasoning_tokens"),
    )


def _model_call(raw: RawCall, origin: float, main: bool) -> ModelCall:
    kept = raw.model_dump(exclude={"wire", "path", "start", "end", "first_byte", "main", "waits"})
    return ModelCall(
        **kept,
        start=raw.start - origin,
        end=raw.end - origin,
        first_byte=None if raw.first_byte is None else raw.first_byte - origin,
        main=main,
        usage=normalise_usage(raw.usage_raw),
        waits=[Span(start=start - origin, end=end - origin) for start, end in raw.waits],
    )


def _is_tool_traffic(message: dict[str, Any]) -> bool:
    return message.get("role") == "tool" or bool(message.get("tool_calls"))


def _count(counts: Any, name: str) -> int | None:
    value = counts.get(name) if isinstance(counts, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
