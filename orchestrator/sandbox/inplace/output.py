"""Reads what a command in place writes, as it comes, from its terminal or its pipes."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Mapping

from orchestrator.sandbox.contract import OutputSink
from orchestrator.sandbox.control import Wake
from orchestrator.sandbox.output import SinkThread

_CHUNK = 1 << 16


class DescriptorReader(SinkThread):
    """Hands on what comes on descriptors, each by its stream's name, with the time it came, until all have
    ended; it closes them.
    """

    def __init__(
        self, descriptors: Mapping[int, str], *, sink: OutputSink | None, notify: Callable[[], None]
    ) -> None:
        super().__init__(sink, notify)
        self._streams = dict(descriptors)
        self._cut = Wake()

    def run(self) -> None:
        poller = select.poll()
        for descriptor in (self._cut.fileno(), *self._streams):
            poller.register(descriptor, select.POLLIN)
        while self._streams:
            ready = {descriptor for descriptor, _ in poller.poll()}
            if self._cut.fileno() in ready:
                break
            for descriptor in ready:
                if data := _read(descriptor):
                    self._hand_on(self._streams[descriptor], time.monotonic(), data)
                else:
                    poller.unregister(descriptor)
                    del self._streams[descriptor]
                    os.close(descriptor)
        for descriptor in self._streams:
            os.close(descriptor)
        self._cut.close()
        self._end()

    def stop(self, patience_s: float) -> bool:
        """Wait for the end of all streams; after `patience_s` cut them off and say False. May be called
        twice.
        """
        complete = self._ended.wait(patience_s)
        if not complete:
            self._cut.set()
        self.join()
        return complete


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _CHUNK)
    except OSError:  # a terminal that nobody holds open any more
        return b""
