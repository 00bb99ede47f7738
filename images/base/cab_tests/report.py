"""The report and the reward, written where the verifier reads them."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

from cab_tests.suite import Results

STATUSES = {"passed": "passed", "failed": "failed", "skipped": "skipped", "error": "other"}
"""Status of a result → CTRF's."""


def write(logs: Path, tool: str, results: Results, started: float) -> bool:
    """Write both files and say whether every test passed. No results at all: nothing could be run."""
    tests = [
        {"name": name, **result, "status": STATUSES[str(result["status"])]}
        for name, result in results.items()
    ]
    count = {status: sum(test["status"] == status for test in tests) for status in STATUSES.values()}
    times = {"start": round(started * 1000), "stop": round(time.time() * 1000)}
    summary = {"tests": len(tests), **count, "pending": 0, **times}
    body = {"tool": {"name": tool}, "summary": summary, "tests": tests}
    passed = bool(tests) and count["passed"] == len(tests)
    clear(logs)
    report = {"reportFormat": "CTRF", "specVersion": "0.0.0", "results": body}
    _write(logs / "ctrf.json", json.dumps(report, indent=1))
    _write(logs / "reward.txt", "1\n" if passed else "0\n")
    return passed


def clear(logs: Path) -> None:
    """Remove whatever has the name of a report."""
    for name in ("ctrf.json", "reward.txt", "reward.json"):
        path = logs / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    with path.open("x", encoding="utf-8") as file:  # "x" follows no link and overwrites nothing
        file.write(text)
