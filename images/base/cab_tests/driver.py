"""Code under test in any language: a driver, compiled together with it, answers what the tests ask."""

from __future__ import annotations

import json
import subprocess
import sys
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

from cab_tests.errors import BrokenError, NoAnswerError
from cab_tests.peer import Peer
from cab_tests.processes import kill_descendants

BUILD_LIMIT_S = 180.0


class Failed(Exception):
    """The operation failed in a way that a test may expect; its text is `KIND: message`."""


Failed.__module__ = "driver"


def environment(build: Path, tests: Path, path: str) -> dict[str, str]:
    """What build, tests and driver see: one empty directory to write to, and where the tests are."""
    place = str(build)
    return {
        "PATH": path,
        "LANG": "C.UTF-8",
        "HOME": place,
        "TMPDIR": place,
        "BUILD": place,
        "TESTS": str(tests),
    }


def compile_all(command: str, workdir: Path, env: Mapping[str, str]) -> None:
    """Run the build, and nothing of it afterwards. Raises BrokenError when it fails or takes too long."""
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=workdir,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
            check=False,
            timeout=BUILD_LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        raise BrokenError(f"cannot be compiled: took over {BUILD_LIMIT_S:g} s") from None
    finally:
        kill_descendants()
    if done.returncode != 0:
        raise BrokenError(f"cannot be compiled: the build ended with {done.returncode}")


class DriverModule(types.ModuleType):
    """What tests import as `driver`. A driver is started by the first question of a test and ends with it."""

    Failed = Failed

    def __init__(self, command: str, give_up: Callable[[str], NoReturn]) -> None:
        super().__init__("driver")
        self._command = command
        self._give_up = give_up
        self._peer: Peer | None = None

    def ask(self, operation: str, *args: object) -> object:
        """What the operation returns. Raises Failed where the driver says that it failed.

        Without a proper answer the test ends here. Raises ValueError or TypeError for arguments that are no
        JSON.
        """
        request = json.dumps(
            [operation, *args], ensure_ascii=False, allow_nan=False, separators=(",", ":")
        ).encode()
        if self._peer is None:
            self._peer = Peer(["/bin/sh", "-c", self._command])
        try:
            kind, value = _read(self._peer.exchange(request))
        except NoAnswerError as error:
            self._give_up(f"no answer to {operation!r} from the driver: {error}")
        if kind == "error":
            raise Failed(value)
        return value

    def end(self) -> None:
        """End the driver and whatever it started, if a test has asked anything."""
        if self._peer is not None:
            self._peer.close()
            self._peer = None
        kill_descendants()


def _read(line: bytes) -> tuple[str, object]:
    """`ok` or `error`, and what goes with it. Raises NoAnswerError where the line is neither."""
    try:
        answer = json.loads(line.decode(), parse_constant=_no_number)
        [(kind, value)] = answer.items()
    except (ValueError, RecursionError, AttributeError) as error:
        raise NoAnswerError(f"{line[:80]!r} is no answer ({type(error).__name__})") from None
    if kind not in {"ok", "error"} or (kind == "error" and not isinstance(value, str)):
        raise NoAnswerError(f"{line[:80]!r} is no answer")
    return kind, value


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")
