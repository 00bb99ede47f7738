"""ATIF, Harbor's Agent Trajectory Interchange Format: what a cell's agent and model said to each other.

Version 1.7 of the format (RFC 0001 of Harbor), made of the wire alone: a step for each text that the CLI put
before the model, one for each answer of the model on the main thread, with its tool calls, what they came to,
and its metrics. Side requests, such as one for a title, and calls without an answer are no steps; their
tokens are in `final_metrics`, which are the record's own. What a model reasoned is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import Any

from orchestrator.export.cells import Cell
from orchestrator.gateway.evidence import WireBody, read_wire
from orchestrator.gateway.jsontext import deep, storable
from orchestrator.gateway.wire import Answer
from orchestrator.store.evidence import EVIDENCE, load_evidence
from orchestrator.store.record import CellRecord
from scorers.evidence import Evidence, ModelCall, Price, ToolCall
from scorers.price import cost_usd

ATIF = "ATIF-v1.7"
TRAJECTORY = "trajectory.json"
WIRE = "wire.jsonl.gz"

_NOTES = (
    "Made by cab from the recorded wire. Steps are the main thread's; side requests and calls without an "
    "answer are counted in final_metrics alone, as the record counts them. Tool results end after 64 KiB."
)


def path_of(cell: Cell) -> PurePosixPath:
    """Where a cell's trajectory stands below the directory of an export."""
    return PurePosixPath(cell.entry.sweep_id) / cell.key.path() / TRAJECTORY


def trajectory(cell: Cell) -> dict[str, Any] | None:
    """The trajectory of a cell; None where no answer of a model was recorded. Raises StoreError."""
    wire = cell.directory / WIRE
    if not wire.exists() or not (cell.directory / EVIDENCE).exists():
        return None
    evidence, entry = load_evidence(cell.directory), cell.entry
    steps = list(_steps(cell.record, evidence, read_wire(wire)))
    if not any(step["source"] == "agent" for step in steps):
        return None
    return {
        "schema_version": ATIF,
        "session_id": entry.cell_id,
        "trajectory_id": entry.cell_id,
        "agent": {
            "name": entry.cli,
            "version": entry.cli_version or "not told",
            "model_name": entry.model,
            "extra": {"stack": entry.stack, "image_digest": entry.image_digest},
        },
        "steps": [{"step_id": number, **step} for number, step in enumerate(steps, 1)],
        "notes": _NOTES,
        "final_metrics": _final_metrics(cell.record, evidence, len(steps)),
        "extra": {"cab": _about(cell.record)},
    }


def _about(record: CellRecord) -> dict[str, Any]:
    """What may be said of the cell, beside its trajectory."""
    result = record.scores.get("pass_rate", {})
    return {
        "cell_id": record.cell_id,
        "task": record.identity.task,
        "outcome": record.outcome.name,
        "cause": record.outcome.cause,
        "claim": record.claim.level,
        "claim_reasons": list(record.claim.reasons),
        "methodology_version": record.methodology_version,
        "passed": result.get("pass"),
        "pass_reason": result.get("reason"),
    }


def _final_metrics(record: CellRecord, evidence: Evidence, steps: int) -> dict[str, Any]:
    """The record's own numbers: those of every counted call, whether it is a step or not."""
    tokens = record.scores.get("tokens", {})
    more = ("model_calls", "calls_failed", "calls_without_usage", "cache_write", "reasoning", "cost_source")
    return _given(
        total_prompt_tokens=tokens.get("prompt_tokens"),
        total_completion_tokens=tokens.get("completion_tokens"),
        total_cached_tokens=tokens.get("cached_read"),
        total_cost_usd=tokens.get("cost_usd"),
        total_steps=steps,
        extra={
            **{name: tokens.get(name) for name in more},
            "side_calls": sum(not call.main for call in evidence.calls),
            "wall_clock_ms": record.scores.get("latency", {}).get("wall_clock_ms"),
        },
    )


