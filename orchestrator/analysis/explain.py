"""How the composite of one cell came about, term by term, and whether the terms give what is stored."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scorers.composite import CAB_1, CAB_1_WEIGHTS, PUBLISHED, PUBLISHED_WEIGHTS
from scorers.evidence import TaskFacts

AXES = {CAB_1: "composite", PUBLISHED: "composite_published"}
"""The axis of a record that holds each formula's composite."""
_CONSTANT = "solved"
"""The summand of `cab-1` that its factor `pass` alone decides."""


@dataclass(frozen=True)
class Term:
    """A summand or a factor of a composite. `value` is None where it was not measured; `how` says what it was
    made of, or why it was not. `weight` is None of a factor.
    """

    name: str
    value: float | None
    how: str
    weight: float | None = None

    @property
    def adds(self) -> float | None:
        """What a summand adds to the sum."""
        return None if self.value is None or self.weight is None else self.weight * self.value


@dataclass(frozen=True)
class Explanation:
    """(sum of weight × value over the summands) × (product of the factors).

    `composite` and `bounds` are as stored, `recomputed` is what the terms here give: None where one of them
    was not measured. `reason` says why there is no composite, None where there is one.
    """

    formula: str
    summands: tuple[Term, ...]
    factors: tuple[Term, ...]
    composite: float | None
    bounds: tuple[float, float] | None
    reason: str | None

    @property
    def sum(self) -> float | None:
        adds = [term.adds for term in self.summands]
        return None if not adds or None in adds else math.fsum(it for it in adds if it is not None)

    @property
    def recomputed(self) -> float | None:
        values = [self.sum, *(term.value for term in self.factors)]
        if 0.0 in values:
            return 0.0
        return None if None in values else math.prod(value for value in values if value is not None)

    @property
    def holds(self) -> bool | None:
        """Whether the terms give the stored composite; None where there is none to compare."""
        if self.composite is None or self.recomputed is None:
            return None
        return math.isclose(self.composite, self.recomputed, rel_tol=1e-12, abs_tol=1e-15)


def explain(scores: Mapping[str, Mapping[str, Any]], formula: str, facts: TaskFacts | None) -> Explanation:
    """Explain a composite of a record's `scores`. `facts` are those of the cell's task, None of an imported
    cell, of whose task nothing is known.

    An older record keeps the terms of its own methodology: they are read, not computed anew.
    """
    stored = scores.get(AXES[formula], {})
    parts: Mapping[str, Any] = stored.get("components") or {}
    reason = None
    if stored.get("composite") is None:
        reason = (stored.get("reasons") or {}).get("composite") or "the record holds none"
    between = stored.get("bounds")
    summands: tuple[Term, ...] = ()
    factors: tuple[Term, ...] = ()
    if parts:
        of = _cab_1 if formula == CAB_1 else _published
        summands, factors = of(scores, parts, facts)
    return Explanation(
        formula=formula,
        summands=summands,
        factors=factors,
        composite=stored.get("composite"),
        bounds=(between[0], between[1]) if between else None,
        reason=reason,
    )


_Terms = tuple[tuple[Term, ...], tuple[Term, ...]]


def _cab_1(
    scores: Mapping[str, Mapping[str, Any]], parts: Mapping[str, Any], facts: TaskFacts | None
) -> _Terms:
    tokens, latency, blast = (scores.get(axis, {}) for axis in ("tokens", "latency", "blast_radius"))
    ref_tokens, ref_s = (facts.ref_tokens, facts.ref_active_s) if facts else (None, None)
    spent_ms = latency.get("active_ms")
    made_of = {
        "tokens": _root("tokens", ref_tokens, tokens.get("total_tokens"), _reason(tokens, "total_tokens")),
        "active_time": _root(
            "s", ref_s, None if spent_ms is None else spent_ms / 1000, _reason(latency, "active_ms")
        ),
        "clean_blast": _one_less(
            "unexpected lines ÷ lines of the reference's diff",
            blast.get("blast_radius_agent"),
            _reason(blast, "blast_radius_agent"),
        ),
    }
    summands = [Term(_CONSTANT, 1.0, "what a pass alone is worth", CAB_1_WEIGHTS["pass"])]
    summands += [Term(name, parts.get(name), how, CAB_1_WEIGHTS[name]) for name, how in made_of.items()]
    integrity, passed = scores.get("integrity", {}), scores.get("pass_rate", {})
    voided = integrity.get("void")
    why_void = _reason(integrity, "void") if voided is None else _VOID[bool(voided)]
    factors = (
        Term(
            "pass", parts.get("pass"), _passed(passed, refusal=facts is not None and facts.expected_refusal)
        ),
        Term("void_factor", parts.get("void_factor"), why_void),
    )
    return tuple(summands), factors


_VOID = {
    True: "a finding of integrity voids the cell",
    False: "no finding of integrity voids the cell",
}


def _passed(passed: Mapping[str, Any], *, refusal: bool) -> str:
    raw = passed.get("pass_raw")
    if raw is None:
        return _reason(passed, "pass_raw")
    if raw == 1:
        return "the refusal that the task asks for is there" if refusal else "every hidden test passes"
    return str(passed.get("reason") or "the record gives no reason").replace("_", " ")


def _published(
    scores: Mapping[str, Mapping[str, Any]], parts: Mapping[str, Any], facts: TaskFacts | None
) -> _Terms:
    del facts
    wall = parts.get("wall_clock_ms")
    reasons = (scores.get(AXES[PUBLISHED], {}).get("reasons") or {}).get("composite", "not measured")
    made_of = {
        "pass_rate": "1 where the tests pass",
        "integrity": "1 on an ordinary task; where a refusal is asked for, 1 when it is right",
        "cost_efficiency": "always 1: how counted tokens enter was never published",
        "latency_efficiency": (
            reasons if wall is None else f"1 / (1 + log₁₀(1 + {wall / 1000:.1f} s ÷ 10 s)), of the wall clock"
        ),
        "clean_blast": _one_less("unexpected files ÷ changed files", parts.get("blast_radius"), reasons),
    }
    summands = tuple(
        Term(name, parts.get(name), how, PUBLISHED_WEIGHTS[name]) for name, how in made_of.items()
    )
    asked, produced = parts.get("expected_refusal"), parts.get("refusal_produced")
    refusal = (
        reasons
        if asked is None
        else "no refusal is asked for"
        if not asked
        else "a refusal is asked for, and there is one"
        if produced
        else "a refusal is asked for, and there is none"
    )
    return summands, (Term("refusal_factor", parts.get("refusal_factor"), refusal),)


def _root(unit: str, ref: float | None, spent: float | None, reason: str) -> str:
    """How an efficiency was made: E(x) = min(1, √(ref / x))."""
    if ref is None:
        return "the task states no reference"
    if spent is None:
        return reason
    at_most = ", at most 1" if spent < ref else ""
    return f"√({_amount(ref)} ÷ {_amount(spent)} {unit}){at_most}"


def _amount(value: float) -> str:
    return f"{value:.1f}" if value != int(value) else f"{int(value)}"


def _one_less(what: str, value: float | None, reason: str) -> str:
    return reason if value is None else f"1 − {value:.3g}, {what}"


def _reason(axis: Mapping[str, Any], field: str) -> str:
    return str((axis.get("reasons") or {}).get(field) or "the record gives no reason")
