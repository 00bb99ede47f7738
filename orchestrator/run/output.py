"""What is kept of a CLI's output: its recording, and its logs as printed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from orchestrator.adapter import Adapter
from orchestrator.sandbox.contract import OutputSink, TtySize
from orchestrator.trace.anchor import Anchor
from orchestrator.trace.recording import LogCapture, Recorder, for_screen, tee
from orchestrator.trace.render import Rendered

RECORDING = "recording.cast"


@contextmanager
def recorded(
    adapter: Adapter, directory: Path, *, title: str, anchor: Anchor, size: TtySize
) -> Iterator[OutputSink]:
    """A sink that keeps what it is fed in `directory`. A recording that is none of a terminal says so in its
    title.

    Raises CellFault("disk"), at the end at the latest, where something could not be kept.
    """
    how = adapter.recording
    with ExitStack() as stack:
        recorder = Recorder(
            directory / RECORDING,
            anchor.origin,
            size.columns,
            size.rows,
            title if how == "pty" else f"{title} ({how})",
            started_unix=int(anchor.started_at.timestamp()),
        )
        stack.enter_context(closing(recorder))
        screen: OutputSink = recorder
        if adapter.render is not None:
            screen = stack.enter_context(closing(Rendered(recorder, adapter.render)))
        elif how == "plain":
            screen = _piped(recorder)
        logs = [
            stack.enter_context(closing(LogCapture(directory / f"{stream}.log", stream=stream)))
            for stream in ("stdout", "stderr")
        ]
        yield tee(screen, *logs)


def _piped(recorder: OutputSink) -> OutputSink:
    return lambda stream, at, data: recorder(stream, at, for_screen(data))
