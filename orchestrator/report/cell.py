"""One cell, drawn: what came of it and why, its axes, where its time went, its calls, work and files."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.console import Console

from orchestrator.adapter import Recording
from orchestrator.paths import near
from orchestrator.report.again import again, results_of
from orchestrator.report.asked import print_asked
from orchestrator.report.called import as_called, command
from orchestrator.report.columns import Column, fit
from orchestrator.report.findings import print_findings
from orchestrator.report.reproduce import one_container, reproduced
from orchestrator.report.scores import print_scores
from orchestrator.report.text import (
    LEGEND,
    NOT_MEASURED,
    clock,
    console,
    count,
    number,
    plural,
    print_json,
    safe_line,
    safe_lines,
)
from orchestrator.report.timeline import print_timeline
from orchestrator.report.verdict import imported_verdict, verdict
from orchestrator.report.work import LINE, print_work
from orchestrator.run.outcome import TABLE, with_cause
from orchestrator.store.cells import read_cell
from orchestrator.store.evidence import load_evidence, load_facts
from orchestrator.store.published import ROW_FILE
from orchestrator.store.record import CellRecord, Identity, ImportedCell
from scorers.evidence import OTHER_MODEL, Evidence, ModelCall, TestResult, Verification

MAX_TAIL_LINES = 20
MAX_TESTS = 20
MAX_CALLS = 30
MAX_SETTINGS = 5
MAX_HOSTS = 8
IN_SHORT_TESTS, IN_SHORT_LINES = 3, 4
"""Failed tests, and lines of what the tests printed, that are said once more at the end."""

_SHADOW = re.compile(r"^Shadow bytes around the buggy address:\n(?:.*\n)*?(?===\d+==ABORTING$)", re.MULTILINE)
"""What a memory sanitizer prints after it has said what is wrong and where: more than is shown of a tail."""

FILES = {
    "cell.json": "the record: identity, outcome, claim, scores",
    "evidence.json": "what the scorers read; `cab cell score` reads it again",
    "task.json": "what the scorers knew of the task",
    "diff.patch": "what the agent changed",
    "before.json": "the workdir's files before, with digests",
    "after.json": "the workdir's files after",
    "home.json": "the files that the CLI left in HOME",
    "home.tar.gz": "the small ones of them",
    "calls.jsonl": "each model call: times, tokens, status",
    "wire.jsonl.gz": "each model call's request and response",
    "spans.jsonl": "the trace: stages, model calls, tool calls",
    "stdout.log": "the CLI's output",
    "stderr.log": "the CLI's errors",
    "replay.json": "of a replay: what was asked for again, and the request that differs",
    ROW_FILE: "the published row that the record was made of",
}


RECORDINGS: dict[Recording | None, str] = {
    "pty": "the terminal, as asciicast",
    "rendered": "its events as its adapter renders them, as asciicast",
    "plain": "its output as it came, as asciicast",
    None: "its output, as asciicast",
}


def print_cell(cell_dir: Path, *, as_json: bool) -> None:
    """Print a finished cell, results on stdout."""
    record = read_cell(cell_dir)
    if as_json:
        now = record.model_copy(update={"reproduce": reproduced(record)})
        print_json(now.model_dump(mode="json"), indent=1)
        return
    out = console()
    if record.imported is not None:
        _print_imported(out, record, record.imported, cell_dir)
        return
    evidence, said = _print_what_came(out, record, cell_dir)
    _print_files(out, record, cell_dir)
    results = results_of(record, cell_dir)
    score = (
        command("cell", "score", record.cell_id, results=results)
        if results
        else command("cell", "score", near(cell_dir))
    )
    out.print(f"score it again: {score}", soft_wrap=True)
    out.print(again(record, cell_dir), soft_wrap=True)
    if command_line := one_container(record):
        out.print(command_line, soft_wrap=True)
    # Again, since the first lines have scrolled away.
    _print_in_short(out, record, evidence)
    _print_verdict(out, said)


def print_alone(cell_dir: Path, kept: Path | None, *, as_json: bool) -> None:
    """Print a cell that no sweep ran, results on stdout. `kept` is where its files were given to: `cell_dir`
    itself does not stay.
    """
    record = read_cell(cell_dir)
    if as_json:
        print_json(record.model_dump(mode="json"), indent=1)
        return
    out = console()
    evidence, said = _print_what_came(out, record, cell_dir)
    if kept is not None:
        out.print()
        out.print(f"all evidence: {kept}", soft_wrap=True)
    _print_in_short(out, record, evidence)
    _print_verdict(out, said)


def _print_what_came(out: Console, record: CellRecord, cell_dir: Path) -> tuple[Evidence, str]:
    """What every cell has to show; its evidence and verdict."""
    evidence = load_evidence(cell_dir)
    said = verdict(record, load_facts(cell_dir), evidence)
    _print_verdict(out, said)
    _print_head(out, record)
    _print_verification(out, evidence)
    out.print()
    print_scores(record.scores, out)
    print_findings(record.scores.get("integrity", {}), out)
    _print_cross_check(out, record)
    out.print()
    print_timeline(record.scores.get("latency", {}), evidence, out)
    out.print()
    _print_calls(out, evidence)
    print_asked(evidence.tool_calls, out)
    print_work(evidence, record.scores.get("blast_radius", {}), cell_dir, out)
    _print_provenance(out, record)
    _print_hosts(out, record)
    return evidence, said


def _print_verdict(out: Console, said: str) -> None:
    style = {"passed": "bold green", "failed": "bold red"}.get(said.partition(":")[0], "bold yellow")
    out.print(safe_line(said), style=style)


def _print_imported(out: Console, record: CellRecord, imported: ImportedCell, cell_dir: Path) -> None:
    """A published cell: its axes and composite as printed. No evidence is there to say more."""
    _print_verdict(out, imported_verdict(record))
    _print_head(out, record)
    _field(out, "printed", f"composite {number(imported.printed)}, recomputed {number(imported.recomputed)}")
    _field(out, "page", imported.published_id)
    out.print()
    print_scores(record.scores, out)
    identity = record.identity
    image = f"{identity.container_image or NOT_MEASURED}, {identity.image_digest or NOT_MEASURED}"
    out.print()
    _field(out, "ran", f"{identity.cli} in {image}")
    _field(out, "model", identity.model)
    _print_files(out, record, cell_dir)
    out.print(again(record, cell_dir), soft_wrap=True)


def _print_in_short(out: Console, record: CellRecord, evidence: Evidence) -> None:
    """What speaks for the verdict, in a few lines."""
    found = evidence.verification
    failed = [test for test in found.tests if test.status != "passed"] if found else []
    said: list[str] = []
    if len(failed) > IN_SHORT_TESTS:
        said.append(f"  … {plural(len(failed) - IN_SHORT_TESTS, 'test')} more above")
    if found and not found.tests:
        said += [f"  | {line}" for line in _tail(found)[-IN_SHORT_LINES:]]
    if record.outcome.detail:
        said.append(f"  {safe_line(record.outcome.detail)}")
    if failed or said:
        out.print()
    for test in failed[:IN_SHORT_TESTS]:
        _print_test(out, test)
    for line in said:
        _cut(out, line)


def _print_head(out: Console, record: CellRecord) -> None:
    outcome, rule = record.outcome, TABLE[record.outcome.name]
    out.print(record.cell_id, soft_wrap=True)
    _field(out, "outcome", f"{with_cause(outcome.name, outcome.cause)}: {rule.meaning}")
    if outcome.detail:
        _field(out, "", outcome.detail)
    _field(out, "", "counted in rates" if rule.counted else "not counted in rates")
    _field(
        out,
        "claim",
        f"{record.claim.level}: {'; '.join(record.claim.reasons) or 'nothing speaks against it'}",
    )
    _field(
        out,
        "started",
        f"{record.timing.started_at:%Y-%m-%d %H:%M:%S} UTC, took {clock(record.timing.duration_s)}",
    )
    for number_, attempt in enumerate(record.attempts, start=1):
        tokens = None if attempt.input_tokens is None else attempt.input_tokens + (attempt.output_tokens or 0)
        said = with_cause(attempt.outcome.name, attempt.outcome.cause)
        took = f"{clock(attempt.timing.duration_s)}, {count(tokens)} tokens"
        _field(out, f"try {number_}", f"{said}, {took}")


def _field(out: Console, name: str, text: str) -> None:
    out.print(f"{name:<10}{safe_line(text)}", soft_wrap=True)


def _print_verification(out: Console, evidence: Evidence) -> None:
    found = evidence.verification
    if found is None:
        _field(out, "verifier", "did not run")
        return
    failed = [test for test in found.tests if test.status != "passed"]
    ended = "stopped at its time limit" if found.timed_out else f"exit code {found.exit_code}"
    passed = f"{len(found.tests) - len(failed)} of {plural(len(found.tests), 'test')} passed"
    _field(out, "verifier", f"{ended}, reward {number(found.reward)}, {passed}")
    for test in failed[:MAX_TESTS]:
        _print_test(out, test)
    if len(failed) > MAX_TESTS:
        out.print(f"  … {plural(len(failed) - MAX_TESTS, 'test')} more in evidence.json")
    if failed or found.exit_code != 0:
        for line in _tail(found)[-MAX_TAIL_LINES:]:
            _cut(out, f"  | {line}")


def _tail(found: Verification) -> list[str]:
    """The end of what the tests printed, as harmless lines."""
    text = _SHADOW.sub("", found.stdout_tail + found.stderr_tail).rstrip("\n")
    return safe_lines(text, LINE) if text else []


def _cut(out: Console, line: str) -> None:
    """A line no longer than the terminal is wide; the whole of it stands in evidence.json."""
    out.print(line, no_wrap=True, overflow="ellipsis")


def _print_test(out: Console, test: TestResult) -> None:
    """A test and what it said, which gets a line of its own where it would be cut off."""
    name = f"  {test.status}: {safe_line(test.name, LINE)}"
    message = safe_line(test.message.strip(), LINE) if test.message else ""
    if message and cell_len(name) + 2 + cell_len(message) > out.width:
        _cut(out, name)
        _cut(out, f"    {message}")
    else:
        _cut(out, f"{name}: {message}" if message else name)


def _print_calls(out: Console, evidence: Evidence) -> None:
    calls = evidence.calls
    if not calls:
        out.print("model calls: none")
        return
    # The first and the last of many say the most. No gap of one: it would take a line as well.
    many = len(calls) > MAX_CALLS + 1
    some = calls[: MAX_CALLS // 2] + calls[-MAX_CALLS // 2 :] if many else calls
    columns = [
        Column("#", [str(call.index) for call in some]),
        Column("at s", [f"{call.start:.2f}" for call in some], worth=1),
        Column("took s", [f"{call.end - call.start:.3f}" for call in some]),
        *(
            [Column("wait s", [_waited(call) for call in some], worth=2)]
            if any(c.waits for c in some)
            else []
        ),
        Column("first s", [_first(call) for call in some], worth=2),
        Column("in", [count(call.usage.input if call.usage else None) for call in some]),
        Column("out", [count(call.usage.output if call.usage else None) for call in some]),
        Column("end", [_call_end(call) for call in some], right=False, least=12),
        Column("then tools", [_tools(call, evidence) for call in some], right=False, least=16),
    ]
    title = f"model calls: {len(calls)}" + (
        f", the first and last {MAX_CALLS // 2} of them shown" if many else ""
    )
    table, _ = fit(columns, title, out)
    out.print(table)
    if any(NOT_MEASURED in column.cells for column in columns):
        out.print(LEGEND)
    _print_other_models(out, calls)


def _print_cross_check(out: Console, record: CellRecord) -> None:
    """Where the CLI's own totals are not those of the wire. The wire's are the numbers."""
    found: Any = record.scores.get("tokens", {}).get("cli")
    if found and found["agrees"] is False:
        said = f"{count(found['input'])} in, {count(found['output'])} out"
        wire = f"{count(found['wire_input'])} in, {count(found['wire_output'])} out"
        out.print(f"the CLI itself says {said}; the wire, of the same calls: {wire}", soft_wrap=True)


def _print_other_models(out: Console, calls: Sequence[ModelCall]) -> None:
    """What became of calls that named another model than the cell's."""
    others = [call for call in calls if call.other_model]
    asked = Counter((call.request_model or NOT_MEASURED, call.error == OTHER_MODEL) for call in others)
    for (model, refused), amount in asked.items():
        became = "refused" if refused else "sent to the cell's model"
        out.print(safe_line(f"{plural(amount, 'call')} asked for {model}: {became}"), soft_wrap=True)


