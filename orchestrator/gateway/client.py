"""Starts the gateway process and steers it: what the runner sees of the gateway."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path
from types import TracebackType
from typing import Any

import orchestrator
from orchestrator.errors import CellFault
from orchestrator.gateway.contract import CellRoute, Endpoint, WindowReport
from orchestrator.gateway.evidence import WireBody, read_calls, read_wire, recorded_wire
from orchestrator.gateway.listeners import Listener, Listeners

__all__ = ["Gateway", "WireBody", "read_calls", "read_wire", "recorded_wire"]

ANSWER_S = 30.0
"""Seconds within which the gateway answers a request; past them it is taken for dead."""

_KEPT_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR")


class Gateway:
    """The running gateway; thread-safe. A context manager that stops it at the end.

    Callbacks run on the thread that reads the gateway's answers and must not call the gateway.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._lock = threading.Lock()
        self._answers: dict[int, Future[Any]] = {}
        self._listeners = Listeners()
        self._last_id = 0
        self._dead = False
        self._stopping = False
        self._ready: Future[None] = Future()
        self._reader = threading.Thread(target=self._read, name="gateway", daemon=True)
        self._reader.start()

    @classmethod
    def start(cls, endpoints: Iterable[Endpoint] = (), *, log: Path | None = None) -> Gateway:
        """Start the process and hand it the endpoints with their keys. `log` takes the gateway's own faults.

        Keys go over the control line only: the child's environment holds nothing but paths and locale.
        Raises CellFault("gateway") when it does not start.
        """
        environment = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
        environment["PYTHONPATH"] = str(Path(orchestrator.__file__).parent.parent)
        process = subprocess.Popen(
            [sys.executable, "-m", "orchestrator.gateway", "--log", str(log or os.devnull)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
        gateway = cls(process)
        try:
            gateway._wait_for(gateway._ready, "does not start")
            for endpoint in endpoints:
                gateway._request("add_endpoint", endpoint.model_dump(mode="json"))
        except BaseException:
            gateway.stop()
            raise
        return gateway

    @property
    def alive(self) -> bool:
        return not self._dead and self._process.poll() is None

    @property
    def pid(self) -> int:
        return self._process.pid

    def open_cell(
        self,
        route: CellRoute,
        on_wait: Callable[[bool], None] | None = None,
        on_limit: Callable[[], None] | None = None,
        on_fault: Callable[[CellFault], None] | None = None,
        on_difference: Callable[[], None] | None = None,
    ) -> None:
        """Listen on the cell's socket.

        `on_wait(True)` and `on_wait(False)` frame the stretches in which the cell waits for its endpoint,
        `on_limit()` tells that a call was refused since a limit was reached, once, `on_difference()` that a
        call of a replay was not recorded, `on_fault` that the gateway died under the cell. Raises
        CellFault("gateway") when the cell cannot be opened.
        """
        self._listeners.add(route.cell_id, Listener(on_wait, on_limit, on_fault, on_difference))
        try:
            self._request("open_cell", route.model_dump(mode="json"))
        except CellFault:
            self._listeners.remove(route.cell_id)
            raise

    def close_cell(self, cell_id: str) -> dict[str, Any]:
        """Close the cell's socket and connections and finish its files.

        Returns {"calls", "refused", "limit_reached"}; raises CellFault("gateway") when the gateway is dead,
        or could not write the cell's files.
        """
        self._listeners.remove(cell_id)
        summary: dict[str, Any] = self._request("close_cell", cell_id)
        return summary

    def windows(self) -> list[WindowReport]:
        """What came of the windows of the endpoints that were asked. Raises CellFault("gateway")."""
        return [WindowReport.model_validate(report) for report in self._request("windows", None)]

    def stop(self) -> None:
        """End the process; cells still open end with it, without a fault. May be called twice."""
        self._stopping = True
        if self._process.stdin is not None and not self._process.stdin.closed:
            with self._lock:
                self._close_line()
        try:
            self._process.wait(ANSWER_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()

    def __enter__(self) -> Gateway:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _request(self, operation: str, value: Any) -> Any:
        answer: Future[Any] = Future()
        with self._lock:
            self._last_id += 1
            number = self._last_id
            if not self._dead:
                self._answers[number] = answer
                line = json.dumps({"id": number, "op": operation, "value": value}).encode() + b"\n"
                self._send(line)
        if self._dead and not answer.done():
            raise gateway_fault("is dead")
        return self._wait_for(answer, f"does not answer {operation}")

    def _send(self, line: bytes) -> None:
        """Write a line; a gateway that is gone is told by its reader, which ends every pending answer."""
        if self._process.stdin is None:
            return
        try:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        except OSError:
            self._process.kill()

    def _wait_for(self, answer: Future[Any], complaint: str) -> Any:
        try:
            return answer.result(ANSWER_S)
        except FutureTimeout:
            raise gateway_fault(complaint) from None

    def _close_line(self) -> None:
        if self._process.stdin is not None:
            try:
                self._process.stdin.close()
            except OSError:
                self._process.kill()

    def _read(self) -> None:
        """Take answers and events until the gateway is gone, then tell everyone who waits."""
        assert self._process.stdout is not None
        try:
            with self._process.stdout as lines:
                for line in lines:
                    self._dispatch(json.loads(line))
        finally:
            self._process.kill()
            with self._lock:
                self._dead = True
                answers, self._answers = list(self._answers.values()), {}
            fault = gateway_fault("died")
            for answer in [self._ready, *answers]:
                if not answer.done():
                    answer.set_exception(fault)
            self._listeners.end(None if self._stopping else fault)

    def _dispatch(self, message: dict[str, Any]) -> None:
        if "event" in message:
            self._event(message["event"], message["cell_id"])
            return
        with self._lock:
            answer = self._answers.pop(message["id"])
        if "error" in message:
            answer.set_exception(gateway_fault(message["error"]))
        else:
            answer.set_result(message["result"])

    def _event(self, event: str, cell_id: str) -> None:
        if event == "ready":
            self._ready.set_result(None)
        else:
            self._listeners.tell(event, cell_id)


def gateway_fault(thing: str) -> CellFault:
    """What is said of a gateway that does not do its part."""
    return CellFault("gateway", thing, place="the model gateway", mend="its log file tells more")
