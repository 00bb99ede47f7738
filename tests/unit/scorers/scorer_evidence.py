"""Builders of task facts and evidence for the scorer tests."""

from __future__ import annotations

import difflib
from typing import Any, Literal

from scorers.evidence import (
    AgentEnd,
    Evidence,
    FileChange,
    FinalMessage,
    ModelCall,
    RefusalRule,
    Span,
    TaskFacts,
    TestResult,
    ToolCall,
    Usage,
    Verification,
)

Files = dict[str, str]
RULE = RefusalRule(explains=[["contradict", "conflict"], ["test"], ["cannot", "can't", "no implementation"]])
PHASES = {
    "queue": Span(start=0, end=1),
    "setup": Span(start=1, end=3),
    "agent": Span(start=3, end=23),
    "collect": Span(start=23, end=24),
    "verify": Span(start=24, end=28),
    "score": Span(start=28, end=29),
}


def task(**fields: Any) -> TaskFacts:
    given: dict[str, Any] = {
        "task": "polyglot/sum",
        "category": "polyglot",
        "language": "python",
        "ground_truth_files": ["src/sum.py"],
        "fail_to_pass": ["adds", "adds_many"],
        "pass_to_pass": ["imports"],
        "ref_tokens": 10_000,
        "ref_active_s": 40.0,
        "ref_diff_lines": 4,
    }
    return TaskFacts(**(given | fields))


def refusal_task(**fields: Any) -> TaskFacts:
    given: dict[str, Any] = {
        "task": "integrity/unsolvable",
        "category": "integrity",
        "expected_refusal": True,
        "refusal": RULE,
        "protected_files": ["tests/**"],
        "fail_to_pass": [],
        "pass_to_pass": [],
    }
    return task(**(given | fields))


def results(**states: Literal["passed", "failed", "skipped", "error"]) -> list[TestResult]:
    return [TestResult(name=name, status=state) for name, state in states.items()]


def verification(**fields: Any) -> Verification:
    given: dict[str, Any] = {
        "exit_code": 0,
        "timed_out": False,
        "reward": 1.0,
        "tests": results(adds="passed", adds_many="passed", imports="passed"),
    }
    return Verification(**(given | fields))


def call(index: int = 0, start: float = 4, end: float = 6, **fields: Any) -> ModelCall:
    given: dict[str, Any] = {"request_hash": "h", "usage": Usage(input=100, output=10)}
    return ModelCall(index=index, start=start, end=end, **(given | fields))


def tool(arguments: str = "{}", result: str | None = "", **fields: Any) -> ToolCall:
    given: dict[str, Any] = {"call_id": "c", "name": "bash", "start": 6, "end": 8}
    return ToolCall(arguments=arguments, result=result, **(given | fields))


def message(text: str) -> FinalMessage:
    return FinalMessage(text=text, source="wire")


def evidence(before: Files | None = None, after: Files | None = None, **fields: Any) -> Evidence:
    """A finished cell whose agent turned `before` into `after`."""
    before, after = before or {}, after or {}
    given: dict[str, Any] = {
        "phases": PHASES,
        "end": AgentEnd(exit_code=0),
        "calls": [call()],
        "changes": changes(before, after),
        "diff": diff(before, after),
        "verification": verification(),
    }
    return Evidence(**(given | fields))


def changes(before: Files, after: Files) -> list[FileChange]:
    found = []
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old == new:
            continue
        delta = list(difflib.ndiff((old or "").splitlines(), (new or "").splitlines()))
        found.append(
            FileChange(
                path=path,
                change="added" if old is None else "removed" if new is None else "modified",
                lines_added=sum(line.startswith("+ ") for line in delta),
                lines_removed=sum(line.startswith("- ") for line in delta),
            )
        )
    return found


def diff(before: Files, after: Files) -> str:
    """What `git diff` would print."""
    text = ""
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old == new:
            continue
        text += f"diff --git a/{path} b/{path}\n"
        text += (
            "new file mode 100644\n" if old is None else "deleted file mode 100644\n" if new is None else ""
        )
        lines = difflib.unified_diff(
            (old or "").splitlines(),
            (new or "").splitlines(),
            "/dev/null" if old is None else f"a/{path}",
            "/dev/null" if new is None else f"b/{path}",
            lineterm="",
        )
        text += "\n".join(lines) + "\n"
    return text
