"""The process that has the code under test, and that is asked line by line."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import time

from cab_tests.errors import NoAnswerError

REQUESTS = 3
ANSWERS = 4
"""The descriptors that the process finds its requests at, and writes its answers to."""

MAX_ANSWER_BYTES = 16 << 20
_BLOCK_BYTES = 1 << 16
_LOOK_AGAIN_S = 0.05
_END_S = 0.2


class Peer:
    """One process, which runs in this one's working directory and environment.

    It gets the two pipes and standard error, to which its standard output goes as well, and no other
    descriptor of this process. What it prints is no answer.
    """

    def __init__(self, argv: list[str]) -> None:
        theirs, requests = os.pipe()
        answers, theirs_too = os.pipe()
        # Out of the way of the descriptors that they become.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, ANSWERS + 1) for end in (theirs, theirs_too)]
        self._pid = os.posix_spawn(
            argv[0],
            argv,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, 2, 1),
                (os.POSIX_SPAWN_DUP2, ends[0], REQUESTS),
                (os.POSIX_SPAWN_DUP2, ends[1], ANSWERS),
            ],
            # Python ignores these, and a program inherits what is ignored.
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
        )
        for end in (theirs, theirs_too, *ends):
            os.close(end)
        self._requests = os.fdopen(requests, "wb")
        self._answers = answers
        self._rest = bytearray()

    def exchange(self, request: bytes) -> bytes:
        """Hand over one line and wait for one, both without their end. Raises NoAnswerError."""
        try:
            self._requests.write(request + b"\n")
            self._requests.flush()
        except BrokenPipeError:
            raise NoAnswerError(self._ended()) from None
        searched = 0
        while (end := self._rest.find(b"\n", searched)) < 0:
            searched = len(self._rest)
            if searched > MAX_ANSWER_BYTES:
                raise NoAnswerError(f"its answer is longer than {MAX_ANSWER_BYTES} bytes")
            self._rest += self._block()
        line = bytes(self._rest[:end])
        del self._rest[: end + 1]
        return line

    def _block(self) -> bytes:
        """What it says next. Looks at the process as well: a child of its own may hold the pipe open."""
        ended = False
        while not select.select([self._answers], [], [], 0 if ended else _LOOK_AGAIN_S)[0]:
            if ended:
                raise NoAnswerError(self._ended())
            ended = self._end() is not None
        block = os.read(self._answers, _BLOCK_BYTES)
        if not block:
            raise NoAnswerError(self._ended())
        return block

    def _ended(self) -> str:
        """How it ended. A process lets go of its pipes shortly before that."""
        until = time.monotonic() + _END_S
        while (end := self._end()) is None:
            if time.monotonic() > until:
                return "it closed its pipe"
            time.sleep(_END_S / 20)
        if end.si_code == os.CLD_EXITED:
            return f"it ended with exit code {end.si_status}"
        return f"it ended by {signal.Signals(end.si_status).name}"

    def _end(self) -> os.waitid_result | None:
        return os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)

    def close(self) -> None:
        """Let go of the pipes; the process reads the end of its requests."""
        os.close(self._answers)
        try:
            self._requests.close()
        except BrokenPipeError:
            return