def _first(call: ModelCall) -> str:
    """Seconds from the sending of the attempt that was answered to its first token, or first byte."""
    at = call.after_sent(call.first_byte if call.first_token is None else call.first_token)
    return NOT_MEASURED if at is None else f"{at:.3f}"


def _waited(call: ModelCall) -> str:
    return f"{sum(wait.end - wait.start for wait in call.waits):.3f}"


def _call_end(call: ModelCall) -> str:
    if call.error:
        return safe_line(f"{call.error}: {call.error_detail}" if call.error_detail else call.error, 80)
    return safe_line(call.finish_reason or NOT_MEASURED, 40)


def _tools(call: ModelCall, evidence: Evidence) -> str:
    if not call.main:
        return "(a side request)"
    tools = [tool.name for tool in evidence.tool_calls if abs(tool.start - call.end) < 1e-6]
    return safe_line(", ".join(tools), 80)


def _print_provenance(out: Console, record: CellRecord) -> None:
    identity = record.identity
    out.print()
    isolation = record.isolation
    if isolation is not None and isolation.containers == "none":
        _field(out, "ran", f"{identity.cli} {identity.cli_version}, as it is installed on a machine")
    else:
        image = f"{identity.container_image}, {identity.image_digest}"
        _field(out, "ran", f"{identity.cli} {identity.cli_version} in {image}")
        _field(out, "graded in", f"{identity.verifier_digest}")
    if isolation is not None and isolation.containers != "separate":
        where = "one container" if isolation.containers == "single-container" else "no container"
        _field(out, "isolation", f"{where} for agent and grader, network {isolation.egress}")
    builds = ", ".join(map(str, identity.model_builds)) or identity.model_build_id
    build = f"reported as {builds}" if builds else "reported no build"
    _field(out, "model", f"{identity.model}, {build}")
    settings = identity.generation_settings
    for index, one in enumerate(settings[:MAX_SETTINGS]):
        _field(out, "" if index else "settings", json.dumps(one) if one else "none stated on the wire")
    if len(settings) > MAX_SETTINGS:
        _field(out, "", f"… {len(settings) - MAX_SETTINGS} more in cell.json")
    if identity.settings_set:
        _field(out, "", f"set by the sweep: {json.dumps(identity.settings_set)}")
    for own in identity.settings_overridden:
        _field(out, "", f"the CLI had asked for: {json.dumps(own)}")
    if identity.rules_file is not None:
        _field(out, "rules", f"in {identity.rules_file} of the workdir, before the CLI started")
    _print_stack(out, identity)
    for item in identity.deviations:
        _field(out, "deviates", f"{item.what} ({item.reason})")
    commit = f"commit {identity.cab.commit[:12]}" if identity.cab.commit else "no commit"
    _field(out, "cab", f"{identity.cab.version}, {commit}{', changed since' if identity.cab.dirty else ''}")


