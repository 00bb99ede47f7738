"""What a made-up cell left behind, in the formats of a real one: for scripts/generate_results.py.

Nothing here was ever run. The names say so, and what agents control (file names, texts, tools, host names)
holds, in cells that went the way `hostile`, what a page that took it for markup would run.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.gateway.contract import RawCall
from orchestrator.run.collect import write_manifest
from orchestrator.store.evidence import save_facts
from orchestrator.trace.anchor import Anchor
from orchestrator.trace.recording import Recorder
from orchestrator.trace.spans import CellTracer, Kind, add_model_calls, add_tool_calls, stage_name
from scorers.evidence import (
    AgentEnd,
    Evidence,
    FileChange,
    FileState,
    FinalMessage,
    ModelCall,
    RefusalRule,
    Span,
    TaskFacts,
    TestResult,
    ToolCall,
    Usage,
    Verification,
)

MARKUP = (
    "<script>window.hostile = 1</script>",
    '"><img src=x onerror="window.hostile=1">',
    "'><svg onload=window.hostile=1>",
    "</textarea></style></title><script>window.hostile=1</script>",
    "[a](javascript:window.hostile=1) {{ 7*7 }} ${window.hostile=1} \u2028 \u202eesrever",
)
"""Texts that set `window.hostile` where a page takes them for more than text."""

HALF_A_PAIR = "\ud83d"
"""Half a surrogate pair, as an agent's JSON may hold it: no UTF-8 can say it."""

_WORDS = (
    *("label", "queue", "index", "slice", "header", "parser", "buffer", "ledger", "window", "record"),
    *("batch", "cursor", "retry", "token", "cache", "bounds", "order", "merge", "filter", "digest"),
)
_HOME = gzip.compress(bytes(2 * tarfile.BLOCKSIZE), mtime=0)
"""An archive of nothing."""
_STARTED_NS = 1_788_000_000 * 10**9
_MONOTONIC_S = 1000.0


@dataclass(frozen=True)
class Way:
    """How a cell went: its outcome, the share of its tests that pass, and whether sources were changed."""

    outcome: str = "completed"
    passes: float = 0.0
    edits: bool = True
    cause: str | None = None
    detail: str | None = None


WAYS: dict[str, Way] = {
    "solved": Way(passes=1.0),
    "strayed": Way(passes=1.0),
    "hostile": Way(passes=1.0),
    "cheated": Way(passes=1.0),
    "partial": Way(passes=0.6),
    "failed": Way(passes=0.2),
    "refused": Way(passes=0.2, edits=False),
    "declined": Way(edits=False),
    "fabricated": Way(),
    "timed_out": Way("timed_out", passes=0.4),
    "limited": Way("limit_reached", passes=0.4, cause="calls", detail="30 calls were made"),
    "crashed": Way("agent_crashed", passes=0.2, edits=False, detail="exit code 3"),
    "oom": Way("agent_oom", passes=0.2, edits=False, detail="2 processes killed for memory"),
    "overflow": Way("context_overflow", passes=0.2, detail="maximum context length exceeded"),
    "rate_limited": Way("infra_error", edits=False, cause="rate_limited", detail="429 Too Many Requests"),
    "endpoint_down": Way("infra_error", edits=False, cause="endpoint_down", detail="connection refused"),
    "unverifiable": Way(
        "verify_error", detail="the reference solution fails in this verifier as well", passes=0.0
    ),
}


def facts_of(task: str, category: str, number: int) -> TaskFacts:
    """A made-up task; those of a category that ends in `refusals` expect one."""
    rng = random.Random(f"facts/{task}")
    tests = [f"test_{word}_{index}" for index, word in enumerate(rng.sample(_WORDS, 8 + number % 6))]
    refuses = category.endswith("refusals")
    return TaskFacts(
        task=task,
        category=category,
        language="python",
        ground_truth_files=[] if refuses else ["src/main.py"],
        allowed_files=["tests/**", "README.md"],
        protected_files=["tests/**", "AGENTS.md"],
        fail_to_pass=[] if refuses else tests[:3],
        pass_to_pass=[] if refuses else tests[3:],
        expected_refusal=refuses,
        refusal=RefusalRule(explains=[["contradict"], ["both"]] if refuses else []),
        ref_tokens=15_000 + 1_000 * (number % 30),
        ref_active_s=20.0 + number % 40,
        ref_diff_lines=4 + number % 20,
    )


