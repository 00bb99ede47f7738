"""The expected tests and what they reported; one child after the other runs what is left of them."""

from __future__ import annotations

import os
import secrets
import select
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from cab_tests.errors import BrokenError
from cab_tests.processes import kill_descendants

TEST_LIMIT_S = 20.0
SUITE_LIMIT_S = 240.0
MESSAGE_CHARS = 500
MAX_LINE_BYTES = 1 << 16

Results = dict[str, dict[str, object]]
"""What is known of each test, in CTRF's words but for its status: passed, failed, skipped or error."""


class Suite:
    """Runs `argv` in `workdir` as often as it takes. A child that dies or hangs costs the test it was at."""

    def __init__(
        self,
        argv: Sequence[str],
        tests: Sequence[str],
        workdir: Path,
        scratch: Path,
        env: Mapping[str, str],
        test_limit_s: float = TEST_LIMIT_S,
    ) -> None:
        self.argv = argv
        self.tests = tests
        self.workdir = workdir
        self.scratch = scratch
        self.env = env
        self.test_limit_s = test_limit_s
        self.deadline = time.monotonic() + SUITE_LIMIT_S
        self.results: Results = {}

    def run(self) -> Results:
        """The result of every test, in order. Raises BrokenError where the code cannot be loaded."""
        while (left := self._left()) and time.monotonic() < self.deadline:
            reason = self._run_child(left)
            if reason and (stuck := self._left()):
                self.results[stuck[0]] = _result("error", reason, 0.0)
        for test in self._left():
            self.results[test] = _result("error", f"not run: the suite took over {SUITE_LIMIT_S:g} s", 0.0)
        return {test: self.results[test] for test in self.tests}

    def _left(self) -> list[str]:
        return [test for test in self.tests if test not in self.results]

    def _run_child(self, tests: list[str]) -> str | None:
        """Run one child; says why the first test without a result has none, if the child did not."""
        word = secrets.token_hex(16)
        reader, writer = os.pipe()
        # A file, not a pipe: a child that never reads it must not hold up this process.
        with tempfile.TemporaryFile(dir=self.scratch) as orders:
            orders.write("\n".join([word, str(writer), *tests, ""]).encode())
            orders.seek(0)
            child = subprocess.Popen(
                self.argv,
                stdin=orders,
                pass_fds=(writer,),
                cwd=self.workdir,
                env=self.env,
                start_new_session=True,
            )
        os.close(writer)
        try:
            return self._read(reader, word)
        finally:
            os.close(reader)
            kill_descendants()
            child.returncode = 0  # reaped above, together with what it left

    def _read(self, reader: int, word: str) -> str | None:
        rest = b""
        since = time.monotonic()
        while self._left():
            limit = min(since + self.test_limit_s, self.deadline) - time.monotonic()
            if limit <= 0 or not select.select([reader], [], [], limit)[0]:
                return f"gave no result within {self.test_limit_s:g} s"
            block = os.read(reader, MAX_LINE_BYTES)
            if not block:
                break
            *lines, rest = (rest + block).split(b"\n")
            rest = rest[-MAX_LINE_BYTES:]
            for line in lines:
                taken = self._take(line, word, since)
                if taken == "error":
                    return None  # the last word of a child that cannot go on
                if taken:
                    since = time.monotonic()
        return "ended without reporting a result"

    def _take(self, line: bytes, word: str, since: float) -> str | None:
        """Keep one result and give its status; pass over what lacks the word or is of no test that waits."""
        said, *parts = line.decode("utf-8", "replace").split("\t", 3)
        if not secrets.compare_digest(said.encode(), word.encode()) or len(parts) != 3:
            return None
        test, status, message = parts
        message = message.replace("\\n", "\n")
        if status == "broken":
            raise BrokenError(message)
        if test not in self._left():
            return None
        self.results[test] = _result(status, message, time.monotonic() - since)
        return status


def _result(status: str, message: str, seconds: float) -> dict[str, object]:
    said = {"message": message[:MESSAGE_CHARS]} if message else {}
    return {"status": status, "duration": round(seconds * 1000), **said}