def _print_stack(out: Console, identity: Identity) -> None:
    for index, plugin in enumerate(identity.plugins):
        name = f"{plugin.name} ({plugin.kind}, {plugin.digest})"
        said = name if plugin.skipped is None else f"without {name}: {plugin.skipped}"
        if plugin.offered is False:
            said += ": applied, but no request named a tool of it, as where the server does not start"
        _field(out, "" if index else "stack", f"{'' if index else identity.stack + ': '}{said}")
    if identity.plugin_env_keys:
        _field(out, "", f"variables: {' '.join(identity.plugin_env_keys)}")
    if identity.plugin_args:
        _field(out, "", f"arguments: {shlex.join(identity.plugin_args)}")


def _print_hosts(out: Console, record: CellRecord) -> None:
    """What the agent's container would have reached, had it had a network."""
    hosts = record.hosts_tried
    if hosts is None:
        return
    for index, host in enumerate(hosts[:MAX_HOSTS]):
        said = f"{host.name}, first at {host.first_s:.1f} s, {plural(host.count, 'question')}"
        _field(out, "" if index else "looked up", said)
    if len(hosts) > MAX_HOSTS:
        _field(out, "", f"… {len(hosts) - MAX_HOSTS} more in cell.json")
    if not hosts:
        _field(out, "looked up", "no host name")


def _print_files(out: Console, record: CellRecord, cell_dir: Path) -> None:
    said = FILES | {"recording.cast": RECORDINGS[record.recording]}
    out.print()
    out.print(f"files in {cell_dir}:", soft_wrap=True)
    for path in sorted(cell_dir.iterdir()):
        out.print(
            f"  {safe_line(path.name, LINE):<16}{as_called(said.get(path.name, ''))}".rstrip(),
            soft_wrap=True,
        )