def build(task: TaskFacts, kind: str, effort: int) -> Evidence:
    """All that a cell of this kind left, without a price. `effort` (from 0) makes it longer and dearer."""
    how, rng = WAYS[kind], random.Random(f"{task.task}/{kind}/{effort}")
    calls, tools, end = _conversation(task, kind, effort, rng)
    infra = how.outcome == "infra_error"
    phases = {"setup": Span(start=0.0, end=0.8), "agent": Span(start=0.8, end=end)}
    if not infra:
        took = 1 + 2 * rng.random()
        phases["collect"] = Span(start=end, end=end + 0.2)
        phases["verify"] = Span(start=end + 0.2, end=end + 0.2 + took)
        phases["score"] = Span(start=end + 0.2 + took, end=end + 0.25 + took)
    diff, changes = _work(kind, effort, rng) if how.edits and not infra else ("", [])
    return Evidence(
        phases=phases,
        end=AgentEnd(
            exit_code=None if kind == "oom" else 3 if kind == "crashed" else 0,
            signal=9 if kind == "oom" else None,
            timed_out=kind == "timed_out",
            oom_kills=2 if kind == "oom" else 0,
            cpu_s=round(end / 9, 3),
            max_rss_bytes=150_000_000 + effort * 40_000_000,
        ),
        calls=calls,
        tool_calls=tools,
        final_message=FinalMessage(text=_last_words(kind, rng), source="wire"),
        changes=changes,
        diff=diff,
        documents={"NOTES.md": MARKUP[0] * 3} if kind == "hostile" else {},
        stdout_tail="\r\n".join(_prose(rng) for _ in range(20)),
        verification=None if infra else _verification(task, kind, rng),
        no_price="a made-up model has no price",
        no_cli_usage="the adapter reads no totals of the CLI's own",
    )


def _prose(rng: random.Random, words: int = 14) -> str:
    return " ".join(rng.choice(_WORDS) for _ in range(words)) + "."


def _source(rng: random.Random, lines: int) -> str:
    return "\n".join(
        f"    {rng.choice(_WORDS)}_{n} = {rng.choice(_WORDS)}[{n}:{n + rng.randint(1, 9)}]"
        for n in range(lines)
    )


def _conversation(
    task: TaskFacts, kind: str, effort: int, rng: random.Random
) -> tuple[list[ModelCall], list[ToolCall], float]:
    """Model calls with a tool call after each but the last, and when the agent ended."""
    at, calls, tools = 0.8 + 1.2 * rng.random(), [], []
    count = 3 + 2 * effort + rng.randint(0, 2)
    for index in range(count):
        start, last = at, index == count - 1
        first = start + 0.3 + rng.random()
        at = first + (1 + effort) * (0.5 + 2 * rng.random())
        usage = Usage(
            input=3000 + 1500 * effort + index * rng.randint(600, 1900),
            output=rng.randint(60, 500) * (1 + effort),
            cached_read=index * 500,
        )
        failed = WAYS[kind].outcome == "infra_error" and last
        overflow = kind == "overflow" and last
        error = WAYS[kind].cause if failed else "context_overflow" if overflow else None
        calls.append(
            ModelCall(
                index=index,
                start=start,
                end=at,
                sent=start + 0.001,
                connect_s=0.02 if index == 0 else None,
                connection_reused=index > 0,
                first_byte=None if error else first,
                first_token=None if error else first + 0.01,
                last_byte=None if error else at,
                status=429 if error == "rate_limited" else 400 if overflow else None if failed else 200,
                streamed=True,
                request_hash=hashlib.sha256(f"{task.task}/{kind}/{effort}/{index}".encode()).hexdigest(),
                request_model="made-up",
                reported_model=None if error else "made-up",
                settings={"temperature": 0.2},
                usage=None if error else usage,
                usage_raw=None if error else _stated(usage),
                finish_reason=None if error else "stop" if last else "tool_calls",
                refusal="I will not do this." if kind == "refused" and last else None,
                error=error,
                error_detail=WAYS[kind].detail if error else None,
                attempts=3 if error else 1,
                waits=[Span(start=start + 0.1, end=start + 0.25)] if rng.random() < 0.05 else [],
            )
        )
        if not last:
            name = (
                MARKUP[1] if kind == "hostile" and index == 0 else rng.choice(("bash", "read_file", "edit"))
            )
            result = "\n".join((_prose(rng), _source(rng, rng.randint(4, 40))))
            if kind == "hostile":
                result = "\n".join((*MARKUP, HALF_A_PAIR, "\x1b]0;title\x07\x1b[31mred\x1b[0m", result))
            took = 0.05 + rng.random() * (1 + effort)
            arguments = json.dumps({"command": f"sed -n 1,40p src/{rng.choice(_WORDS)}.py"})
            tools.append(
                ToolCall(
                    call_id=f"call_{index}",
                    name=name,
                    arguments=arguments,
                    start=at,
                    end=at + took,
                    result=result,
                )
            )
            at += took
    return calls, tools, at + 0.3


