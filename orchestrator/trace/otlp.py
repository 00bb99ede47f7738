"""OTLP/HTTP export of spans, for a sweep run with the standard `OTEL_EXPORTER_OTLP_*` variables.

One exporter serves all cells of a process. It works in a thread of its own with a bounded queue: a
collector that is dead, slow or wrong costs spans, which are counted and said once, and never delays or
fails a cell.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

_QUEUE = 8192
_BATCH = 512
_DELAY_MS = 1000


def wanted(env: Mapping[str, str]) -> bool:
    """Whether the standard variables ask for an export of traces over OTLP."""
    if env.get("OTEL_TRACES_EXPORTER", "otlp").strip().lower() == "none":
        return False
    return any(env.get(f"OTEL_EXPORTER_OTLP_{name}") for name in ("ENDPOINT", "TRACES_ENDPOINT"))


class OtlpExport:
    """Sends spans to the collector that the environment names. Give `processor` to each `CellTracer`."""

    def __init__(self) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        # The SDK logs each failed export; what was lost is said once, by `close`.
        logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
        self._counter = _Counter(OTLPSpanExporter())
        batch = BatchSpanProcessor(
            self._counter,
            max_queue_size=_QUEUE,
            schedule_delay_millis=_DELAY_MS,
            max_export_batch_size=_BATCH,
        )
        self._batch = batch
        self.processor: SpanProcessor = _Counted(batch, self._counter)

    def close(self, timeout_s: float = 5.0) -> int:
        """Send what is left, waiting `timeout_s` at most; how many spans did not arrive."""
        closing = threading.Thread(target=self._batch.shutdown, name="otlp-close", daemon=True)
        closing.start()
        closing.join(timeout_s)
        if closing.is_alive():
            # This ends its retries; a request under way ends by the exporter's own timeout.
            self._counter.shutdown()
        return self._counter.missing()


class _Counter(SpanExporter):
    """Counts what was given to the exporter and what the collector accepted."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._lock = threading.Lock()
        self._given = 0
        self._accepted = 0

    def give(self) -> None:
        with self._lock:
            self._given += 1

    def missing(self) -> int:
        with self._lock:
            return self._given - self._accepted

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            with self._lock:
                self._accepted += len(spans)
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()


class _Counted(SpanProcessor):
    def __init__(self, batch: BatchSpanProcessor, counter: _Counter) -> None:
        self._batch = batch
        self._counter = counter

    def on_end(self, span: ReadableSpan) -> None:
        self._counter.give()
        self._batch.on_end(span)
