"""What happened in a cell: model calls, tool calls, files, findings, tests; each bounded."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.site.cell.bounded import Some, Text, line, some, text
from scorers.evidence import Evidence, FileChange, ModelCall, TestResult, ToolCall, Verification

MAX_CALLS = 120
MAX_TOOLS = 120
MAX_CHANGES = 100
MAX_TESTS = 60
MAX_FINDINGS = 60
MAX_TAIL = 60
MAX_MESSAGE = 60
ARGUMENTS, RESULT, MESSAGE = 300, 200, 300
"""Characters that are shown of one."""

_ORIGINS = {"generated": "built or ignored", "cli_state": "the CLI's own"}


@dataclass(frozen=True)
class Call:
    """A model call. Times in seconds; a number is None where the wire did not state it."""

    index: int
    at: float
    took: float
    first: float | None
    waited: float
    input: int | None
    output: int | None
    cached: int | None
    request_hash: str
    end: str
    failed: bool
    notes: str


@dataclass(frozen=True)
class Tool:
    """A tool call: what was asked for and what came back. `took` is None where no answer came."""

    name: str
    at: float
    took: float | None
    asked: str
    answered: str | None


@dataclass(frozen=True)
class Change:
    path: str
    change: str
    lines: str | None
    whose: str


@dataclass(frozen=True)
class Found:
    severity: str
    rule: str
    where: str
    evidence: str


@dataclass(frozen=True)
class Test:
    __test__ = False  # pytest would otherwise try to collect it

    name: str
    status: str
    message: str


@dataclass(frozen=True)
class Verified:
    """How the hidden tests ended. `failed` are those that did not pass."""

    ended: str
    reward: float | None
    tests: int
    passed: int
    failed: Some[Test]
    tail: Text


def calls(found: Sequence[ModelCall]) -> Some[Call]:
    shown = some(found, MAX_CALLS)
    return Some([*map(_call, shown.head)], [*map(_call, shown.tail)], shown.left_out, shown.total)


def tools(found: Sequence[ToolCall]) -> Some[Tool]:
    shown = some(found, MAX_TOOLS)
    return Some([*map(_tool, shown.head)], [*map(_tool, shown.tail)], shown.left_out, shown.total)


def changes(found: Sequence[FileChange], blast: Mapping[str, Any]) -> Some[Change]:
    """The changed files. `blast` is the axis, which says what the ticket did not ask for."""
    unexpected = frozenset(map(str, blast.get("unexpected_changes") or ()))
    shown = some(found, MAX_CHANGES)
    head, tail = ([_change(one, unexpected) for one in part] for part in (shown.head, shown.tail))
    return Some(head, tail, shown.left_out, shown.total)


def findings(integrity: Mapping[str, Any]) -> Some[Found] | None:
    """What the rules found; None where none were applied."""
    items = integrity.get("findings")
    if items is None:
        return None
    shown = some(items, MAX_FINDINGS)
    head, tail = ([_finding(one) for one in part] for part in (shown.head, shown.tail))
    return Some(head, tail, shown.left_out, shown.total)


def verified(found: Verification | None) -> Verified | None:
    if found is None:
        return None
    failed = some([test for test in found.tests if test.status != "passed"], MAX_TESTS)
    head, tail = ([_test(one) for one in part] for part in (failed.head, failed.tail))
    return Verified(
        ended="stopped at its time limit" if found.timed_out else f"exit code {found.exit_code}",
        reward=found.reward,
        tests=len(found.tests),
        passed=len(found.tests) - failed.total,
        failed=Some(head, tail, failed.left_out, failed.total),
        tail=text(found.stdout_tail + found.stderr_tail, MAX_TAIL, end=True),
    )


def said(evidence: Evidence) -> Text:
    """The agent's final message."""
    return text(evidence.final_message.text, MAX_MESSAGE)


def refused(evidence: Evidence) -> Text:
    """What the model refused on the wire, which is no message and is read like one."""
    texts = dict.fromkeys(call.refusal for call in evidence.calls if call.main and call.refusal)
    return text("\n".join(one for one in texts if one), MAX_MESSAGE)


def other_models(found: Sequence[ModelCall]) -> list[tuple[str, int, bool]]:
    """The models beside the cell's that the CLI named: name, how many calls, whether they were refused."""
    asked: dict[tuple[str, bool], int] = defaultdict(int)
    for call in found:
        if call.other_model:
            asked[line(call.request_model or "no name", 120), call.error == "other_model"] += 1
    return [(name, amount, was_refused) for (name, was_refused), amount in asked.items()]


def _call(call: ModelCall) -> Call:
    usage = call.usage
    end = f"{call.error}: {call.error_detail}" if call.error and call.error_detail else call.error
    first = call.after_sent(call.first_byte if call.first_token is None else call.first_token)
    notes = [] if call.main else ["beside the task"]
    notes += [f"{call.attempts} attempts"] if call.attempts > 1 else []
    notes += [f"asked for {call.request_model}"] if call.other_model else []
    notes += [f"translated from {call.cli_wire}"] if call.cli_wire else []
    notes += [f"without {', '.join(call.dropped)}"] if call.dropped else []
    return Call(
        index=call.index,
        at=call.start,
        took=call.end - call.start,
        first=first,
        waited=sum(wait.end - wait.start for wait in call.waits),
        input=usage.input if usage else None,
        output=usage.output if usage else None,
        cached=usage.cached_read if usage else None,
        request_hash=line(call.request_hash, 12).partition("…")[0],
        end=line(end or call.finish_reason or "not stated", 120),
        failed=call.error is not None,
        notes=line("; ".join(notes), 200),
    )


def _tool(call: ToolCall) -> Tool:
    return Tool(
        name=line(call.name, 60),
        at=call.start,
        took=None if call.end is None else call.end - call.start,
        asked=_asked(call.arguments),
        answered=None if call.result is None else line(call.result.strip(), RESULT),
    )


def _asked(arguments: str) -> str:
    """The values of a call's arguments, named; what is no JSON object as it stands."""
    try:
        values = json.loads(arguments)
    except (ValueError, RecursionError):
        return line(arguments, ARGUMENTS)
    if not isinstance(values, dict):
        return line(arguments, ARGUMENTS)
    parts = (f"{name}: {it if isinstance(it, str) else json.dumps(it)}" for name, it in values.items())
    return line(" | ".join(parts), ARGUMENTS)


def _change(change: FileChange, unexpected: frozenset[str]) -> Change:
    counted = change.lines_added is not None and change.lines_removed is not None
    whose = _ORIGINS.get(change.origin) or (
        "the agent's, unexpected" if change.path in unexpected else "the agent's"
    )
    moved = f"{change.old_path} → {change.path}" if change.old_path else change.path
    lines = f"+{change.lines_added} −{change.lines_removed}" if counted else None
    return Change(line(moved, 200), change.change, lines, whose)


def _finding(item: Mapping[str, Any]) -> Found:
    path, at = item.get("path"), item.get("line")
    where = "" if not path else f"{path}:{at}" if at else str(path)
    return Found(
        severity=line(str(item.get("severity")), 20),
        rule=line(str(item.get("rule")).replace("_", " "), 80),
        where=line(where, 200),
        evidence=line(str(item.get("evidence") or ""), 300),
    )


def _test(test: TestResult) -> Test:
    return Test(line(test.name, 200), test.status, line((test.message or "").strip(), MESSAGE))
