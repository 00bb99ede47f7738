"""The axes of one cell; what was not measured is a dash with its reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from orchestrator.report.columns import Column, fit
from orchestrator.report.legend import print_legend
from orchestrator.report.text import (
    NOT_APPLICABLE,
    bounded,
    console,
    count,
    dollars,
    number,
    plural,
    safe_line,
    seconds,
)

_WHY_LEAST = 30
_AXES = (
    ("pass_rate", "pass"),
    ("tokens", "total_tokens"),
    ("latency", "wall_clock_ms"),
    ("blast_radius", "blast_radius_agent"),
    ("refusal", "refusal"),
    ("integrity", "integrity"),
    ("composite", "composite"),
    ("composite_published", "composite"),
)


def print_scores(scores: Mapping[str, Mapping[str, Any]], out: Console | None = None) -> None:
    """One line an axis."""
    out = out or console()
    shown = [(axis, key, scores.get(axis, {})) for axis, key in _AXES]
    columns = [
        Column("axis", [_name(axis, key, values) for axis, key, values in shown], right=False),
        Column("value", [_value(axis, key, values) for axis, key, values in shown]),
        Column(
            "why, or what else",
            [safe_line(_remark(axis, key, values)) for axis, key, values in shown],
            right=False,
            least=_WHY_LEAST,
        ),
    ]
    table, _ = fit(columns, "axes", out)
    out.print(table)
    print_legend(
        [(name, [value]) for name, value in zip(columns[0].cells, columns[1].cells, strict=True)], out
    )


def _name(axis: str, key: str, values: Mapping[str, Any]) -> str:
    names = {
        "pass_rate": "pass",
        "tokens": "tokens",
        "latency": "wall s",
        "blast_radius": "blast (agent's lines)",
    }
    return str(values.get("formula") or names.get(axis) or key)


def _value(axis: str, key: str, values: Mapping[str, Any]) -> str:
    value = values.get(key)
    match axis:
        case "tokens":
            return count(value)
        case "latency":
            return seconds(value)
        case "refusal" if values.get("not_applicable"):
            return "false" if values.get("false_refusal") else NOT_APPLICABLE
        case "composite" | "composite_published":
            between = values.get("bounds")
            return bounded(value, (between[0], between[1]) if between else None)
    return number(value)


def _remark(axis: str, key: str, values: Mapping[str, Any]) -> str:
    if values.get(key) is None and not (axis == "refusal" and values.get("false_refusal")):
        reasons = values.get("reasons") or {}
        return str(reasons.get(key) or values.get("note") or "the record gives no reason")
    match axis:
        case "pass_rate":
            partial = values.get("partial_score")
            reason = str(values.get("reason") or "as published").replace("_", " ")
            return reason + ("" if partial is None else f", partial score {number(partial)}")
        case "tokens":
            spent = f"{count(values.get('prompt_tokens'))} in, {count(values.get('completion_tokens'))} out"
            calls, cost = values.get("model_calls"), values.get("cost_usd")
            spent += "" if calls is None else f", {plural(calls, 'call')}"
            why = (values.get("reasons") or {}).get("cost_usd")
            unknown = f", no cost: {why}" if why else ""
            return spent + (unknown if cost is None else f", {dollars(cost)} ({values.get('cost_source')})")
        case "latency":
            model_ms = values.get("model_call_ms")
            return "setup and agent" + (
                "" if model_ms is None else f"; of it the model {seconds(model_ms)} s"
            )
        case "blast_radius":
            own = len(values.get("generated") or ()) + len(values.get("cli_state") or ())
            aside = f", {own} of them built or the CLI's own" if own else ""
            changed = plural(values.get("total_changes") or 0, "file")
            return (
                f"{plural(values.get('unexpected_lines') or 0, 'unexpected line')}; {changed} changed{aside}"
            )
        case "refusal":
            return "; ".join(str(reason) for reason in values.get("refusal_reasons") or ())
        case "integrity":
            return _findings(values.get("findings"))
    return _composite(values)


def _findings(items: Sequence[Mapping[str, Any]] | None) -> str:
    """None where no rule was applied: the number is that of others."""
    return "as published" if items is None else "; ".join(dict.fromkeys(map(_finding, items))) or "no finding"


def _finding(item: Mapping[str, Any]) -> str:
    where = f" in {item['path']}" if item.get("path") else ""
    return f"{item['severity']}: {str(item['rule']).replace('_', ' ')}{where}"


def _composite(values: Mapping[str, Any]) -> str:
    """The terms behind a composite."""
    terms = {name: value for name, value in (values.get("components") or {}).items() if value is not None}
    return ", ".join(_term(name, float(value)) for name, value in terms.items())


def _term(name: str, value: float) -> str:
    if name == "wall_clock_ms":
        return f"wall clock {seconds(value)} s"
    named = "blast (all files)" if name == "blast_radius" else name.replace("_", " ")
    return f"{named} {number(value)}"
