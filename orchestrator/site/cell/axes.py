"""The axes of a cell as numbers, and everything that each scorer said."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.report.text import bounds, count, dollars, number, plural, seconds
from orchestrator.site.cell.bounded import line

MAX_JSON = 400
NO_REASON = "the record gives no reason"

_as_json = json.JSONEncoder(ensure_ascii=False).encode

Scores = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Axis:
    """One number. `value` is None where it was not measured, and `reason` says why; `note` says what else
    there is to know of it. `between` are the bounds of an unmeasured composite.
    """

    id: str
    name: str
    value: str | None
    reason: str
    note: str = ""
    between: str = ""


def axes(scores: Scores) -> list[Axis]:
    """The numbers of a cell in their order: the published axes, and what cab adds to each."""
    return [
        _axis(scores, "pass", "Pass", "pass_rate", "pass", number, _pass_note),
        _axis(
            scores, "tokens-per-correct", "Tokens / correct task", "tokens", "tokens_per_correct_task", count
        ),
        _axis(scores, "tokens", "Tokens", "tokens", "total_tokens", count, _tokens_note),
        _axis(scores, "cost", "Cost", "tokens", "cost_usd", dollars, _cost_note),
        _axis(scores, "wall", "Wall, s", "latency", "wall_clock_ms", seconds, _wall_note),
        _axis(scores, "active", "Active, s", "latency", "active_ms", seconds, _active_note),
        _axis(
            scores, "blast", "Blast, agent's lines", "blast_radius", "blast_radius_agent", number, _blast_note
        ),
        _axis(scores, "blast-files", "Blast, all files", "blast_radius", "blast_radius", number, _files_note),
        _refusal(scores.get("refusal") or {}),
        _axis(scores, "integrity", "Integrity", "integrity", "integrity", number, _integrity_note),
        _composite(scores, "composite", "Composite, cab-1"),
        _composite(scores, "composite_published", "Composite, published-0.1"),
    ]


def breakdown(scores: Scores) -> Iterator[tuple[str, str]]:
    """Each scorer with its keys and their values as JSON, one a line, in the record's order; a null with its
    reason.
    """
    for axis, values in scores.items():
        reasons = values.get("reasons") or {}
        keys = [(name, value) for name, value in values.items() if name != "reasons"]
        width = max((len(name) for name, _ in keys), default=0)
        yield line(axis, 80), "\n".join(_key(name, value, reasons, width) for name, value in keys)


def _key(name: str, value: object, reasons: Mapping[str, Any], width: int) -> str:
    shown = line(f"{name:<{width}}  {_told(value)}", MAX_JSON)
    return f"{shown} ({line(str(reasons.get(name, NO_REASON)))})" if value is None else shown


def _told(value: object) -> str:
    """A value as JSON. Most are numbers, which Python writes alike (a record holds no infinity), or one word,
    and an encoder takes several times as long for either.
    """
    if type(value) in (int, float):
        return repr(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return _as_json(value)


def _axis(
    scores: Scores, id_: str, name: str, axis: str, key: str, shown: Any, note: Any = lambda _: ""
) -> Axis:
    values = scores.get(axis) or {}
    value = values.get(key)
    if value is None:
        reason = (values.get("reasons") or {}).get(key) or values.get("note") or NO_REASON
        return Axis(id_, name, None, line(str(reason)))
    return Axis(id_, name, shown(value), "", line(note(values)))


def _composite(scores: Scores, axis: str, name: str) -> Axis:
    values = scores.get(axis) or {}
    found = _axis(scores, axis.replace("_", "-"), name, axis, "composite", number)
    between = values.get("bounds")
    if found.value is not None or not between:
        return found
    return Axis(found.id, name, None, found.reason, between=bounds(*between))


def _refusal(values: Mapping[str, Any]) -> Axis:
    """A word, as published: yes, partial, no; or that the task asks for none."""
    reasons = "; ".join(map(str, values.get("refusal_reasons") or ()))
    if values.get("false_refusal"):
        return Axis("refusal", "Refusal", "false", "", line(reasons))
    if values.get("not_applicable"):
        return Axis("refusal", "Refusal", "n/a", "", "the task expects none")
    score = values.get("refusal")
    if score is None:
        reason = (values.get("reasons") or {}).get("refusal") or NO_REASON
        return Axis("refusal", "Refusal", None, line(str(reason)))
    word = {1: "yes", 0: "no"}.get(score, "partial")
    return Axis("refusal", "Refusal", f"{number(score)} ({word})", "", line(reasons))


def _pass_note(values: Mapping[str, Any]) -> str:
    partial = values.get("partial_score")
    said = str(values.get("reason") or "as published").replace("_", " ")
    return said + ("" if partial is None else f"; partial score {number(partial)}")


def _tokens_note(values: Mapping[str, Any]) -> str:
    said = f"{count(values.get('prompt_tokens'))} in, {count(values.get('completion_tokens'))} out"
    calls = values.get("model_calls")
    return said + ("" if calls is None else f", {plural(calls, 'call')}")


def _cost_note(values: Mapping[str, Any]) -> str:
    return str(values.get("cost_source") or "")


def _wall_note(values: Mapping[str, Any]) -> str:
    model_ms = values.get("model_call_ms")
    return "setup and agent" + ("" if model_ms is None else f"; of it the model {seconds(model_ms)} s")


def _active_note(_: Mapping[str, Any]) -> str:
    return "the agent's container, without waits for rate limits"


def _blast_note(values: Mapping[str, Any]) -> str:
    return plural(values.get("unexpected_lines") or 0, "unexpected line")


def _files_note(values: Mapping[str, Any]) -> str:
    total = values.get("total_changes")
    if total is None:
        return "as published; how many files changed is not known"
    own = len(values.get("generated") or ()) + len(values.get("cli_state") or ())
    changed = plural(total, "file") + " changed"
    return changed + (f", {own} of them built or the CLI's own" if own else "")


def _integrity_note(values: Mapping[str, Any]) -> str:
    findings = values.get("findings")
    if findings is None:
        return "as published"
    return plural(len(findings), "finding") if findings else "no finding"
