"""A signal that comes before cab heeds any: PID 1 of a container would lose it, were it not blocked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).parents[3]


@pytest.mark.parametrize("name", ["INT", "TERM"])
def test_a_signal_that_was_blocked_at_the_start_ends_cab(name: str) -> None:
    script = f'kill -{name} $$; exec "$0" -m orchestrator.cli --version'
    done = subprocess.run(
        ["env", f"--block-signal={name}", "sh", "-c", script, sys.executable],
        cwd=REPO,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_an_images_entry_blocks_them() -> None:
    assert "env --block-signal=INT,TERM " in (REPO / "images" / "cell" / "child" / "entry").read_text()
