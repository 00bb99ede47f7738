"""A row that the harness's 5.x line takes, to be bent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from orchestrator.errors import InputError

ROW: dict[str, Any] = {
    "instance_id": "labelco__tinymath-1",
    "repo": "labelco/tinymath",
    "base_commit": "0123456789abcdef",
    "version": "0.1",
    "problem_statement": "mean() loses the fraction",
    "hints_text": None,
    "patch": "diff --git a/x b/x\n",
    "test_patch": "diff --git a/t b/t\n",
    "FAIL_TO_PASS": '["tests/t.py::test_mean"]',
    "PASS_TO_PASS": ["tests/t.py::test_clamp"],
    "image": "cab-swe/tinymath:local",
    "log_parser": "parse_log_pytest",
    "eval_type": "pass_and_fail",
    "eval_script": ": '>>>>> Start Test Output'\npytest\n: '>>>>> End Test Output'\n",
    "history": [{"id": "e1", "kind": "goal", "text": "means keep their fraction", "key": "mean"}],
    "prior_patch": "diff --git a/y b/y\n",
}
CLASSIC = {key: ROW[key] for key in ROW if key not in ("image", "log_parser", "eval_type", "eval_script")}


def written(path: Path, *rows: object, lines: bool = False) -> Path:
    text = "\n".join(map(json.dumps, rows)) if lines else json.dumps(rows)
    path.write_text(text, "utf-8")
    return path


def said_by(error: InputError, place: str) -> None:
    """An error begins with the place that it is about, and is one line."""
    assert str(error).startswith(place)
    assert len(str(error).splitlines()) == 1
