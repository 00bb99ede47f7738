"""A night of examples/nightly with the real command: cut off by force, and gone on with as after a reboot."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys

import pytest
from command import PYTHON_TASK, REPO, Cab, wait_for

SCRIPT = REPO / "examples" / "nightly" / "nightly.sh"


def test_a_night_that_is_killed_is_gone_on_with() -> None:
    with Cab.own() as cab:
        launcher = cab.root / "cab"
        launcher.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m orchestrator.cli "$@"\n')
        launcher.chmod(0o755)
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("CAB_", "OTEL_"))}
        env = kept | {
            "CAB_SCRATCH": str(cab.root / "scratch"),
            "TMPDIR": str(cab.root / "tmp"),
            "PYTHONPATH": str(REPO),
            "NIGHTLY_CAB": str(launcher),
            "NIGHTLY_RESULTS": str(cab.results),
            "NIGHTLY_PAUSE": "0",
        }
        spec = cab.spec(clis=["noop"], tasks=[PYTHON_TASK], runs=3)
        with subprocess.Popen([SCRIPT, "run", spec], env=env, start_new_session=True) as night:
            try:
                current = cab.results / "nightly.current"
                cab.sweep_id = wait_for(lambda: current.exists() and current.read_text().strip(), "a night")
                wait_for(cab.index, "a finished cell")
            finally:
                os.killpg(night.pid, signal.SIGKILL)
        assert len(cab.index()) < 3
        resumed = subprocess.run(
            [SCRIPT, "resume", spec], env=env, capture_output=True, text=True, check=False
        )
        if resumed.returncode:
            pytest.fail(resumed.stderr)
        cab.assert_each_cell_once()
        assert not current.exists()
        again = subprocess.run([SCRIPT, "run", spec], env=env, capture_output=True, text=True, check=False)
        assert again.returncode == 0, again.stderr
        cab.assert_each_cell_once()
        assert cab.left() == {}
