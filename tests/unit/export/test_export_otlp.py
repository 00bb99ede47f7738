"""OTLP: what a collector reads back is what `spans.jsonl` holds, from the file and from the network."""

from __future__ import annotations

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from export_samples import SOLVED, SWEEP
from google.protobuf.json_format import Parse
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status, TracesData

from orchestrator.errors import EnvironmentFault, StoreError
from orchestrator.export.cells import cells_of
from orchestrator.export.otlp import Written, otlp, send, spans_of
from orchestrator.store.chosen import chosen_sweeps


def stored(results):
    path = results / SWEEP / "cells" / SOLVED.path() / "spans.jsonl"
    return path, [json.loads(line) for line in path.read_text().splitlines()]


def as_protobuf(line: bytes) -> TracesData:
    """OTLP/JSON is JSON of protocol buffers, but for its ids: those are hex."""
    data = json.loads(line)
    for scope in data["resourceSpans"][0]["scopeSpans"]:
        for span in scope["spans"]:
            for name in ("traceId", "spanId", "parentSpanId"):
                if name in span:
                    span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    return Parse(json.dumps(data), TracesData())


@pytest.fixture(scope="module")
def lines(made):
    return list(otlp(cells_of(chosen_sweeps([str(made)], made)), Written()))


def test_a_line_a_cell_with_its_claim(lines):
    claims = []
    for line in lines:
        assert line.count(b"\n") == 1
        [group] = as_protobuf(line).resource_spans
        about = {each.key: each.value.string_value for each in group.resource.attributes}
        assert about["service.name"] == "cab"
        assert about["cab.methodology_version"] == "1"
        claims.append(about["cab.claim"])
    # Imported cells have no spans.
    assert sorted(claims) == ["pipeline_only", "provisional", "provisional"]


def test_the_file_says_what_the_sdk_sends(results):
    path, spans = stored(results)
    more = {"a": [1, 2], "b": 0.1, "c": True, "d": "é", "e": []}
    event = {"name": "x", "unix_ns": 2**62, "attributes": more}
    spans.append({**spans[0], "span_id": "f" * 16, "status": "ok", "attributes": more, "events": [event]})
    path.write_text("".join(json.dumps(span) + "\n" for span in spans))
    cells = list(cells_of(chosen_sweeps([SWEEP], results)))
    for cell, line in zip(cells, otlp(cells, Written()), strict=True):
        sent = encode_spans(spans_of(cell))
        assert as_protobuf(line).SerializeToString() == sent.SerializeToString()


def test_spans_are_those_of_the_cell(made, lines):
    spans = as_protobuf(lines[0]).resource_spans[0].scope_spans[0].spans
    _, of_file = stored(made)
    for span, data in zip(spans, of_file, strict=True):
        assert (span.trace_id.hex(), span.span_id.hex()) == (data["trace_id"], data["span_id"])
        assert span.parent_span_id.hex() == (data["parent_id"] or "")
        assert (span.name, span.start_time_unix_nano) == (data["name"], data["start_unix_ns"])
        assert span.end_time_unix_nano == data["end_unix_ns"]
        values = {each.key: each.value for each in span.attributes}
        assert values.pop("cab.kind").string_value == data["kind"]
        assert values.keys() == data["attributes"].keys()
        is_call = data["kind"] == "model_call"
        assert span.kind == (Span.SPAN_KIND_CLIENT if is_call else Span.SPAN_KIND_INTERNAL)
        failed = data["status"] == "error"
        assert span.status.code == (Status.STATUS_CODE_ERROR if failed else Status.STATUS_CODE_UNSET)
    call = next(span for span in spans if span.kind == Span.SPAN_KIND_CLIENT)
    tokens = {each.key: each.value.int_value for each in call.attributes}
    assert tokens["gen_ai.usage.input_tokens"] == 100


def test_a_damaged_span_is_named(results):
    path, _ = stored(results)
    path.write_bytes(path.read_bytes() + b'{"trace_id": 1}\n')
    with pytest.raises(StoreError, match=r"spans\.jsonl:9: is no span"):
        list(otlp(cells_of(chosen_sweeps([SWEEP], results)), Written()))


class Collector(ThreadingHTTPServer):
    status = 200
    spans = 0


class Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        request = ExportTraceServiceRequest.FromString(self.rfile.read(int(self.headers["Content-Length"])))
        scopes = [scope for group in request.resource_spans for scope in group.scope_spans]
        self.server.spans += sum(len(scope.spans) for scope in scopes)
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def collector(monkeypatch):
    with Collector(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        yield server
        server.shutdown()
        thread.join()


def test_spans_are_sent_where_the_environment_says(made, collector):
    assert send(cells_of(chosen_sweeps([SWEEP], made))) == collector.spans == 8 + 3 + 3


def test_a_collector_that_refuses_is_told(made, collector):
    collector.status = 400
    with pytest.raises(
        EnvironmentFault, match=f"did not take the spans of {SWEEP}/opencode.*it took 0 before"
    ):
        send(cells_of(chosen_sweeps([SWEEP], made)))


def test_without_a_collector_nothing_is_sent(made, monkeypatch):
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", raising=False)
    with pytest.raises(EnvironmentFault, match="no collector is named"):
        send(cells_of(chosen_sweeps([SWEEP], made)))
