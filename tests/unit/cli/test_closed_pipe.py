"""The reader of the output is gone before all of it is written, as with `| head`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

REPO = Path(__file__).parents[3]

LINES = """
import sys, click
from orchestrator import cli

def write():
    {body}

cli.LazyGroup.get_command = lambda *_: click.Command("doctor", callback=write)
cli.main(["doctor"])
"""
CLICK = "[click.echo('x' * 99) for _ in range(9999)]"
RICH = "from orchestrator.report.text import console; [console().print('x' * 99) for _ in range(9999)]"
JSON = "from orchestrator.report.text import print_json; print_json('x'); sys.exit(1)"
BYTES = "sys.stdout.buffer.write(b'x' * 999_999)"
ERROR = "from orchestrator.errors import InputError; raise InputError('is wrong')"
OTHER = "raise BrokenPipeError(32, 'a socket of the engine')"


def ended(body: str, *, stderr: int | None = None) -> tuple[int, str]:
    """The end of a command whose standard output has no reader, and what it said on standard error."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        _command(body), cwd=REPO, stdout=writer, stderr=writer if stderr else subprocess.PIPE, check=False
    )
    os.close(writer)
    return done.returncode, "" if stderr else done.stderr.decode()


def _command(body: str) -> Sequence[str]:
    return (sys.executable, "-c", LINES.format(body=body))


@pytest.mark.parametrize("body", [CLICK, RICH, JSON, BYTES], ids=["click", "rich", "at the end", "bytes"])
def test_cab_ends_by_sigpipe_without_a_word(body: str) -> None:
    assert ended(body) == (-signal.SIGPIPE, "")


def test_an_error_that_nobody_reads_ends_so_too() -> None:
    assert ended(ERROR, stderr=1)[0] == -signal.SIGPIPE


def test_a_socket_that_ends_is_no_reader_that_is_gone() -> None:
    done = subprocess.run(_command(OTHER), cwd=REPO, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "a socket of the engine" in done.stderr


def test_in_a_shell_it_is_141(tmp_path: Path) -> None:
    script = 'set -o pipefail; "$0" -m orchestrator.cli export columns --json | head -c 1; echo " $?"'
    done = subprocess.run(
        ["bash", "-c", script, sys.executable], cwd=REPO, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) in (("[ 141\n", ""), ("[ 0\n", ""))
