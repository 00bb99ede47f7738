"""Grading: the task's hidden tests over a rebuilt workdir, in a fresh container of the task's own image.

The verifier's image is the base, the same for every CLI; it has no network, no model and another user than
the agent's. What it says is read from `/logs/verifier`: `reward.txt` (or `reward.json`) and `ctrf.json`.
"""

from __future__ import annotations

import json
import math
import os
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any

from orchestrator.adapter import WORKDIR
from orchestrator.paths import IMAGES
from orchestrator.plan.task import Task
from orchestrator.run.hostile import read
from orchestrator.run.workdir import WITHOUT_BYTE_CODE, Difference, Template, give, rebuild
from orchestrator.sandbox.contract import (
    ContainerEnd,
    ContainerSpec,
    Limits,
    Mount,
    RunningContainer,
    Sandbox,
)
from orchestrator.trace.recording import LogCapture, tail_of, tee
from scorers.evidence import TestResult, Verification

TESTS = "/tests"
LOGS = "/logs/verifier"
VERIFIER_UID = 1001
TAIL_BYTES = 8_000
MAX_REPORT_BYTES = 4 << 20
MAX_LOG_BYTES = 1 << 20
STATUSES = {
    "passed": "passed",
    "failed": "failed",
    "skipped": "skipped",
    "pending": "skipped",
    "other": "error",
}


CAB_TESTS = IMAGES / "base" / "cab_tests"


OnStart = Callable[[RunningContainer], None]
"""Gets the verifier's container once it runs, so that it can be stopped."""


def verifier_user() -> tuple[int, int]:
    """The user tests run as: another than the agent's where cab is root, else cab's own."""
    return (VERIFIER_UID, VERIFIER_UID) if os.geteuid() == 0 else (os.geteuid(), os.getegid())


@dataclass(frozen=True)
class Verifier:
    """Where verifications run: the pinned image, its limits, the sandbox, and the user that tests run as."""

    sandbox: Sandbox
    image_id: str | None
    limits: Limits
    labels: dict[str, str]
    user: tuple[int, int] = field(default_factory=verifier_user)

    def verify(
        self,
        task: Task,
        template: Template,
        workdir: Path,
        difference: Difference,
        scratch: Path,
        output: Path,
        on_start: OnStart | None = None,
    ) -> Verification:
        """Grade `workdir` (which differs from `template` by `difference`), using the empty directory
        `scratch`, and `output`, an empty directory that code under test cannot fill. `on_start` gets the
        container once the test script runs.

        What would take more than half of the scratch is not graded. Raises CellFault when the container could
        not be run.
        """
        graded, tests, logs, run_dir = (scratch / part for part in ("workdir", "tests", "logs", "run"))
        left_out = rebuild(
            template,
            workdir,
            difference,
            task.protected_files,
            graded,
            max_bytes=self.limits.scratch_bytes // 2,
            max_files=self.limits.scratch_inodes // 2,
        )
        shutil.copytree(task.tests_dir, tests, ignore=WITHOUT_BYTE_CODE)
        for directory in (logs, run_dir):
            directory.mkdir()
        for directory in (graded, logs):
            give(directory, self.user)
        mounts = (
            Mount(graded, WORKDIR, read_only=False),
            Mount(tests, TESTS),
            Mount(logs, LOGS, read_only=False),
        )
        spec = ContainerSpec(
            name=f"cab-{token_hex(6)}",
            image_id=self.image_id,
            argv=(*self._with_cab_tests(mounts, run_dir), "sh", f"{self.sandbox.inside(mounts[1])}/test.sh"),
            env={"HOME": "/tmp", "LANG": "C.UTF-8"},
            workdir=WORKDIR,
            user=self.user,
            mounts=mounts,
            run_dir=run_dir,
            time_limit_s=task.verifier_timeout_s,
            limits=self.limits,
            labels=self.labels,
        )
        found = read_report(logs, self._run(spec, output, on_start), output)
        if left_out:
            note = f"[cab: {left_out} changed files were too large, too many or too deep to be graded]\n"
            found = found.model_copy(update={"stderr_tail": note + found.stderr_tail})
        return found

    def _with_cab_tests(self, mounts: tuple[Mount, ...], run_dir: Path) -> tuple[str, ...]:
        """Where nothing is at its target: what puts a `cab-tests` that knows where all is on the PATH of the
        command after it.
        """
        workdir, tests, logs = map(self.sandbox.inside, mounts)
        if workdir == WORKDIR:
            return ()
        shutil.copytree(CAB_TESTS, run_dir / CAB_TESTS.name)
        options = shlex.join(["--workdir", workdir, "--tests", tests, "--logs", logs])
        program = run_dir / "cab-tests"
        program.write_text(
            f"#!/bin/sh\nkind=$1\nshift\n"
            f'exec python3 -I -B {shlex.quote(str(run_dir / CAB_TESTS.name))} "$kind" {options} "$@"\n'
        )
        program.chmod(0o755)
        return ("sh", "-c", 'PATH="$1:$PATH"; export PATH; shift; exec "$@"', "sh", str(run_dir))

    def _run(self, spec: ContainerSpec, output: Path, on_start: OnStart | None) -> ContainerEnd:
        captures = [
            LogCapture(output / f"{name}.log", MAX_LOG_BYTES, stream=name) for name in ("stdout", "stderr")
        ]
        try:
            return self.sandbox.run(spec, sink=tee(*captures), on_start=on_start)
        finally:
            for capture in captures:
                capture.close()


def read_report(logs: Path, end: ContainerEnd, output: Path) -> Verification:
    """Read what the test script left. Code under test ran beside it: all is bounded and doubted."""
    return Verification(
        exit_code=end.exit_code,
        timed_out=end.timed_out,
        reward=_reward(logs),
        tests=_tests(logs),
        stdout_tail=tail_of(output / "stdout.log", TAIL_BYTES),
        stderr_tail=tail_of(output / "stderr.log", TAIL_BYTES),
    )


def _read(path: Path) -> str | None:
    """The text of a report; None when there is none, or one too large to be honest."""
    content = read(path, MAX_REPORT_BYTES + 1)
    return None if content is None or len(content) > MAX_REPORT_BYTES else content.decode("utf-8", "replace")


def _json(path: Path) -> Any:
    text = _read(path)
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None


def _reward(logs: Path) -> float | None:
    """The reward; None where none is written, or what is written is no finite number."""
    text = _read(logs / "reward.txt")
    data = _json(logs / "reward.json") if text is None else text
    if isinstance(data, dict):
        data = data.get("reward")
    if isinstance(data, bool) or not isinstance(data, (str, int, float)):
        return None
    try:
        reward = float(data)
    except (ValueError, OverflowError):
        return None
    return reward if math.isfinite(reward) else None


def _tests(logs: Path) -> list[TestResult]:
    """Per-test results from the CTRF report; a report of another shape counts as none."""
    match _json(logs / "ctrf.json"):
        case {"results": {"tests": list(tests)}}:
            return [result for test in tests if (result := _test(test))]
    return []


def _test(test: Any) -> TestResult | None:
    match test:
        case {"name": str(name), "status": str(status)} if status in STATUSES:
            message = test.get("message")
            return TestResult.model_validate(
                {
                    "name": _whole(name[:500]),
                    "status": STATUSES[status],
                    "message": _whole(message[:2000]) if isinstance(message, str) else None,
                }
            )
    return None


def _whole(text: str) -> str:
    """A text without halves of surrogate pairs, which JSON can say and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode("utf-8")