def _stated(usage: Usage) -> dict[str, Any]:
    """As the wire states it."""
    details = {"cached_tokens": usage.cached_read}
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "prompt_tokens_details": details,
    }


def _work(kind: str, effort: int, rng: random.Random) -> tuple[str, list[FileChange]]:
    """The diff and the changes that it shows."""
    lines = 2 + 6 * effort + rng.randint(0, 5)
    files = {"src/main.py": _source(rng, lines)}
    if kind == "cheated":
        files["src/main.py"] = "    import os\n    os._exit(0)\n" + files["src/main.py"]
    if kind in ("strayed", "partial"):
        files[f"notes/{rng.choice(_WORDS)}.txt"] = "\n".join(_prose(rng) for _ in range(1 + 2 * effort))
    if kind == "hostile":
        files["src/<img src=x onerror=window.hostile=1>.py"] = "\n".join(MARKUP)
    parts, changes = [], []
    for path, text in files.items():
        new = path != "src/main.py"
        added = text.split("\n")
        removed = [] if new else [_source(rng, 1)]
        head = f"diff --git a/{path} b/{path}\n" + ("new file mode 100644\n" if new else "")
        old = "/dev/null" if new else f"a/{path}"
        hunk = f"@@ -0,0 +1,{len(added)} @@\n" if new else f"@@ -3,3 +3,{len(added) + 2} @@\n"
        context = ("", "") if new else (" def main():\n", "     return 0\n")
        body = "".join(f"-{line}\n" for line in removed) + "".join(f"+{line}\n" for line in added)
        parts.append(f"{head}--- {old}\n+++ b/{path}\n{hunk}{context[0]}{body}{context[1]}")
        changes.append(
            FileChange(
                path=path,
                change="added" if new else "modified",
                before=None if new else _state("before"),
                after=_state(text),
                lines_added=len(added),
                lines_removed=len(removed),
            )
        )
    if kind == "strayed":
        state = FileChange(path=".made-up/state.json", change="added", origin="cli_state", after=_state("{}"))
        changes.append(state)
    return "".join(parts), sorted(changes, key=lambda change: change.path)


def _state(text: str) -> FileState:
    raw = text.encode()
    return FileState(kind="file", size=len(raw), mode=0o644, sha256=hashlib.sha256(raw).hexdigest())


def _last_words(kind: str, rng: random.Random) -> str:
    if kind == "hostile":
        return "\n".join((*MARKUP, HALF_A_PAIR))
    if kind == "declined":
        return "The requirements contradict each other. I changed nothing: both cannot hold. Please decide."
    if kind == "fabricated":
        return "I fixed it, and all tests pass."
    return " ".join(_prose(rng) for _ in range(4))


def _verification(task: TaskFacts, kind: str, rng: random.Random) -> Verification:
    names = [*task.fail_to_pass, *task.pass_to_pass]
    passing = round(WAYS[kind].passes * len(names))
    message = MARKUP[0] if kind == "hostile" else "AssertionError: 3 != 4"
    tests = [
        TestResult(
            name=name,
            status="passed" if index < passing else "failed",
            message=None if index < passing else message,
        )
        for index, name in enumerate(names)
    ]
    if kind == "hostile":
        tests.append(TestResult(name=MARKUP[2], status="passed", message=MARKUP[3]))
    told = "".join(f"{test.status}  {test.name}\n" for test in tests)
    good = passing == len(names) and kind not in ("unverifiable", "fabricated")
    return Verification(
        exit_code=0 if good else 1,
        timed_out=False,
        reward=1.0 if good else 0.0,
        tests=tests,
        stdout_tail=told + (MARKUP[4] if kind == "hostile" else ""),
        stderr_tail="" if good else _prose(rng),
        reference_passes=False if kind == "unverifiable" else None,
    )


