"""The spans of cells as OpenTelemetry has them: a file of OTLP/JSON lines, or sent to a collector.

One line is one cell, as the collector's OTLP JSON file receiver reads it. The spans are those that a sweep
sends while it runs, from `spans.jsonl`; the resource says besides which cell they are of, and its claim.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from orchestrator.errors import EnvironmentFault, StoreError
from orchestrator.export.cells import Cell
from orchestrator.store.files import store_errors
from orchestrator.trace.otlp import wanted
from orchestrator.trace.spans import Kind

if TYPE_CHECKING:
    from pathlib import Path

SPANS = "spans.jsonl"
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)


def otlp(cells: Iterable[Cell]) -> Iterator[bytes]:
    """One line of OTLP/JSON for each cell that has spans. Raises StoreError for a damaged file of spans."""
    from google.protobuf.json_format import MessageToDict

    for cell in cells:
        if spans := spans_of(cell):
            data = MessageToDict(encode_spans(spans), use_integers_for_enums=True)
            _ids_in_hex(data, spans)
            yield json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _ids_in_hex(data: dict[str, Any], spans: list[ReadableSpan]) -> None:
    """OTLP/JSON writes ids in hex, where JSON of protocol buffers has them in base64."""
    encoded = [span for scope in data["resourceSpans"][0]["scopeSpans"] for span in scope["spans"]]
    for found, span in zip(encoded, spans, strict=True):
        found["traceId"] = f"{span.context.trace_id:032x}"
        found["spanId"] = f"{span.context.span_id:016x}"
        if span.parent is not None:
            found["parentSpanId"] = f"{span.parent.span_id:016x}"


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
                    mend="see that it runs, then give the same command again: spans keep their ids",
                )
            sent += len(spans)
    finally:
        exporter.shutdown()
    return sent


def spans_of(cell: Cell) -> list[ReadableSpan]:
    """The spans of a cell in the order of their file; none where it has no such file."""
    path = cell.directory / SPANS
    if not path.exists():
        return []
    entry = cell.entry
    about = {
        "service.name": "cab",
        "service.version": cell.record.identity.cab.version,
        "cab.cell_id": entry.cell_id,
        "cab.outcome": entry.outcome,
        "cab.claim": entry.claim,
        "cab.methodology_version": entry.methodology_version,
    }
    resource, scope = Resource(about), InstrumentationScope("cab", about["service.version"])
    with store_errors(path):
        lines = path.read_bytes().splitlines()
    return [_span(line, path, number, resource, scope) for number, line in enumerate(lines, 1)]


def _span(
    line: bytes, path: Path, number: int, resource: Resource, scope: InstrumentationScope
) -> ReadableSpan:
    try:
        data = json.loads(line)
        trace = int(data["trace_id"], 16)
        parent = data["parent_id"]
        return ReadableSpan(
            name=data["name"],
            context=SpanContext(trace, int(data["span_id"], 16), is_remote=False, trace_flags=_SAMPLED),
            parent=None if parent is None else SpanContext(trace, int(parent, 16), is_remote=False),
            resource=resource,
            attributes={"cab.kind": data["kind"], **data["attributes"]},
            events=[Event(one["name"], one["attributes"], one["unix_ns"]) for one in data["events"]],
            kind=SpanKind.CLIENT if data["kind"] == Kind.MODEL_CALL else SpanKind.INTERNAL,
            status=Status(StatusCode[data["status"].upper()]),
            start_time=data["start_unix_ns"],
            end_time=data["end_unix_ns"],
            instrumentation_scope=scope,
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        mend = "run the cell again, or restore the file"
        raise StoreError("is no span", place=f"{path}:{number}", mend=mend) from None
