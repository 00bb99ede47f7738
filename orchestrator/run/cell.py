"""The stages of one cell: task_setup, adapter_run, collect, verify, score, cleanup.

What cells share is in `Bench`; what a cell leaves is written into its staging directory, which the store renames
into place when the cell has ended. A fault that is not the agent's ends the cell with what was gathered so far.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex

import scorers
from orchestrator.adapter import HOME, SOLUTION, WORKDIR, Launch, LaunchContext
from orchestrator.errors import CellFault
from orchestrator.gateway.client import read_calls, read_wire
from orchestrator.gateway.contract import CellRoute
from orchestrator.plan.expand import PlannedCell
from orchestrator.run.bench import Bench, agent_user
from orchestrator.run.collect import documents, tail, write_manifest
from orchestrator.run.home import archive
from orchestrator.run.outcome import Outcome, of_agent, of_fault, of_verification
from orchestrator.run.script import build_script
from orchestrator.run.workdir import Classifier, Difference, compare, copy_tree, give, scan
from orchestrator.sandbox.contract import ContainerEnd, ContainerSpec, Mount, RunningContainer, TtySize
from orchestrator.trace.recording import LogCapture, Recorder
from orchestrator.trace.spans import CellTracer
from orchestrator.trace.tools import final_message, tool_calls
from scorers.evidence import AgentEnd, Evidence, FinalMessage, Span

TTY = TtySize()
MAX_LOG_BYTES = 4 << 20
MAX_MESSAGE_BYTES = 64 << 10


class Cancelled(Exception):  # noqa: N818 - not an error: the user asked for it
    """The user stopped the sweep while this cell was under way; nothing of it is stored."""


@dataclass
class CellResult:
    """What one try of a cell came to."""

    outcome: Outcome
    evidence: Evidence
    scores: scorers.Scores
    started_at: datetime
    ended_at: datetime


@dataclass
class CellRun:
    """One try of one cell. `run` is called once; `cancel` may be called from another thread."""

    bench: Bench
    cell: PlannedCell
    staging: Path
    on_stage: Callable[[str], None] = lambda stage: None
    _origin: float = field(default_factory=time.monotonic)
    _started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    _gathered: dict[str, object] = field(default_factory=dict)
    _phases: dict[str, Span] = field(default_factory=dict)
    _running: RunningContainer | None = None
    _cancelled: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.task = self.bench.tasks[self.cell.task]
        self.adapter = self.bench.adapters[self.cell.cli]

    def cancel(self) -> None:
        """Stop at once; `run` then raises Cancelled."""
        self._cancelled.set()
        if self._running is not None:
            self._running.kill("cancelled by the user")

    def run(self) -> CellResult:
        """Run all stages. Raises Cancelled only; a fault of the machine becomes an `infra_error`."""
        attributes = {"cab.cli": self.cell.cli, "cab.model": self.cell.model, "cab.task": self.cell.task}
        spans = self.staging / "spans.jsonl"
        with CellTracer(self.cell.cell_id, spans, attributes, origin=self._origin, wall=self._started_at) as tracer:
            try:
                outcome = self._stages(tracer)
            except CellFault as fault:
                self._check_cancelled()
                outcome = of_fault(fault)
            return self._score(outcome, tracer)

    # --- stages ---

    def _stages(self, tracer: CellTracer) -> Outcome:
        limits = self.bench.limits
        with self.bench.scratch.cell(limits.scratch_bytes, limits.scratch_inodes, agent_user()[0]) as scratch:
            outcome = self._in_scratch(scratch.path, tracer)
            cleanup_from = self._now()
        tracer.add(f"cleanup:{self.cell.cli}", "cleanup", cleanup_from, self._now())
        return outcome

    def _in_scratch(self, scratch: Path, tracer: CellTracer) -> Outcome:
        with self._stage(tracer, f"prepare:{self.cell.task}", "task_setup"):
            launch = self._set_up(scratch)
        with self._stage(tracer, f"{self.cell.cli}:{self.cell.task}", "adapter_run"):
            agent = self._agent(scratch, launch, tracer)
        with self._stage(tracer, f"collect:{self.cell.task}", "collect"):
            difference = self._collect(scratch)
        if not agent.rule.counted:
            return agent
        with self._stage(tracer, f"verify:{self.cell.task}", "verify"):
            return self._verify(scratch, difference, agent)

    def _set_up(self, scratch: Path) -> Launch:
        """Lay out workdir, HOME and the run directory, owned by the agent's user."""
        user = agent_user()
        copy_tree(self.bench.template(self.task).path, scratch / "workdir", user)
        launch = self.adapter.launch(
            LaunchContext(
                prompt=self.task.instruction,
                model=self.cell.model,
                credential=f"cab-{token_hex(24)}",
            )
        )
        home = scratch / "home"
        home.mkdir(mode=0o700)
        for name, content in launch.files.items():
            file = home / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, "utf-8")
        give(home, user)
        (scratch / "run").mkdir()
        if self.adapter.needs_solution:
            copy_tree(self.task.solution_dir, scratch / "solution")
        return launch

    def _agent(self, scratch: Path, launch: Launch, tracer: CellTracer) -> Outcome:
        """Run the CLI to its end, metered; what it called is read even where the run failed."""
        at = self._now()
        tracer.add("applied_plugins", "tool_call", at, at, attributes={"tui": self.cell.cli, "count": 0})
        recorder = Recorder(self.staging / "recording.cast", time.monotonic(), TTY.columns, TTY.rows)
        logs = {name: LogCapture(self.staging / f"{name}.log", MAX_LOG_BYTES) for name in ("stdout", "stderr")}

        def sink(stream: str, at: float, data: bytes) -> None:
            logs[stream](stream, at, data)
            recorder(stream, at, data if self.adapter.tty else data.replace(b"\n", b"\r\n"))

        spec = self._agent_spec(scratch, launch)
        try:
            if self.adapter.uses_model:
                self.bench.gateway.open_cell(self._route(scratch), on_wait=self._on_wait)
            with tracer.span(f"{self.cell.cli}-run:{self.cell.task}", "container", image_digest=spec.image_id) as span:
                end = self.bench.sandbox.run(spec, sink=sink, on_start=self._on_start)
        finally:
            self._ran_until = self._now()
            for output in (recorder, *logs.values()):
                output.close()
            self._read_wire()
        self._check_cancelled()
        self._phases["setup"] = Span(start=0.0, end=end.start - self._origin)
        self._phases["agent"] = Span(start=end.start - self._origin, end=end.end - self._origin)
        self._evidence["end"] = agent = AgentEnd(
            exit_code=end.exit_code,
            signal=end.signal,
            timed_out=end.timed_out,
            oom_kills=end.oom_kills,
            cpu_s=end.cpu_s,
            max_rss_bytes=end.max_rss_bytes,
        )
        tracer.add_calls(self._calls, self._tools, parent=span)
        return of_agent(agent, self._calls, exit_code_tells=self.adapter.exit_code_tells)

    def _agent_spec(self, scratch: Path, launch: Launch) -> ContainerSpec:
        mounts = [Mount(scratch / "workdir", WORKDIR, read_only=False), Mount(scratch / "home", HOME, read_only=False)]
        if self.adapter.needs_solution:
            mounts.append(Mount(scratch / "solution", SOLUTION))
        return ContainerSpec(
            name=f"cab-{token_hex(6)}",
            image_id=self.bench.images[self.cell.cli].id,
            argv=launch.argv,
            env={"HOME": HOME, "LANG": "C.UTF-8", "TERM": "xterm-256color", **launch.env},
            workdir=WORKDIR,
            user=agent_user(),
            mounts=tuple(mounts),
            run_dir=scratch / "run",
            time_limit_s=self.bench.timeout_s or self.task.agent_timeout_s,
            limits=self.bench.limits,
            tty=TTY if self.adapter.tty else None,
            model_socket=self.adapter.uses_model,
            labels=self.bench.labels(self.cell.cell_id),
        )

    def _route(self, scratch: Path) -> CellRoute:
        kind = self.cell.script
        return CellRoute(
            cell_id=self.cell.cell_id,
            socket=scratch / "run" / "model.sock",
            socket_owner=agent_user(),
            credential=self._credential,
            model=self.cell.model,
            endpoint=self.cell.endpoint,
            script=build_script(self.task, kind) if kind else None,
            calls_path=self.staging / "calls.jsonl",
            wire_path=self.staging / "wire.jsonl.gz",
            max_calls=self.task.max_turns,
        )

    def _read_wire(self) -> None:
        """End the cell's route and read what went over it."""
        if not self.adapter.uses_model:
            return
        self.bench.gateway.close_cell(self.cell.cell_id)
        calls, wire = self.staging / "calls.jsonl", self.staging / "wire.jsonl.gz"
        self._calls = read_calls(calls, wire, self._origin)
        self._tools = tool_calls(read_wire(wire), self._calls)
        self._evidence |= {"calls": self._calls, "tool_calls": self._tools}

    def _collect(self, scratch: Path) -> Difference:
        """Listings, diff, documents, final message, HOME."""
        template, workdir = self.bench.template(self.task), scratch / "workdir"
        after = scan(workdir)
        classify = Classifier(template.path, self.adapter.state_globs)
        difference = compare(template, workdir, after, classify)
        write_manifest(self.staging / "before.json", template.before)
        write_manifest(self.staging / "after.json", after)
        (self.staging / "diff.patch").write_bytes(difference.patch)
        write_manifest(self.staging / "home.json", archive(scratch / "home", self.staging / "home.tar.gz"))
        self._evidence |= {
            "changes": difference.changes,
            "diff": difference.patch.decode("utf-8", "replace"),
            "documents": documents(workdir, difference.changes),
            "extra_git_dir": any(path.endswith("/.git") for path in after),
            "final_message": self._final_message(),
            "stdout_tail": tail(self.staging / "stdout.log"),
            "stderr_tail": tail(self.staging / "stderr.log"),
        }
        return difference

    def _final_message(self) -> FinalMessage:
        if self.adapter.final_message == "wire":
            return final_message(read_wire(self.staging / "wire.jsonl.gz"), self._calls)
        text = tail(self.staging / "stdout.log")
        return FinalMessage(text=text, source="stdout" if text else "none")

    def _verify(self, scratch: Path, difference: Difference, agent: Outcome) -> Outcome:
        """Grade the work; where the verifier came to no result, ask whether the reference fares better."""
        template = self.bench.template(self.task)
        place = scratch / "verify"
        place.mkdir()
        verification = self.bench.verifier(self.cell.cell_id).verify(
            self.task, template, scratch / "workdir", difference, place, f"cab-{token_hex(6)}"
        )
        self._check_cancelled()
        if verification.reward is None or not verification.tests:
            passes = self.bench.reference_passes(self.task)
            verification = verification.model_copy(update={"reference_passes": passes})
        self._evidence["verification"] = verification
        return of_verification(agent, verification)

    # --- the end ---

    def _score(self, outcome: Outcome, tracer: CellTracer) -> CellResult:
        """Score the evidence. The time of scoring is part of the cell, so latency is scored once it is known."""
        begin = self._now()
        with tracer.span(f"score:{self.cell.task}", "score"):
            scorers.score(self.task.facts(), self._frozen(), outcome.rule.counted)
        self._phases["score"] = Span(start=begin, end=self._now())
        evidence = self._frozen()
        scores = scorers.score(self.task.facts(), evidence, outcome.rule.counted)
        duration = self._phases["score"].end
        return CellResult(outcome, evidence, scores, self._started_at, duration)

    def _frozen(self) -> Evidence:
        return Evidence.model_validate({**self._evidence, "phases": self._phases})

    # --- small things ---

    def _now(self) -> float:
        return time.monotonic() - self._origin

    def _stage(self, tracer: CellTracer, name: str, kind: str) -> AbstractContextManager[object]:
        self._check_cancelled()
        self.on_stage(kind)
        return tracer.span(name, kind)

    def _check_cancelled(self) -> None:
        if self._cancelled.is_set():
            raise Cancelled

    def _on_start(self, running: RunningContainer) -> None:
        self._running = running
        if self._cancelled.is_set():
            running.kill("cancelled by the user")

    def _on_wait(self, waiting: bool) -> None:
        """Waiting for a rate limit is not the agent's time."""
        if self._running is not None:
            self._running.pause_clock() if waiting else self._running.resume_clock()
