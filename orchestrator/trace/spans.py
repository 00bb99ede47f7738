"""OpenTelemetry spans of a cell: one JSON line each in `spans.jsonl`, and OTLP/HTTP where it is asked for.

Importing this module imports the OpenTelemetry SDK (0.1 s), so it is imported when a sweep runs.
The spans of a cell are one trace: a root `cell`, the stages below it, and calls of models and tools below the
container. Attributes follow OpenTelemetry's GenAI conventions where those have a name.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context

from orchestrator import __version__
from orchestrator.adapter import Wire
from orchestrator.errors import CellFault, EnvironmentFault
from orchestrator.trace.anchor import Anchor
from scorers.evidence import ModelCall, ToolCall

Value = str | bool | int | float | Sequence[str] | None

_KIND = "cab.kind"
_MAX_TEXT = 1024
_LIMITS = SpanLimits(
    max_span_attributes=64,
    max_events=64,
    max_links=0,
    max_event_attributes=16,
    max_link_attributes=0,
    max_attribute_length=_MAX_TEXT,
    max_span_attribute_length=_MAX_TEXT,
)


class Kind(StrEnum):
    """What a span is a stretch of, as published, with cab's own stages."""

    CELL = "cell"
    TASK_SETUP = "task_setup"
    ADAPTER_RUN = "adapter_run"
    CONTAINER = "container"
    MODEL_CALL = "model_call"
    TOOL_CALL = "tool_call"
    COLLECT = "collect"
    VERIFY = "verify"
    SCORE = "score"
    CLEANUP = "cleanup"


APPLIED_PLUGINS = "applied_plugins"
"""The name of the span of kind `tool_call`, as published, in which a stack's plugins are applied."""


def stage_name(kind: Kind, *, cli: str, task: str) -> str:
    """The name of a stage's span, as published."""
    names = {
        Kind.TASK_SETUP: f"prepare:{task}",
        Kind.ADAPTER_RUN: f"{cli}:{task}",
        Kind.CONTAINER: f"{cli}-run:{task}",
        Kind.CLEANUP: f"cleanup:{cli}",
    }
    return names.get(kind, f"{kind}:{task}")


class CellTracer:
    """The spans of one cell, for the one thread that runs it.

    Times given and taken are seconds since `anchor`. `exporter` gets each span too, when it ends. The SDK's
    resource detectors and environment are left aside: they would add the host's name, sample spans away or
    cut them off. Raises CellFault(cause="disk") when spans cannot be written.
    """

    def __init__(
        self,
        cell_id: str,
        jsonl_path: Path,
        attributes: Mapping[str, Value] | None = None,
        *,
        anchor: Anchor | None = None,
        exporter: SpanProcessor | None = None,
    ) -> None:
        if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
            raise EnvironmentFault(
                "OTEL_SDK_DISABLED leaves cells without spans", place="environment", mend="unset it"
            )
        self.anchor = anchor or Anchor.now()
        self._file = _JsonlFile(jsonl_path)
        resource = Resource({"service.name": "cab", "service.version": __version__})
        provider = TracerProvider(
            sampler=ALWAYS_ON, resource=resource, shutdown_on_exit=False, span_limits=_LIMITS
        )
        provider.add_span_processor(self._file)
        if exporter is not None:
            provider.add_span_processor(exporter)
        self._tracer = provider.get_tracer("cab", __version__)
        self._open: list[Span] = []
        described = {"cab.cell_id": cell_id, **(attributes or {})}
        self.root = self._start(f"cell:{cell_id}", Kind.CELL, 0.0, None, described)
        self._open.append(self.root)

    @contextmanager
    def span(self, name: str, kind: Kind, /, **attributes: Value) -> Iterator[Span]:
        """A span around a block, below the one that is open.

        An exception marks it with its type, never its text: texts of exceptions hold paths of the machine.
        """
        span = self._start(name, kind, self.anchor.elapsed(), self._open[-1], attributes)
        self._open.append(span)
        try:
            yield span
        except BaseException as error:
            span.set_attribute("error.type", type(error).__name__)
            span.set_status(Status(StatusCode.ERROR))
            raise
        finally:
            self._open.pop()
            span.end(self.anchor.unix_ns(self.anchor.elapsed()))

    def set(self, span: Span, /, **attributes: Value) -> None:
        """Add attributes to an open span; None is left out, and a text is bounded."""
        span.set_attributes(_clean(attributes))

    def add(
        self,
        name: str,
        kind: Kind,
        start: float,
        end: float,
        *,
        parent: Span | None = None,
        attributes: Mapping[str, Value] | None = None,
        error: str | None = None,
    ) -> Span:
        """A span of the past, below `parent` (else the root). `error`, its category, marks it as failed."""
        marked = {**(attributes or {}), "error.type": error}
        span = self._start(name, kind, start, parent or self.root, marked)
        if error is not None:
            span.set_status(Status(StatusCode.ERROR))
        span.end(self.anchor.unix_ns(max(start, end)))
        return span

    def close(self) -> None:
        """End the root and close the file. Closing twice is closing once."""
        if self.root.is_recording():
            self.root.end(self.anchor.unix_ns(self.anchor.elapsed()))
        self._file.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start(
        self, name: str, kind: Kind, at: float, parent: Span | None, attributes: Mapping[str, Value]
    ) -> Span:
        # An explicit context: whatever span is current in the calling program is not a parent of the cell.
        context = Context() if parent is None else set_span_in_context(parent, Context())
        span = self._tracer.start_span(
            _bounded(name),
            context=context,
            kind=SpanKind.CLIENT if kind is Kind.MODEL_CALL else SpanKind.INTERNAL,
            attributes={_KIND: str(kind), **_clean(attributes)},
            start_time=self.anchor.unix_ns(at),
        )
        assert isinstance(span, Span)
        return span