def _steps(record: CellRecord, evidence: Evidence, wire: Iterable[WireBody]) -> Iterator[dict[str, Any]]:
    """The steps in the order in which their calls began, still without numbers."""
    calls = {call.index: call for call in evidence.calls if call.main}
    told, ids = set[bytes](), set[str]()
    for body in sorted((body for body in wire if body.index in calls), key=lambda body: body.index):
        call, so_far = calls[body.index], blake2b()
        for prompt in body.prompts():
            # A request repeats all that came before it: only where it goes on as none did is it new.
            so_far.update(json.dumps([prompt.role, prompt.text]).encode())
            if so_far.digest() not in told:
                told.add(so_far.digest())
                yield {
                    "timestamp": _time(record, call.start),
                    "source": prompt.role,
                    "message": prompt.text,
                }
        answer = body.answer()
        if call.error is None or answer.text or answer.calls:
            asked = [one for one in evidence.tool_calls if one.start == call.end]
            yield _answered(record, call, evidence.price, answer, _tools(answer, asked, call.index, ids))


def _answered(
    record: CellRecord, call: ModelCall, price: Price | None, answer: Answer, tools: _Tools
) -> dict[str, Any]:
    """The step of one answer. What the wire did not state is left out."""
    usage = call.usage
    metrics = usage and _given(
        prompt_tokens=usage.input,
        completion_tokens=usage.output,
        cached_tokens=usage.cached_read,
        cost_usd=None if price is None else cost_usd(usage, price),
        extra=_given(cache_write_tokens=usage.cache_write, reasoning_tokens=usage.reasoning) or None,
    )
    return _given(
        timestamp=_time(record, call.end),
        source="agent",
        model_name=call.reported_model,
        message=answer.text,
        tool_calls=tools.calls or None,
        observation={"results": tools.results} if tools.results else None,
        metrics=metrics,
        llm_call_count=1,
        extra=_given(
            call_index=call.index,
            finish_reason=call.finish_reason,
            error=call.error,
            attempts=call.attempts,
            duration_s=call.end - call.start,
            first_token_s=call.after_sent(call.first_token),
        ),
    )


@dataclass(frozen=True)
class _Tools:
    """The tool calls of one answer and what they came to, as a step has them."""

    calls: list[dict[str, Any]]
    results: list[dict[str, Any]]


def _tools(answer: Answer, seen: Sequence[ToolCall], index: int, ids: set[str]) -> _Tools:
    """`seen` are the evidence's calls of the same answer; `ids` the ids of earlier steps, which are added to:
    some CLIs give none, or the same ones twice.
    """
    calls, results = [], []
    for number, one in enumerate(answer.calls):
        call_id = one.call_id or f"call-{index}-{number}"
        if call_id in ids:
            call_id = f"{call_id}-{index}-{number}"
        ids.add(call_id)
        arguments = _arguments(one.arguments)
        calls.append(
            _given(
                tool_call_id=call_id,
                function_name=one.name,
                arguments=arguments or {},
                extra={"arguments_text": one.arguments} if arguments is None else None,
            )
        )
        if number < len(seen) and seen[number].result is not None:
            results.append({"source_call_id": call_id, "content": seen[number].result})
    return _Tools(calls, results)


def _arguments(text: str) -> dict[str, Any] | None:
    """Arguments as an object; None where the model wrote none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return storable(value) if isinstance(value, dict) and not deep(value) else None


def _time(record: CellRecord, seconds: float) -> str:
    """A time of the evidence, in seconds since the start of the cell, by the wall clock."""
    at = record.timing.started_at + timedelta(seconds=seconds)
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _given(**fields: Any) -> dict[str, Any]:
    """Fields that have a value: the format leaves the others out."""
    return {name: value for name, value in fields.items() if value is not None}


def write_trajectories(cells: Iterable[Cell], directory: Path) -> tuple[int, int]:
    """Write each cell's trajectory below `directory`; how many there are, and how many cells have none."""
    written = without = 0
    for cell in cells:
        found = trajectory(cell)
        if found is None:
            without += 1
            continue
        path = directory / path_of(cell)
        path.parent.mkdir(parents=True)
        text = json.dumps(found, ensure_ascii=False, allow_nan=False, indent=1)
        path.write_bytes(text.encode("utf-8", "replace") + b"\n")
        written += 1
    return written, without
