"""One cell, drawn: outcome, axes, where its time went, its calls, its diff, and where its files are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from orchestrator.report.text import NOT_MEASURED, console, count, hostile, number
from orchestrator.store.cells import read_cell
from orchestrator.store.evidence import load_evidence
from orchestrator.store.record import CellRecord
from scorers.evidence import Evidence

MAX_DIFF_LINES = 80
MAX_TAIL_LINES = 20
BAR = 40


def print_cell(cell_dir: Path, *, as_json: bool) -> None:
    """Print a finished cell, results on stdout."""
    record = read_cell(cell_dir)
    if as_json:
        print(record.model_dump_json())  # noqa: T201 - results belong on stdout
        return
    out, evidence = console(), load_evidence(cell_dir)
    _print_head(out, record)
    print_scores(record.scores, out)
    _print_partition(out, record)
    _print_calls(out, evidence)
    _print_verification(out, evidence)
    _print_work(out, evidence)
    out.print(f"files: {cell_dir}", soft_wrap=True)
    out.print(f"score again: cab cell score '{record.cell_id}'", soft_wrap=True)


def _print_head(out: Console, record: CellRecord) -> None:
    identity, outcome = record.identity, record.outcome
    cause = f"({outcome.cause})" if outcome.cause else ""
    counted = "counted in rates" if outcome.counted else "not counted in rates, run again on a resume"
    out.print(f"[bold]{record.cell_id}[/bold]", soft_wrap=True)
    out.print(f"outcome   {outcome.name}{cause}: {counted}")
    if outcome.detail:
        out.print(f"          {hostile(outcome.detail)}", soft_wrap=True)
    out.print(
        f"claim     {record.claim.level}: {'; '.join(record.claim.reasons) or 'nothing speaks against it'}"
    )
    out.print(
        f"ran       {identity.cli} {identity.cli_version} in {identity.container_image}, {identity.image_digest}"
    )
    out.print(f"graded in {identity.verifier_digest}")
    out.print(
        f"started   {record.timing.started_at:%Y-%m-%d %H:%M:%S} UTC, took {record.timing.duration_s:.1f} s"
    )


def print_scores(scores: dict[str, Any], out: Console | None = None) -> None:
    """One line an axis; what was not measured is a dash with its reason."""
    table = Table(title="axes", title_justify="left")
    for name in ("axis", "value", "why, or what else"):
        table.add_column(name, overflow="fold")
    for axis, key in (
        ("pass_rate", "pass"),
        ("tokens", "total_tokens"),
        ("latency", "wall_clock_ms"),
        ("blast_radius", "blast_radius_agent"),
        ("refusal", "refusal"),
        ("integrity", "integrity"),
        ("composite", "composite"),
        ("composite_published", "composite"),
    ):
        values = scores[axis]
        value = values.get(key)
        shown = NOT_MEASURED if value is None else count(value) if value > 10 else number(value, 4)
        table.add_row(f"{axis}.{key}", shown, hostile(_remark(axis, key, values)))
    (out or console()).print(table)


def _remark(axis: str, key: str, values: dict[str, Any]) -> str:
    if values.get(key) is None:
        reasons = values.get("reasons") or {}
        return str(reasons.get(key) or values.get("note") or "not measured")
    match axis:
        case "pass_rate":
            partial = values["partial_score"]
            return str(values["reason"]) + ("" if partial is None else f", partial score {number(partial)}")
        case "tokens":
            return f"{count(values['prompt_tokens'])} in, {count(values['completion_tokens'])} out, {values['model_calls']} calls"
        case "blast_radius":
            return (
                f"{values['total_changes']} files changed, {len(values['unexpected_changes'])} of them unexpected"
            )
        case "refusal":
            return (
                "no refusal was expected"
                if values["not_applicable"]
                else ", ".join(values["refusal_reasons"])
            )
        case "integrity":
            return (
                "; ".join(f"{item['severity']}: {item['rule']}" for item in values["findings"])
                or "no finding"
            )
        case "composite" | "composite_published":
            return str(values["formula"])
    return ""


def _print_partition(out: Console, record: CellRecord) -> None:
    parts = record.scores["latency"]["partition"]
    assert isinstance(parts, dict)
    measured = {name: ms for name, ms in parts.items() if isinstance(ms, int | float)}
    total = sum(measured.values()) or 1.0
    table = Table(title="where the time went", title_justify="left")
    for name in ("part", "ms", ""):
        table.add_column(name, justify="right" if name == "ms" else "left")
    for name, ms in measured.items():
        table.add_row(name, count(ms), "█" * round(BAR * ms / total))
    out.print(table)


def _print_calls(out: Console, evidence: Evidence) -> None:
    if not evidence.calls:
        out.print("model calls: none")
        return
    table = Table(title="model calls", title_justify="left")
    for name in ("#", "at s", "took s", "in", "out", "finish", "then tools"):
        table.add_column(name, justify="right" if name in {"#", "at s", "took s", "in", "out"} else "left")
    for call in evidence.calls:
        tools = [tool.name for tool in evidence.tool_calls if abs(tool.start - call.end) < 1e-6]
        usage = call.usage
        table.add_row(
            str(call.index),
            f"{call.start:.2f}",
            f"{call.end - call.start:.3f}",
            count(usage.input if usage else None),
            count(usage.output if usage else None),
            hostile(call.error or call.finish_reason or NOT_MEASURED),
            hostile(", ".join(tools) if call.main else "(a side request)"),
        )
    out.print(table)


def _print_verification(out: Console, evidence: Evidence) -> None:
    found = evidence.verification
    if found is None:
        out.print("verifier: did not run")
        return
    failed = [test for test in found.tests if test.status != "passed"]
    out.print(
        f"verifier: exit code {found.exit_code}, reward {number(found.reward)}, "
        f"{len(found.tests) - len(failed)} of {len(found.tests)} tests passed"
    )
    for test in failed:
        out.print(f"  {test.status}: {hostile(test.name)}  {hostile((test.message or '').strip()[:200])}")
    if failed or found.exit_code != 0:
        for line in (found.stdout_tail + found.stderr_tail).splitlines()[-MAX_TAIL_LINES:]:
            out.print(f"  | {hostile(line)}", soft_wrap=True)


def _print_work(out: Console, evidence: Evidence) -> None:
    if evidence.final_message.text:
        out.print(
            f"final message ({evidence.final_message.source}): {hostile(evidence.final_message.text.strip())}"
        )
    lines = evidence.diff.splitlines()
    out.print("diff: none" if not lines else "diff:")
    for line in lines[:MAX_DIFF_LINES]:
        out.print(f"  {hostile(line)}", soft_wrap=True)
    if len(lines) > MAX_DIFF_LINES:
        out.print(f"  … {len(lines) - MAX_DIFF_LINES} lines more in diff.patch")