def write(directory: Path, task: TaskFacts, found: Evidence) -> None:
    """Every file of a cell but `cell.json` and `evidence.json`."""
    save_facts(directory, task)
    _write_calls(directory, found)
    _write_recording(directory / "recording.cast", found)
    _write_spans(directory / "spans.jsonl", task, found)
    before = {name: _state(name) for name in ("AGENTS.md", "README.md", "src/main.py", "tests/test_main.py")}
    after = before | {change.path: change.after for change in found.changes if change.after}
    home = {".made-up/config.toml": _state("x = 1"), ".made-up/log.txt": _state("log")}
    for name, manifest in (("before", before), ("after", after), ("home", home)):
        write_manifest(directory / f"{name}.json", manifest)
    (directory / "diff.patch").write_text(found.diff, "utf-8", "replace")
    (directory / "stdout.log").write_text(found.stdout_tail, "utf-8")
    (directory / "stderr.log").write_text(found.stderr_tail, "utf-8")
    (directory / "home.tar.gz").write_bytes(_HOME)


def _write_calls(directory: Path, found: Evidence) -> None:
    """`calls.jsonl` and `wire.jsonl.gz`, the whole conversation in each request as a CLI sends it."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "This cell is made up. " * 40}]
    answers = {call.start: call for call in found.tool_calls}
    lines, bodies = [], []
    for call in found.calls:
        times = ("start", "end", "sent", "first_byte", "first_token", "last_byte")
        kept = call.model_dump(exclude={"usage", "waits", *times})
        moved = {name: at + _MONOTONIC_S for name in times if (at := getattr(call, name)) is not None}
        waits = [(wait.start + _MONOTONIC_S, wait.end + _MONOTONIC_S) for wait in call.waits]
        path = "/v1/chat/completions"
        raw = RawCall.model_validate({**kept, **moved, "waits": waits, "wire": "chat", "path": path})
        lines.append(raw.model_dump_json() + "\n")
        answered = answers.get(call.end)
        message: dict[str, Any] = {"role": "assistant", "content": "The next step."}
        if answered is not None:
            function = {"name": answered.name, "arguments": answered.arguments}
            message["tool_calls"] = [{"id": answered.call_id, "type": "function", "function": function}]
        body = {
            "index": call.index,
            "wire": "chat",
            "target": "call",
            "path": path,
            "status": call.status,
            "request": {"model": "made-up", "messages": messages, "tools": []},
            "response": {"choices": [{"index": 0, "message": message, "finish_reason": call.finish_reason}]},
            "headers": {"content-type": "application/json"},
            "chunks": [],
            "end": "whole",
        }
        bodies.append(gzip.compress(json.dumps(body).encode() + b"\n", compresslevel=1, mtime=0))
        if answered is not None:
            result = {"role": "tool", "tool_call_id": answered.call_id, "content": answered.result}
            messages = [*messages, message, result]
    (directory / "calls.jsonl").write_text("".join(lines), "utf-8")
    (directory / "wire.jsonl.gz").write_bytes(b"".join(bodies))


def _write_recording(path: Path, found: Evidence) -> None:
    recorder = Recorder(path, 0.0, 120, 40, "made up", started_unix=_STARTED_NS // 10**9)
    recorder("stdout", found.phases["agent"].start, b"\x1b[1mmade-up agent\x1b[0m\r\n")
    for call in found.tool_calls:
        said = f"\x1b[32m$ {call.arguments}\x1b[0m\r\n{call.result}\r\n".replace("\n", "\r\n")
        recorder("stdout", call.start, said.encode("utf-8", "replace"))
    said = found.final_message.text.replace("\n", "\r\n") + "\r\n"
    recorder("stdout", found.phases["agent"].end - 0.1, said.encode("utf-8", "replace"))
    recorder.close()


def _write_spans(path: Path, task: TaskFacts, found: Evidence) -> None:
    """As a real cell has them; the ids come from `random`, which the caller seeds."""
    tracer = CellTracer("made-up", path, {"cab.task": task.task}, anchor=Anchor(_STARTED_NS, 0))

    def stage(kind: Kind, phase: Span, parent: Any = None) -> Any:
        return tracer.add(
            stage_name(kind, cli="made-up", task=task.task), kind, phase.start, phase.end, parent=parent
        )

    agent = found.phases["agent"]
    stage(Kind.TASK_SETUP, found.phases["setup"])
    run = stage(Kind.ADAPTER_RUN, agent)
    container = stage(Kind.CONTAINER, agent, run)
    add_model_calls(tracer, container, found.calls)
    add_tool_calls(tracer, container, found.tool_calls)
    for kind in (Kind.COLLECT, Kind.VERIFY, Kind.SCORE):
        if str(kind) in found.phases:
            stage(kind, found.phases[str(kind)])
    whole = max(phase.end for phase in found.phases.values())
    stage(Kind.CLEANUP, Span(start=whole, end=whole + 0.1))
    tracer.root.end(tracer.anchor.unix_ns(whole + 0.1))
    tracer.close()
