"""A cell's own command, run as it is printed, and what came of it beside what came of the cell."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from command import ENDED_S, PYTHON_TASK, Cab

TIMED = {"composite", "bounds", "active_time", "wall_clock_ms", "latency_efficiency"}
"""What of the composites hangs on time, by name; the axis `latency` is nothing else."""


def run_line(command: str, *options: str, cwd: Path, code: int = 0) -> str:
    """Its stdout. The command is given to a shell as it stands; options can only be added at its end."""
    done = subprocess.run(
        " ".join([command, *options]),
        shell=True,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=ENDED_S * 4,
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def timeless(scores: dict[str, Any]) -> dict[str, Any]:
    """The scores without what hangs on time."""
    kept = {axis: found for axis, found in scores.items() if axis != "latency"}
    for axis in ("composite", "composite_published"):
        parts = {name: part for name, part in kept[axis]["components"].items() if name not in TIMED}
        own = {name: part for name, part in kept[axis].items() if name not in TIMED}
        kept[axis] = {**own, "components": parts}
    return kept


def assert_reproduced(cab: Cab, cli: str, task: str = PYTHON_TASK) -> dict[str, Any]:
    """The command of a CLI's cell gives the scores of that cell; its record."""
    [cell] = [
        record
        for record in cab.records().values()
        if record["identity"]["cli"] == cli and record["identity"]["task"] == task
    ]
    # As a machine without cab has it: nothing of a checkout is there.
    record: dict[str, Any] = json.loads(run_line(cell["reproduce"]["command"], "--json", cwd=cab.root))
    assert timeless(record["scores"]) == timeless(cell["scores"])
    assert record["outcome"] == cell["outcome"]
    for name in (
        "container_image",
        "image_digest",
        "task_content_hash",
        "adapter_digest",
        "generation_settings",
    ):
        assert record["identity"][name] == cell["identity"][name], name
    assert record["isolation"]["containers"] == "single-container"
    assert record["isolation"]["egress"] in ("tcp-restricted", "open")
    return record


def printed_line(shown: str) -> str:
    """The command, as it is copied from a table or from what `cab cell show` prints."""
    [line] = re.findall(
        r"^run it in one container, without cab[^\n]*:\n  (docker run .*)$", shown, re.MULTILINE
    )
    return str(line)
