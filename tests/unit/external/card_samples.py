"""Made-up scorecards, for the tests of what may be said of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.external.results import Claim, ClaimLevel, Scorecard, TaskResult, Verdict

CONDITIONS = ("transcript_replay", "compact_summary", "stateplane")
TOKENS = {"transcript_replay": 900, "compact_summary": 910, "stateplane": 1700}
MARKS = {"+": "resolved", "-": "unresolved", "e": "error", "0": "empty_patch", "?": "incomplete"}
"""A result as one character; a blank is one that nobody judged."""


def result(task: str, condition: str, run: int, mark: str, **given: Any) -> TaskResult:
    number = int(task.rpartition("-")[2])
    fields: dict[str, Any] = {
        "agent_outcome": "completed",
        "prompt_tokens": TOKENS[condition] + 10 * number,
        "context_tokens": 100,
        "patch_bytes": 1300 + 7 * number + len(condition),
        "patch_lines": 20 + number,
        "elapsed_s": 20.0 + number / 4,
        "verdict": None if mark == " " else Verdict.model_validate({"outcome": MARKS[mark]}),
    }
    return TaskResult(instance_id=task, condition=condition, run=run, **(fields | given))


def card(
    marks: Mapping[str, Sequence[str]],
    *,
    level: ClaimLevel = "harness_evaluated",
    partial: bool = False,
    **given: Any,
) -> Scorecard:
    """By condition, a text for each run: one mark for each of the tasks org__repo-1, org__repo-2, …"""
    results = [
        result(f"org__repo-{number}", condition, run, mark)
        for condition, runs in marks.items()
        for run, of in enumerate(runs, start=1)
        for number, mark in enumerate(of, start=1)
    ]
    fields: dict[str, Any] = {
        "run_id": "swebench-1",
        "benchmark": "swebench",
        "agent": "codex",
        "model": "vendor/one",
        "conditions": tuple(marks),
        "runs": max(map(len, marks.values())),
        "claim": Claim(level=level, partial=partial, reasons=("made up",)),
        "results": tuple(results),
    }
    return Scorecard(**(fields | given))
