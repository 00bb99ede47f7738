"""The axes of a published cell in the form of cab's own: what was printed; for the rest null with a reason.

Nothing is inferred. Where the published scorers wrote a number that they had not measured (0 tokens, 0 ms of
model calls, an integrity of 1 on a task without a trap) it is null, and the reason says what was printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.store.published import PublishedCell
from scorers.axis import Axis
from scorers.blast_radius import BlastRadius
from scorers.composite import (
    CAB_1,
    CAB_1_WEIGHTS,
    NOT_COUNTED,
    PUBLISHED,
    Composite,
    published_terms,
    uncounted,
)
from scorers.integrity import Integrity
from scorers.latency import Latency
from scorers.pass_rate import PassRate
from scorers.refusal import NOT_EXPECTED, Refusal
from scorers.tokens import Tokens

NOT_TOLD = "the published file does not tell it"
NOT_VISIBLE = "not visible where it was published"
_NOT_CAB_1 = "cab-1 is made of what cab measured itself; a published cell has no such axes"


def axes_of(cell: PublishedCell, *, counted: bool) -> dict[str, dict[str, Any]]:
    """All axes of a published cell, and its composites, by the keys of a record."""
    default = _object(
        Composite,
        {"formula": CAB_1, "weights": CAB_1_WEIGHTS, "components": {}, "note": _NOT_CAB_1},
        dict.fromkeys(("composite", "bounds"), _NOT_CAB_1 if counted else NOT_COUNTED),
    )
    published = recompute(cell) if counted else uncounted(PUBLISHED)
    return {
        "pass_rate": _pass_rate(cell),
        "tokens": _tokens(cell),
        "latency": _latency(cell),
        "blast_radius": _blast_radius(cell),
        "refusal": _refusal(cell),
        "integrity": _integrity(cell),
        "composite": default,
        "composite_published": published.model_dump(mode="json", by_alias=True),
    }


def recompute(cell: PublishedCell) -> Composite:
    """`published-0.1` of the axes as printed; null where one of its terms is not visible."""
    terms = {
        "pass": cell.passed,
        "integrity": cell.integrity,
        "blast_radius": cell.blast_radius,
        "wall_clock_ms": cell.wall_clock_ms,
        "expected_refusal": cell.expected_refusal,
        # Where none is expected, whether one was produced is no part of the formula.
        "refusal_produced": cell.refusal_produced if cell.expected_refusal else False,
    }
    return published_terms(
        passed=cell.passed,
        integrity=cell.integrity,
        blast_radius=cell.blast_radius,
        wall_clock_ms=cell.wall_clock_ms,
        expected_refusal=cell.expected_refusal,
        refusal_produced=cell.refusal_produced,
        tokens_per_correct_task=None,
        missing={name: NOT_VISIBLE for name, value in terms.items() if value is None},
    )


def _object(kind: type[Axis], told: Mapping[str, Any], why: Mapping[str, str]) -> dict[str, Any]:
    """An axis with each of its keys. One that was not told is null; its reason is that of `why`, if any."""
    names = [field.serialization_alias or name for name, field in kind.model_fields.items()]
    names.remove("reasons")
    assert told.keys() <= set(names), told.keys() - set(names)
    values = {name: told.get(name) for name in names}
    nulls = [name for name, value in values.items() if value is None]
    default = {name: NOT_VISIBLE if name in told else NOT_TOLD for name in nulls}
    return {**values, "reasons": {name: why.get(name, default[name]) for name in nulls}}


def _pass_rate(cell: PublishedCell) -> dict[str, Any]:
    told = {
        "pass": cell.passed,
        "exit_code": cell.grader_exit_code,
        "timed_out": cell.grader_timed_out,
        "partial_score": cell.partial_score,
    }
    return _object(PassRate, told, {"pass_raw": "the published rules void no cell"})


def _tokens(cell: PublishedCell) -> dict[str, Any]:
    """Tokens as the published scorer counted them. One that saw no call and no token measured nothing."""
    scored = cell.scorer_tokens
    used = {} if scored is None else scored.model_dump()
    divided = used.pop("pass_used_for_division", None)
    if any(used.values()):
        return _object(Tokens, {**used, "pass_used_for_division": divided}, {})
    page = "its page says they were not recorded"
    if cell.page_prompt_tokens is not None or cell.page_completion_tokens is not None:
        sums = f"{cell.page_prompt_tokens} and {cell.page_completion_tokens}"
        page = f"its page prints {sums} from {cell.page_token_source}, which is the CLI's own word"
    elif cell.page_token_source != "not recorded":
        page = "its page tells no number"
    scorer = "the published scorer saw neither a call nor a token and wrote 0" if used else NOT_VISIBLE
    names = ("prompt_tokens", "completion_tokens", "total_tokens", "model_calls", "tokens_per_correct_task")
    return _object(Tokens, {"pass_used_for_division": divided}, dict.fromkeys(names, f"{scorer}; {page}"))


def _latency(cell: PublishedCell) -> dict[str, Any]:
    told = {"wall_clock_ms": cell.wall_clock_ms, "container_active_ms": cell.container_active_ms}
    why = {}
    if cell.model_call_ms == 0:
        why["model_call_ms"] = "published as 0, which says that no model call was timed"
    else:
        told["model_call_ms"] = cell.model_call_ms
    return _object(Latency, told, why)


def _blast_radius(cell: PublishedCell) -> dict[str, Any]:
    told = {
        name: getattr(cell, name)
        for name in ("blast_radius", "added", "removed", "modified", "total_changes", "extra_git_dir")
    }
    counts = {
        "unexpected_changes": cell.unexpected_changes_count,
        "expected_changes": cell.expected_changes_count,
    }
    why = {
        name: f"only their number is published: {count}"
        for name, count in counts.items()
        if count is not None
    }
    return _object(BlastRadius, told, why)


def _refusal(cell: PublishedCell) -> dict[str, Any]:
    """The published verdict. An ordinary task is published with a 0 that means nothing."""
    expected = cell.expected_refusal
    told: dict[str, Any] = {
        "not_applicable": None if expected is None else not expected,
        "expected_refusal": expected,
        "refusal_produced": cell.refusal_produced,
        "fabricated_fix_detected": cell.fabricated_fix_detected,
        "refusal_correct": cell.refusal_correct,
        "refusal_reasons": cell.refusal_reasons_note,
        "keyword_hits": cell.keyword_hits,
    }
    if expected:
        return _object(Refusal, {**told, "refusal": cell.refusal_score}, {})
    names = ("refusal", "refusal_correct", "fabricated_fix_detected")
    return _object(Refusal, told, dict.fromkeys(names, NOT_EXPECTED) if expected is False else {})


def _integrity(cell: PublishedCell) -> dict[str, Any]:
    told: dict[str, Any] = {"not_applicable": cell.integrity_not_applicable, "task_id": cell.task}
    why = {"void": "the published rules void no cell"}
    if cell.integrity_not_applicable:
        why["integrity"] = "published as not applicable to this task, with a value that measures nothing"
    else:
        told["integrity"] = cell.integrity
    return _object(Integrity, told, why)
