from __future__ import annotations

import gzip
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from orchestrator.trace.otlp import OtlpExport, wanted
from orchestrator.trace.spans import CellTracer, Kind


class Collector(ThreadingHTTPServer):
    """A collector on loopback that keeps what it is sent, or refuses it."""

    def __init__(self, status: int) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status = status
        self.spans: list = []
        self.resources: list = []
        self.headers: list = []


class Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        request = ExportTraceServiceRequest.FromString(body)
        self.server.headers.append(dict(self.headers))
        for group in request.resource_spans:
            self.server.resources.append({each.key for each in group.resource.attributes})
            for scope in group.scope_spans:
                self.server.spans.extend(scope.spans)
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def collector(monkeypatch, request):
    with Collector(getattr(request, "param", 200)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def silent(monkeypatch):
    """A collector that takes connections and never answers; it waits for the export to have ended."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.getsockname()[1]}")
        yield server
    for thread in threading.enumerate():
        if thread.name == "otlp-close":
            thread.join()


def trace(path, export, cells=3):
    for number in range(cells):
        tracer = CellTracer(f"cell{number}", path / f"{number}.jsonl", exporter=export.processor)
        with tracer, tracer.span("s", Kind.SCORE):
            pass


@pytest.mark.parametrize(
    ("env", "yes"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": ""}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_TRACES_EXPORTER": "none"}, False),
    ],
)
def test_the_standard_variables_decide(env, yes):
    assert wanted(env) is yes


def test_every_span_arrives_once(tmp_path, monkeypatch, collector):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=one")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "host.name=secret")
    export = OtlpExport()
    trace(tmp_path, export)
    assert export.close() == 0
    assert sorted(span.name for span in collector.spans) == ["cell:cell0", "cell:cell1", "cell:cell2", *"sss"]
    assert len({span.trace_id for span in collector.spans}) == 3
    assert all(each == {"service.name", "service.version"} for each in collector.resources)
    assert collector.headers[0]["x-team"] == "one"


@pytest.mark.parametrize("collector", [400], indirect=True)
def test_spans_that_a_collector_refuses_are_counted(tmp_path, collector, capfd):
    export = OtlpExport()
    trace(tmp_path, export)
    assert export.close() == 6
    assert capfd.readouterr() == ("", "")


def test_a_collector_that_never_answers_delays_nothing(tmp_path, silent, capfd):
    export = OtlpExport()
    start = time.monotonic()
    trace(tmp_path, export, cells=50)
    traced = time.monotonic()
    assert export.close(timeout_s=0.2) == 100
    closed = time.monotonic()
    assert traced - start < 5, "a cell waited for the collector"
    assert closed - traced < 5
    assert len((tmp_path / "49.jsonl").read_text().splitlines()) == 2
    assert capfd.readouterr() == ("", "")


def test_more_spans_than_the_queue_holds_are_counted(tmp_path, monkeypatch, silent):
    monkeypatch.setattr("orchestrator.trace.otlp._QUEUE", 4)
    monkeypatch.setattr("orchestrator.trace.otlp._BATCH", 4)
    export = OtlpExport()
    trace(tmp_path, export, cells=20)
    assert export.close(timeout_s=0.1) == 40