_PROVIDERS: dict[Wire, str] = {
    "chat": "openai",
    "responses": "openai",
    "messages": "anthropic",
    "gemini": "gcp.gemini",
}
"""`gen_ai.provider.name` tells whose form a call has: whoever serves the model, that is the wire's."""


def add_model_calls(
    tracer: CellTracer, parent: Span, calls: Iterable[ModelCall], wire: Wire = "chat"
) -> None:
    """One span for each model call, with GenAI attribute names. What the wire did not state is left out."""
    operation = "generate_content" if wire == "gemini" else "chat"
    for call in calls:
        usage = call.usage
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": _PROVIDERS[wire],
            "gen_ai.request.stream": call.streamed or None,
            "gen_ai.request.model": call.request_model,
            "gen_ai.response.model": call.reported_model,
            "gen_ai.response.finish_reasons": None if call.finish_reason is None else [call.finish_reason],
            "http.response.status_code": call.status,
            "cab.index": call.index,
            "cab.main": call.main,
            "cab.other_model": call.other_model or None,
            "openai.response.system_fingerprint": call.fingerprint,
            "cab.request_hash": call.request_hash,
            "cab.attempts": call.attempts,
            "cab.cli_wire": call.cli_wire,
            "cab.wait_s": sum(wait.end - wait.start for wait in call.waits),
            "cab.connect_s": call.connect_s,
            "cab.connection_reused": call.connection_reused,
            "cab.first_byte_s": call.after_sent(call.first_byte),
            "cab.first_token_s": call.after_sent(call.first_token),
            "cab.last_byte_s": call.after_sent(call.last_byte),
        }
        if call.streamed:
            attributes["gen_ai.response.time_to_first_chunk"] = call.after_sent(call.first_byte)
        if usage is not None:
            attributes |= {
                "gen_ai.usage.input_tokens": usage.input,
                "gen_ai.usage.output_tokens": usage.output,
                "gen_ai.usage.cache_read.input_tokens": usage.cached_read,
                "gen_ai.usage.cache_creation.input_tokens": usage.cache_write,
                "gen_ai.usage.reasoning.output_tokens": usage.reasoning,
            }
        attributes |= _request_settings(call.settings)
        name = f"{operation} {call.request_model}" if call.request_model else operation
        tracer.add(
            name,
            Kind.MODEL_CALL,
            call.start,
            call.end,
            parent=parent,
            attributes=attributes,
            error=call.error,
        )


