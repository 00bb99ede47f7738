"""What may differ between two runs of the same cell without meaning anything: the one place that says so.

A request is compared after this, and shown after it where it differs. Each rule names what it puts in the
place of what it hides, so that a shown request tells which rule was at work. What is hidden can at worst let
a request pass that differs in a time or an id alone; a different outcome still shows in the diff and scores.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.adapter import Wire

IGNORED_MEMBERS: Mapping[Wire, frozenset[str]] = {
    "chat": frozenset(("user", "safety_identifier", "prompt_cache_key", "metadata")),
    "responses": frozenset(
        ("user", "safety_identifier", "prompt_cache_key", "metadata", "previous_response_id")
    ),
    "messages": frozenset(("metadata",)),
    "gemini": frozenset(("labels",)),
}
"""Members of the request itself that name a user or a session, or steer a cache: no model reads them."""

ID_MEMBERS: Mapping[Wire, frozenset[str]] = {
    "chat": frozenset(("id", "tool_call_id")),
    "responses": frozenset(("id", "call_id")),
    "messages": frozenset(("id", "tool_use_id")),
    "gemini": frozenset(("id",)),
}
"""Members, wherever they stand but in ARGUMENTS, whose text is an id: told apart by the order in which they
appear.
"""

ARGUMENTS = frozenset(("input", "args"))
"""Members that, as objects, are a tool call's arguments: an `id` in them is the model's own word."""

_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_CLOCK = r"[0-2]?\d:[0-5]\d(?::[0-5]\d(?:[.,]\d+)?)?"
_ZONE = r"(?: ?(?:Z|GMT|UTC|[+-]\d\d:?\d\d)\b)?"
_DATE = rf"(?:{_DAY},? )?(?:\d{{1,2}} {_MONTH}|{_MONTH} {{1,2}}\d{{1,2}})"


@dataclass(frozen=True)
class Rule:
    """What is hidden in every text of a request, and what is shown in its place."""

    what: str
    pattern: re.Pattern[str]
    shown: str


TEXT_RULES = (
    Rule(
        "a UUID",
        re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE),
        "‹uuid›",
    ),
    Rule(
        "an id with its kind before it, as ses_…, msg_…, tool_…",
        re.compile(r"\b(ses|msg|prt|tool|call|req)_[A-Za-z0-9]{16,}\b"),
        r"\1_‹id›",
    ),
    Rule(
        "a date, with its time of day or without: 2026-11-28T05:07:33Z, 2026-11-28",
        re.compile(rf"\b\d{{4}}-\d\d-\d\d(?:[T ]{_CLOCK}{_ZONE})?"),
        "‹date›",
    ),
    Rule(
        "a date in words: Sat Nov 28 2026, Sat, 28 Nov 2026 05:07:33 GMT, Nov 28 05:07",
        re.compile(rf"\b{_DATE}(?:(?:,? {_CLOCK}{_ZONE})?,? \d{{4}}\b(?:,? {_CLOCK})?|,? {_CLOCK}){_ZONE}"),
        "‹date›",
    ),
    Rule("a time of day with seconds", re.compile(r"\b[0-2]\d:[0-5]\d:[0-5]\d(?:[.,]\d+)?\b"), "‹time›"),
    Rule(
        "seconds or milliseconds since 1970",
        re.compile(r"(?<![\w.])1[6-9]\d{8}(?:\d{3})?(?:\.\d+)?(?![\w.]*\d)"),
        "‹epoch›",
    ),
    Rule(
        "how long something took: 0.001s, 12 ms, 0m1.234s, duration_ms 53.2",
        re.compile(
            r"\b(?:\d+m)?\d+\.\d+ ?(?:s|secs?|seconds?)\b|\b\d+(?:\.\d+)? ?(?:ms|µs|us|ns|milliseconds?)\b"
            r"|(?<=duration_ms)[ :]+\d+(?:\.\d+)?"
        ),
        "‹duration›",
    ),
    Rule(
        "a temporary file or directory",
        re.compile(r"/tmp/(?:tmp[\w.]{6,}|[\w.-]*\d{5,}[\w-]*)"),
        "‹temporary path›",
    ),
    Rule(
        "codex's id of a piece of output",
        re.compile(r"^Chunk ID: [0-9a-f]+$", re.MULTILINE),
        "Chunk ID: ‹id›",
    ),
    Rule("an address in memory", re.compile(r"\b0x[0-9a-f]{6,16}\b", re.IGNORECASE), "‹address›"),
    Rule("a process id", re.compile(r"\b(pid|process)([ =:]+)\d+\b", re.IGNORECASE), r"\1\2‹pid›"),
    Rule("a port of this host", re.compile(r"\b(127\.0\.0\.1|localhost):\d{4,5}\b"), r"\1:‹port›"),
    Rule(
        "a commit, whose hash holds its time: commit 1f2e3d…, [main 1f2e3d4]",
        re.compile(r"\b(commit )[0-9a-f]{7,40}\b|(?<=\[)(\S+ (?:\(root-commit\) )?)[0-9a-f]{7,12}(?=\])"),
        r"\1\2‹commit›",
    ),
)


def normalise(wire: Wire, request: Mapping[str, Any]) -> dict[str, Any]:
    """A request without what may differ. The cell's credential was taken out of it before, as out of a
    record.
    """
    ids: dict[str, str] = {}
    kept = {name: value for name, value in request.items() if name not in IGNORED_MEMBERS[wire]}
    return {name: _walk(value, ID_MEMBERS[wire], ids) for name, value in kept.items()}


def normalise_value(value: Any) -> Any:
    """Any JSON value with its texts less what may differ."""
    return _walk(value, frozenset(), {})


def normalise_text(text: str) -> str:
    """A text without what may differ."""
    for rule in TEXT_RULES:
        text = rule.pattern.sub(rule.shown, text)
    return text


def _walk(value: Any, id_members: frozenset[str], ids: dict[str, str]) -> Any:
    if isinstance(value, str):
        return normalise_text(value)
    if isinstance(value, list):
        return [_walk(entry, id_members, ids) for entry in value]
    if isinstance(value, dict):
        return {
            name: ids.setdefault(inner, f"‹id {len(ids) + 1}›")
            if name in id_members and isinstance(inner, str)
            else _walk(inner, _ids_within(name, inner, id_members), ids)
            for name, inner in value.items()
        }
    return value


def _ids_within(name: str, inner: Any, id_members: frozenset[str]) -> frozenset[str]:
    """The members that are ids within a member."""
    return frozenset() if name in ARGUMENTS and isinstance(inner, dict) else id_members
