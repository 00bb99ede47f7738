"""Runs cab-tests over a small workdir."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).resolve().parents[3] / "images" / "base" / "cab_tests"


@dataclass
class Run:
    """What one run said and left; `tests` by their full name."""

    exit_code: int
    reward: str | None
    tests: dict[str, dict[str, Any]]
    stdout: str
    stderr: str

    @property
    def statuses(self) -> dict[str, str]:
        """By the last word of the test's name."""
        return {name.rpartition("_")[2]: test["status"] for name, test in self.tests.items()}


@pytest.fixture
def suite(tmp_path: Path) -> Callable[..., Run]:
    """Writes files into tests and workdir, and runs `cab-tests unittest` with the given options over them."""
    workdir, tests, logs = (tmp_path / name for name in ("workdir", "tests", "logs"))
    for directory in (workdir / "src", tests, logs):
        directory.mkdir(parents=True)
    (workdir / "src" / "__init__.py").touch()

    def run(*options: str, **files: str) -> Run:
        for name, text in files.items():
            place = tests if name in {"driver", "test_double"} else workdir / "src"
            (place / f"{name}.py").write_text(text.replace("LOGS", str(logs)))
        done = subprocess.run(
            [
                # The first descriptors are taken: the driver's own must not hide one that it should not get.
                *("sh", "-c", 'exec "$@" 3</dev/null 4</dev/null', "sh"),
                *(sys.executable, "-I", "-B", PROGRAM, "unittest"),
                *(f"--tests={tests}", f"--workdir={workdir}", f"--logs={logs}", *options),
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        reward, report = logs / "reward.txt", logs / "ctrf.json"
        return Run(
            done.returncode,
            reward.read_text().strip() if reward.is_file() else None,
            {test["name"]: test for test in json.loads(report.read_text())["results"]["tests"]}
            if report.is_file()
            else {},
            done.stdout,
            done.stderr,
        )

    return run
