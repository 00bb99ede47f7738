"""The spans of cells as OpenTelemetry has them: a file of OTLP/JSON lines, or sent to a collector.

One line is one cell, as the collector's OTLP JSON file receiver reads it. The spans are those that a sweep
sends while it runs, from `spans.jsonl`; the resource says besides which cell they are of, and its claim.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from orchestrator.errors import EnvironmentFault, StoreError
from orchestrator.export.cells import Cell, Seen
from orchestrator.report.text import plural
from orchestrator.store.files import store_errors
from orchestrator.trace.otlp import wanted
from orchestrator.trace.spans import Kind

SPANS = "spans.jsonl"
_NOT_REMOTE = 0x100
"""`flags`: whether the parent is remote is known, and it is not."""

_SAMPLED = TraceFlags(TraceFlags.SAMPLED)


class Written(Seen):
    """Counts the cells that were looked at, and the spans that they have."""

    spans = without = 0

    def __str__(self) -> str:
        none = f"; {self.without} without spans" if self.without else ""
        return f"{plural(self.spans, 'span')} of {super().__str__()}{none}"


def otlp(cells: Iterable[Cell], written: Written) -> Iterator[bytes]:
    """One line of OTLP/JSON for each cell that has spans. Raises StoreError for a damaged file of spans.

    The same as the SDK sends, which a test holds; written without it, since it takes many times as long.
    """
    for cell in written.through(cells):
        spans = [_json(data, place) for data, place in _stored(cell)]
        written.spans += len(spans)
        written.without += not spans
        if spans:
            about = _about(cell)
            scope = {"name": "cab", "version": about["service.version"]}
            scopes = [{"scope": scope, "spans": spans}]
            line = {"resourceSpans": [{"resource": {"attributes": _attributes(about)}, "scopeSpans": scopes}]}
            yield json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _json(data: dict[str, Any], place: str) -> dict[str, Any]:
    """A span of `spans.jsonl` as OTLP/JSON has it: ids in hex, 64-bit numbers as texts."""
    with _no_span(place):
        parent = {} if data["parent_id"] is None else {"parentSpanId": data["parent_id"]}
        code = StatusCode[data["status"].upper()].value
        events = [
            {
                "timeUnixNano": str(one["unix_ns"]),
                "name": one["name"],
                "attributes": _attributes(one["attributes"]),
            }
            for one in data["events"]
        ]
        return {
            "traceId": data["trace_id"],
            "spanId": data["span_id"],
            **parent,
            "flags": _NOT_REMOTE,
            "name": data["name"],
            "kind": _kind(data).value + 1,
            "startTimeUnixNano": str(data["start_unix_ns"]),
            "endTimeUnixNano": str(data["end_unix_ns"]),
            "attributes": _attributes({"cab.kind": data["kind"], **data["attributes"]}),
            **({"events": events} if events else {}),
            "status": {"code": code} if code else {},
        }


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in values.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(one) for one in value]}}
    return {"stringValue": str(value)}


def send(cells: Iterable[Cell]) -> int:
    """Send the spans of each cell to the collector that `OTEL_EXPORTER_OTLP_*` names; how many there were.

    Raises EnvironmentFault where none is named, or at the first cell whose spans it does not take.
    """
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    if not wanted(os.environ):
        raise EnvironmentFault(
            "no collector is named", place="environment", mend="set OTEL_EXPORTER_OTLP_ENDPOINT"
        )
    # The SDK logs each try; what came of them is said once.
    logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
    exporter, sent = OTLPSpanExporter(), 0
    try:
        for cell in cells:
            spans = spans_of(cell)
            if spans and exporter.export(spans) is not SpanExportResult.SUCCESS:
                raise EnvironmentFault(
                    f"the collector did not take the spans of {cell.entry.cell_id}; it took {sent} before",
                    place="OTEL_EXPORTER_OTLP_ENDPOINT",
                    mend="see that it runs, then give the same command again",
                )
            sent += len(spans)
    finally:
        exporter.shutdown()  # type: ignore[no-untyped-call]
    return sent


def spans_of(cell: Cell) -> list[ReadableSpan]:
    """The spans of a cell as the SDK has them, in the order of their file; none where it has no such file."""
    about = _about(cell)
    resource, scope = Resource(about), InstrumentationScope("cab", about["service.version"])
    return [_span(data, place, resource, scope) for data, place in _stored(cell)]


def _about(cell: Cell) -> dict[str, Any]:
    """The resource: what may be said of the cell that spans are of."""
    entry = cell.entry
    return {
        "service.name": "cab",
        "service.version": cell.head.identity.cab.version,
        "cab.cell_id": entry.cell_id,
        "cab.outcome": entry.outcome,
        "cab.claim": entry.claim,
        "cab.methodology_version": entry.methodology_version,
    }


def _stored(cell: Cell) -> Iterator[tuple[dict[str, Any], str]]:
    """Each line of a cell's spans, and its place."""
    path = cell.directory / SPANS
    if not path.exists():
        return
    with store_errors(path):
        lines = path.read_bytes().splitlines()
    for number, line in enumerate(lines, 1):
        place = f"{path}:{number}"
        with _no_span(place):
            data = json.loads(line)
        yield data, place


@contextmanager
def _no_span(place: str) -> Iterator[None]:
    """Turn what a line that is no span makes of the reading into a StoreError."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError):
        mend = "run the cell again, or restore the file"
        raise StoreError("is no span", place=place, mend=mend) from None


def _kind(data: dict[str, Any]) -> SpanKind:
    return SpanKind.CLIENT if data["kind"] == Kind.MODEL_CALL else SpanKind.INTERNAL


def _span(data: dict[str, Any], place: str, resource: Resource, scope: InstrumentationScope) -> ReadableSpan:
    with _no_span(place):
        trace, parent = int(data["trace_id"], 16), data["parent_id"]
        return ReadableSpan(
            name=data["name"],
            context=SpanContext(trace, int(data["span_id"], 16), is_remote=False, trace_flags=_SAMPLED),
            parent=None if parent is None else SpanContext(trace, int(parent, 16), is_remote=False),
            resource=resource,
            attributes={"cab.kind": data["kind"], **data["attributes"]},
            events=[Event(one["name"], one["attributes"], one["unix_ns"]) for one in data["events"]],
            kind=_kind(data),
            status=Status(StatusCode[data["status"].upper()]),
            start_time=data["start_unix_ns"],
            end_time=data["end_unix_ns"],
            instrumentation_scope=scope,
        )
