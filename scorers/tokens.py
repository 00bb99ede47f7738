"""Tokens: what the cell cost, counted on the wire by the gateway and never taken from a CLI's own report.

A call that failed before the model answered consumed nothing and is not counted. Every other call must have
stated its usage; where one did not, the sums are null and `known` holds what is certain: a lower bound.
"""

from __future__ import annotations

from math import fsum
from typing import Any, Literal

from scorers.axis import Axis
from scorers.evidence import LIMIT_ERRORS, OTHER_MODEL, CliUsage, Evidence, Model, ModelCall
from scorers.price import cost_usd

ANSWERED_THEN_FAILED = {"stream_cut", "client_gone"}
REFUSED_BY_CAB = {*LIMIT_ERRORS, OTHER_MODEL, "unauthorised"}


class TokenSums(Model):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0


class CrossCheck(CliUsage):
    """The CLI's own totals beside those of the wire for the same calls; `agrees` within the CLI's rounding.
    The wire's are None, and so is `agrees`, where a call stated no usage.
    """

    wire_input: int | None
    wire_output: int | None
    agrees: bool | None


class Tokens(Axis):
    """Normalised sums over the counted calls. `prompt_tokens` includes cache reads and writes,
    `completion_tokens` includes reasoning. `usage_raw` holds what the upstream stated, call by call.
    `cost_usd` is what the counted calls cost at the price that `cost_source` names.

    `cli` is a cross-check that no number is taken from: the CLI's own totals of its main thread.

    `model_calls` counts the calls sent upstream, `calls_failed` those of them that ended in an error.
    """

    prompt_tokens: int | None
    completion_tokens: int | None
    total_tokens: int | None
    model_calls: int | None
    calls_failed: int | None
    calls_without_usage: int | None
    tokens_per_correct_task: int | None
    pass_used_for_division: Literal[0, 1] | None
    cached_read: int | None
    cache_write: int | None
    reasoning: int | None
    known: TokenSums | None
    usage_raw: list[dict[str, Any] | None] | None
    source: Literal["wire"] | None
    cost_usd: float | None = None
    cost_source: str | None = None
    cli: CrossCheck | None = None


def score(evidence: Evidence, passed: Literal[0, 1] | None) -> Tokens:
    """Sum the usage of the calls. No calls on a recorded wire is a measurement: 0 tokens."""
    reasons: dict[str, str] = {}
    if passed is None:
        reasons["pass_used_for_division"] = "pass was not measured"
    if not evidence.wire_recorded:
        return _unrecorded(passed, reasons)
    sent = [call for call in evidence.calls if call.error not in REFUSED_BY_CAB]
    counted = [call for call in sent if consumes(call)]
    missing = sum(call.usage is None for call in counted)
    known = _known(counted)
    if missing:
        why = f"{missing} of {len(counted)} counted calls stated no usage"
        reasons |= dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"), why)
    total = None if missing else known.total_tokens
    cost, cost_source = _cost(evidence, counted, reasons)
    if passed != 1:
        reasons["tokens_per_correct_task"] = reasons.get("pass_used_for_division", "the cell did not pass")
    elif total is None:
        reasons["tokens_per_correct_task"] = reasons["total_tokens"]
    return Tokens(
        prompt_tokens=None if missing else known.prompt_tokens,
        completion_tokens=None if missing else known.completion_tokens,
        total_tokens=total,
        model_calls=len(sent),
        calls_failed=sum(call.error is not None for call in sent),
        calls_without_usage=missing,
        tokens_per_correct_task=total if passed == 1 else None,
        pass_used_for_division=passed,
        cached_read=_detail(counted, "cached_read", reasons),
        cache_write=_detail(counted, "cache_write", reasons),
        reasoning=_detail(counted, "reasoning", reasons),
        known=known,
        usage_raw=[call.usage_raw for call in counted],
        source="wire",
        cost_usd=cost,
        cost_source=cost_source,
        cli=_cross_check(evidence, counted, reasons),
        reasons=reasons,
    )


def _cross_check(evidence: Evidence, counted: list[ModelCall], reasons: dict[str, str]) -> CrossCheck | None:
    said = evidence.cli_usage
    if said is None:
        reasons["cli"] = evidence.no_cli_usage or "what the CLI itself states was not read"
        return None
    main = [call for call in counted if call.main]
    if any(call.usage is None for call in main):
        return CrossCheck(**said.model_dump(), wire_input=None, wire_output=None, agrees=None)
    wire = _known(main)
    return CrossCheck(
        **said.model_dump(),
        wire_input=wire.prompt_tokens,
        wire_output=wire.completion_tokens,
        agrees=abs(said.input - wire.prompt_tokens) <= said.input_margin
        and abs(said.output - wire.completion_tokens) <= said.output_margin,
    )


def consumes(call: ModelCall) -> bool:
    """Whether a call consumed tokens, stated or not: the model answered."""
    return call.error is None or call.error in ANSWERED_THEN_FAILED or call.usage is not None


def _known(calls: list[ModelCall]) -> TokenSums:
    stated = [call.usage for call in calls if call.usage is not None]
    prompt = sum(usage.input for usage in stated)
    completion = sum(usage.output for usage in stated)
    return TokenSums(prompt_tokens=prompt, completion_tokens=completion, total_tokens=prompt + completion)


def _cost(
    evidence: Evidence, counted: list[ModelCall], reasons: dict[str, str]
) -> tuple[float | None, str | None]:
    """USD and the source of the price; null with a reason where a price or a call's usage is missing."""
    stated = [call.usage for call in counted if call.usage is not None]
    why = reasons.get("total_tokens")
    if evidence.price is None:
        why = evidence.no_price or "the price of the model is not known to this version"
    if evidence.price is None or len(stated) < len(counted):
        reasons |= {"cost_usd": why or "", "cost_source": "no cost was computed"}
        return None, None
    # Twelve digits: a millionth of a millionth of a dollar, and no noise of binary fractions.
    return round(fsum(cost_usd(usage, evidence.price) for usage in stated), 12), evidence.price.source


def _detail(
    calls: list[ModelCall], name: Literal["cached_read", "cache_write", "reasoning"], reasons: dict[str, str]
) -> int | None:
    values: list[int | None] = [getattr(call.usage, name, None) for call in calls]
    stated = [value for value in values if value is not None]
    if len(stated) < len(values):
        reasons[name] = f"{len(values) - len(stated)} of {len(values)} counted calls did not state it"
        return None
    return sum(stated)


def _unrecorded(passed: Literal[0, 1] | None, reasons: dict[str, str]) -> Tokens:
    always = {"pass_used_for_division", "reasons"}
    nothing: dict[str, Any] = {name: None for name in Tokens.model_fields if name not in always}
    why = dict.fromkeys(nothing, "the wire was not recorded")
    return Tokens(**nothing, pass_used_for_division=passed, reasons=why | reasons)
