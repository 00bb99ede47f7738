"""One command under a PID 1 of cab's, or what stands for one: the waiting for its messages, the clock of its
limit, and what other threads may do to it.
"""

from __future__ import annotations

import errno
import math
import threading
import time
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Protocol, TypeVar

from orchestrator.errors import CellFault, NotStarted
from orchestrator.sandbox.contract import AskedName, ContainerEnd, ContainerSpec
from orchestrator.sandbox.control import (
    Asked,
    Closed,
    Command,
    ControlLine,
    Ended,
    Failed,
    Message,
    Ready,
    Started,
    Wake,
)

MAX_NAMES = 64
"""Host names that PID 1 keeps of a container."""

# How long after the limit (or a kill) PID 1 may take to say `end` before the engine ends the container.
END_GRACE_S = 30.0
# How long the output may stay open after `bye`, and the rest of the container after its output ended.
OUTPUT_GRACE_S = 30.0
LINE_GRACE_S = 5.0

# The errors of execve(2) that lie in the file that is to be run, or in argv.
_CANNOT_EXECUTE = frozenset(
    {
        errno.E2BIG,
        errno.EACCES,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.ENOENT,
        errno.ENOEXEC,
        errno.ENOTDIR,
        errno.EPERM,
    }
)

_M = TypeVar("_M", Ready, Started, Ended)


class Output(Protocol):
    """A reader of the command's output: what its sink raised, and when the output ended."""

    error: Exception | None
    ended_at: float | None

    def stop(self, patience_s: float) -> bool: ...


class Steered(ABC):
    """Is its own `RunningContainer`. The clock of the limit is a state, not a count: two pauses need one
    resume.
    """

    def __init__(self, spec: ContainerSpec) -> None:
        self._spec = spec
        self._wake = Wake()
        self._line: ControlLine | None = None
        self._output: Output | None = None
        self._asked: list[AskedName] = []
        self._clock = threading.Lock()
        self._started = 0.0
        self._paused_at: float | None = None
        self._paused_s = 0.0
        self._killed: tuple[float, str] | None = None

    # ---- for other threads, once the command runs ----

    def pause_clock(self) -> None:
        with self._clock:
            if self._paused_at is None:
                self._paused_at = time.monotonic()
                self._send("pause")

    def resume_clock(self) -> None:
        with self._clock:
            if self._paused_at is not None:
                self._paused_s += time.monotonic() - self._paused_at
                self._paused_at = None
                self._send("resume")
        self._wake.set()

    def kill(self, reason: str) -> None:
        with self._clock:
            if self._killed is None:
                self._killed = (time.monotonic(), reason)
                self._send("kill")
        self._wake.set()

    # ---- for whoever runs it ----

    def _ended(self, *, heard: bool) -> ContainerEnd:
        """The command's end; `heard` is whether PID 1 told which host names were asked for."""
        end = self._expect(Ended).end
        return replace(end, asked=tuple(self._asked)) if heard else end

    def _expect(self, kind: type[_M], deadline: float | None = None) -> _M:
        """The next message, which has to be of this kind. The default deadline is the command's own."""
        assert self._line is not None
        message: Message | None = None
        while message is None:
            self._raise_sink_error()
            until = self._deadline() if deadline is None else deadline
            message = self._line.receive(self._until(until), self._wake)
            if message is None:
                self._check(until)
            elif isinstance(message, Asked) and len(self._asked) < MAX_NAMES:
                self._asked.append(message.asked)
                message = None
        if isinstance(message, Closed):
            raise self._broken()
        if isinstance(message, Failed):
            what = f"PID 1 could not start {self._spec.argv[0]}: {message.text} (errno {message.errno})"
            # After `go` only the command itself is left to fail; what fails before is PID 1's own set-up.
            if kind is Started and message.errno in _CANNOT_EXECUTE:
                raise NotStarted("engine", what, place=self._spec.name)
            raise CellFault("engine", what, place=self._spec.name)
        if not isinstance(message, kind):
            raise CellFault("engine", f"PID 1 said {message} out of turn", place=self._spec.name)
        return message

    def _send(self, command: Command) -> None:
        assert self._line is not None
        self._line.send(command)

    def _deadline(self) -> float | None:
        """When PID 1 must have said `end`; None while the clock is paused: who paused it resumes or kills."""
        with self._clock:
            if self._killed is not None:
                return self._killed[0] + END_GRACE_S
            if self._paused_at is not None:
                return None
            return self._started + self._spec.time_limit_s + self._paused_s + END_GRACE_S

    def _until(self, deadline: float | None) -> float | None:
        """`deadline`, or earlier where the output has ended: then the container, or the engine, is gone."""
        assert self._output is not None
        ended_at = self._output.ended_at
        if ended_at is None:
            return deadline
        return min(ended_at + LINE_GRACE_S, deadline if deadline is not None else math.inf)

    def _check(self, deadline: float | None) -> None:
        """Nothing was said: raises where nothing more is to be waited for."""
        assert self._output is not None
        now = time.monotonic()
        if self._output.ended_at is not None and now >= self._output.ended_at + LINE_GRACE_S:
            raise self._broken()
        if deadline is not None and now >= deadline:
            late = f"PID 1 did not answer in time (limit {self._spec.time_limit_s:g} s)"
            if self._killed is not None:
                late = f"PID 1 did not answer `kill` ({self._killed[1]}) within {END_GRACE_S:g} s"
            raise CellFault("engine", late, place=self._spec.name)

    def _raise_sink_error(self) -> None:
        if self._output is not None and self._output.error is not None:
            raise self._output.error

    def _finish_output(self) -> None:
        assert self._output is not None
        complete = self._output.stop(OUTPUT_GRACE_S)
        self._raise_sink_error()
        if not complete:
            raise CellFault(
                "engine",
                f"the container's output did not end within {OUTPUT_GRACE_S:g} s",
                place=self._spec.name,
            )

    @abstractmethod
    def _broken(self) -> CellFault:
        """Why the control line or the output ended before the command did."""