def add_tool_calls(tracer: CellTracer, parent: Span, calls: Iterable[ToolCall]) -> None:
    """One span for each tool call. One that was never answered has no length, and says so."""
    for call in calls:
        attributes: dict[str, Value] = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.call.id": call.call_id,
            "gen_ai.tool.type": "function",
            "cab.arguments_chars": len(call.arguments),
            "cab.result_chars": None if call.result is None else len(call.result),
        }
        end, error = (call.start, "unanswered") if call.end is None else (call.end, None)
        tracer.add(
            f"execute_tool {call.name}",
            Kind.TOOL_CALL,
            call.start,
            end,
            parent=parent,
            attributes=attributes,
            error=error,
        )


def _request_settings(settings: Mapping[str, Any]) -> dict[str, Value]:
    """Generation settings under their GenAI names; others are in the record."""
    names = {
        "temperature": "gen_ai.request.temperature",
        "top_p": "gen_ai.request.top_p",
        "topP": "gen_ai.request.top_p",
        "max_tokens": "gen_ai.request.max_tokens",
        "max_completion_tokens": "gen_ai.request.max_tokens",
        "max_output_tokens": "gen_ai.request.max_tokens",
        "maxOutputTokens": "gen_ai.request.max_tokens",
        "seed": "gen_ai.request.seed",
        "top_k": "gen_ai.request.top_k",
        "topK": "gen_ai.request.top_k",
        "n": "gen_ai.request.choice.count",
        "candidateCount": "gen_ai.request.choice.count",
        "frequency_penalty": "gen_ai.request.frequency_penalty",
        "frequencyPenalty": "gen_ai.request.frequency_penalty",
        "presence_penalty": "gen_ai.request.presence_penalty",
        "presencePenalty": "gen_ai.request.presence_penalty",
    }
    found: dict[str, Value] = {
        name: settings[key]
        for key, name in names.items()
        if isinstance(settings.get(key), int | float) and not isinstance(settings[key], bool)
    }
    named = ("stop", "stop_sequences", "stopSequences")
    stops: Any = next((settings[key] for key in named if key in settings), None)
    words = [stops] if isinstance(stops, str) else stops
    if isinstance(words, list) and words and all(isinstance(word, str) for word in words):
        found["gen_ai.request.stop_sequences"] = words
    return found


def _clean(attributes: Mapping[str, Value]) -> dict[str, Any]:
    """Attributes that any exporter takes: none unset, no unpaired surrogate, no text without bound."""
    clean: dict[str, Any] = {}
    for name, value in attributes.items():
        if isinstance(value, str):
            clean[name] = _bounded(value)
        elif isinstance(value, Sequence):
            clean[name] = [_bounded(item) for item in value[:64]]
        elif value is not None:
            clean[name] = value
    return clean


def _bounded(text: str) -> str:
    return text[:_MAX_TEXT].encode("utf-8", "replace").decode()


class _JsonlFile(SpanProcessor):
    """Writes each span, when it ends, as one JSON line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file: IO[str] = path.open("w", encoding="utf-8")
        except OSError as error:
            raise self._fault(error) from error

    def on_end(self, span: ReadableSpan) -> None:
        try:
            self._file.write(json.dumps(_as_json(span), ensure_ascii=False) + "\n")
        except OSError as error:
            raise self._fault(error) from error

    def shutdown(self) -> None:
        try:
            self._file.close()
        except OSError as error:
            raise self._fault(error) from error

    def _fault(self, error: OSError) -> CellFault:
        return CellFault("disk", f"spans cannot be written: {error.strerror}", place=self._path.name)


def _as_json(span: ReadableSpan) -> dict[str, Any]:
    attributes = dict(span.attributes or {})
    kind = attributes.pop(_KIND)
    return {
        "trace_id": f"{span.context.trace_id:032x}",
        "span_id": f"{span.context.span_id:016x}",
        "parent_id": None if span.parent is None else f"{span.parent.span_id:016x}",
        "name": span.name,
        "kind": kind,
        "start_unix_ns": span.start_time,
        "end_unix_ns": span.end_time,
        "attributes": attributes,
        "status": span.status.status_code.name.lower(),
        "events": [
            {"name": event.name, "unix_ns": event.timestamp, "attributes": dict(event.attributes or {})}
            for event in span.events
        ],
    }
