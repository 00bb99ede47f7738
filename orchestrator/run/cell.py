"""The stages of one cell: task_setup, adapter_run, collect, verify, score, cleanup.

What cells share is in `Bench`; what a cell leaves is written into its staging directory, which the store
renames into place when the cell has ended. A fault that is not the agent's ends the cell with what was
gathered so far.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from secrets import token_hex
from typing import Any

from opentelemetry.sdk.trace import Span

from orchestrator.adapter import CONTAINER_ENV, HOME, SOLUTION, WORKDIR, Launch, LaunchContext
from orchestrator.errors import CellFault, NotStarted
from orchestrator.gateway.client import read_calls, read_wire, recorded_wire
from orchestrator.gateway.contract import CellRoute, Replay
from orchestrator.gateway.settings import AS_THE_CLI_ASKS
from orchestrator.plan.expand import PlannedCell, Recorded
from orchestrator.plan.stack import apply
from orchestrator.run import home
from orchestrator.run.bench import Bench
from orchestrator.run.collect import cli_usage, documents, write_manifest
from orchestrator.run.outcome import (
    CLI_NOT_STARTED,
    REPLAY_DIFFERS,
    Outcome,
    of_agent,
    of_fault,
    of_usage,
    of_verification,
)
from orchestrator.run.output import recorded
from orchestrator.run.prices import price_of
from orchestrator.run.script import build_script
from orchestrator.run.stack import Rules, lay_plugins, offered, said_of
from orchestrator.run.workdir import Classifier, Difference, Template, compare, copy_tree, scan
from orchestrator.sandbox.contract import ContainerEnd, ContainerSpec, Mount, RunningContainer, TtySize
from orchestrator.store.record import HostTried
from orchestrator.trace.anchor import Anchor
from orchestrator.trace.recording import tail_of
from orchestrator.trace.spans import (
    APPLIED_PLUGINS,
    CellTracer,
    Kind,
    Value,
    add_model_calls,
    add_tool_calls,
    stage_name,
)
from orchestrator.trace.tools import final_message, tool_calls
from scorers import evidence
from scorers.score import Scores, score

TTY = TtySize()
TAIL_BYTES = 8_000
MAX_MESSAGE_BYTES = 64_000
PRINTED_BYTES = 4_000_000
REPLAY_FILE = "replay.json"
"""Of a replay: which recorded calls were asked for, and the request that differs, if one does."""


class Cancelled(Exception):
    """The user stopped the sweep while this cell was under way; nothing of it is stored."""


@dataclass(frozen=True)
class CellResult:
    """What one try of a cell came to. `load` is the machine's one-minute load average at its start,
    `bounded` whether its scratch was; `offered` are the MCP servers of which a request named a tool."""

    outcome: Outcome
    facts: evidence.TaskFacts
    evidence: evidence.Evidence
    scores: Scores
    started_at: datetime
    duration_s: float
    load: float
    bounded: bool
    hosts_tried: tuple[HostTried, ...] | None = None
    offered: frozenset[str] = frozenset()


@dataclass
class CellRun:
    """One try of one cell. `run` is called once; `cancel` may be called from another thread. The cell of a
    task that is not graded ends with what the CLI left: no verifier runs.
    """

    bench: Bench
    cell: PlannedCell
    staging: Path
    on_stage: Callable[[str], None]
    _anchor: Anchor = field(default_factory=Anchor.now)
    _load: float = field(default_factory=lambda: os.getloadavg()[0])
    _evidence: dict[str, Any] = field(default_factory=dict)
    _phases: dict[str, evidence.Span] = field(default_factory=dict)
    _calls: list[evidence.ModelCall] = field(default_factory=list)
    _bounded: bool = False
    _hosts_tried: tuple[HostTried, ...] | None = None
    _offered: frozenset[str] = frozenset()
    _agent_began: float | None = None
    _running: RunningContainer | None = None
    _waiting: bool = False
    _limit_timer: threading.Timer | None = None
    _stopped_after_limit: bool = False
    _agent_ended: bool = False
    _clock: threading.Lock = field(default_factory=threading.Lock)
    _cancelled: threading.Event = field(default_factory=threading.Event)
    _differs: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._task = self.bench.tasks[self.cell.key.task]
        self._adapter = self.bench.adapters[self.cell.key.cli]
        self._price = price_of(self.bench.prices, self.cell.model)
        known = "no_price" if isinstance(self._price, str) else "price"
        self._evidence[known] = self._price
        self._credential = f"cab-{token_hex(24)}"
        self._plugins = self.bench.stacks.get(self.cell.key.stack, ())
        self._rules = Rules.of(self._adapter, self._plugins)
        self._mode = "stack" if self._plugins else "factory"

    def cancel(self) -> None:
        """Stop at once; `run` then raises Cancelled."""
        self._cancelled.set()
        if self._running is not None:
            self._running.kill("cancelled by the user")

    def run(self) -> CellResult:
        """Run all stages. A fault of the machine becomes an `infra_error`. Raises Cancelled, and
        EnvironmentFault or PinMismatch where every further cell would fail alike."""
        key = self.cell.key
        attributes: dict[str, Value] = {
            "cab.cli": key.cli,
            "cab.model": key.model,
            "cab.task": key.task,
            "cab.run": key.run,
        }
        with CellTracer(
            self.cell.cell_id,
            self.staging / "spans.jsonl",
            attributes,
            anchor=self._anchor,
            exporter=self.bench.span_exporter,
        ) as tracer:
            try:
                outcome = self._stages(tracer)
            except CellFault as fault:
                self._check_cancelled()
                outcome = of_fault(fault)
            except OSError as error:
                self._check_cancelled()
                outcome = of_fault(CellFault("disk", error.strerror or type(error).__name__))
            tracer.set(tracer.root, **{"cab.outcome": str(outcome)})
        return self._result(outcome)

    # ---- the stages ----

    def _stages(self, tracer: CellTracer) -> Outcome:
        grader, limits = self.bench.grader, self.bench.grader.limits
        with grader.scratch.cell(limits.scratch_bytes, limits.scratch_inodes, grader.agent[0]) as scratch:
            self._bounded = scratch.bounded
            with self._stage(tracer, Kind.TASK_SETUP):
                self._set_up(scratch.path)
            with self._stage(tracer, Kind.ADAPTER_RUN):
                agent = self._run_agent(scratch.path, self._launch(scratch.path, tracer), tracer)
            with self._stage(tracer, Kind.COLLECT):
                difference = self._collect(scratch.path)
            outcome = agent
            if agent.rule.counted and self._task.graded:
                with self._stage(tracer, Kind.VERIFY):
                    outcome = self._verify(scratch.path, difference, agent)
            with self._stage(tracer, Kind.SCORE):
                # What scoring costs is part of the cell; its numbers are computed again once that is known.
                score(self._task.facts(), self._frozen(), outcome_counts=outcome.rule.counted)
            cleanup_from = self._anchor.elapsed()
        name = stage_name(Kind.CLEANUP, cli=self.cell.key.cli, task=self.cell.key.task)
        tracer.add(name, Kind.CLEANUP, cleanup_from, self._anchor.elapsed())
        return outcome

    def _set_up(self, scratch: Path) -> None:
        """Lay out the workdir, owned by the agent's user, and the run directory."""
        copy_tree(self._template().path, scratch / "workdir", self.bench.grader.agent)
        (scratch / "run").mkdir()
        if self._adapter.needs_solution:
            copy_tree(self._task.solution_dir, scratch / "solution")

    def _template(self) -> Template:
        return self.bench.grader.template(self._task, self._rules)

    def _launch(self, scratch: Path, tracer: CellTracer) -> Launch:
        """How the CLI is started, with its stack's plugins, whose files and HOME's are laid out."""
        workdir, cli_home, *_ = map(self.bench.grader.sandbox.inside, self._mounts(scratch))
        context = LaunchContext(
            prompt=self._task.prompt(self.cell.key.condition),
            model=self.cell.model,
            credential=self._credential,
            base_url=self.bench.base_url,
            home=cli_home,
            workdir=workdir,
            rules=self._rules.read_from(self._task.workdir),
            rules_text=self._rules.text(self._task.workdir),
        )
        with tracer.span(APPLIED_PLUGINS, Kind.TOOL_CALL) as span:
            applied = apply(self._adapter, self._adapter.launch(context), self._plugins)
            lay_plugins(scratch / "run", applied.plugins)
            home.lay(scratch / "home", applied.launch.files, self.bench.grader.agent)
            tracer.set(span, **said_of(self.cell.key.cli, applied, len(self._plugins)))
        return applied.launch

    def _run_agent(self, scratch: Path, launch: Launch, tracer: CellTracer) -> Outcome:
        """Run the CLI to its end, metered; what it called is read even where the run failed."""
        spec = self._agent_spec(scratch, launch)
        name = stage_name(Kind.CONTAINER, cli=self.cell.key.cli, task=self.cell.key.task)
        with tracer.span(name, Kind.CONTAINER, image_digest=spec.image_id or "none") as span:
            try:
                end = self._metered(scratch, spec)
            finally:
                self._read_wire(tracer, span)
            self._check_cancelled()
            tracer.set(span, exit_code=end.exit_code, timed_out=end.timed_out)
        self._evidence["end"] = end
        self._check_replay()
        outcome = of_agent(end, self._calls, exit_code_tells=self._adapter.exit_code_tells)
        if outcome.rule.counted and "tokens.wire" in self.bench.require:
            return of_usage(outcome, self._calls)
        return outcome

    def _metered(self, scratch: Path, spec: ContainerSpec) -> evidence.AgentEnd:
        """Run the container with its way to the gateway open, its output recorded."""
        gateway, title = self.bench.gateway, self.cell.cell_id
        with recorded(self._adapter, self.staging, title=title, anchor=self._anchor, size=TTY) as sink:
            if self._adapter.uses_model:
                gateway.open_cell(
                    self._route(scratch),
                    on_wait=self._on_wait,
                    on_limit=self._on_limit,
                    on_difference=self._on_difference,
                )
            try:
                end = self.bench.grader.sandbox.run(spec, sink=sink, on_start=self._on_agent)
                self._time_agent(end.start, end.end)
                self._hosts_tried = self._hosts(end)
            except NotStarted as fault:
                raise CellFault(CLI_NOT_STARTED, fault.thing, place=fault.place) from fault
            except CellFault:
                # Nobody knows when the CLI ended. What was spent until the fault was known is its time.
                if self._agent_began is not None:
                    self._time_agent(self._agent_began, time.monotonic())
                raise
            finally:
                if self._adapter.uses_model:
                    gateway.close_cell(self.cell.cell_id)
                self._no_limit_timer()
        found = {key: value for key, value in asdict(end).items() if key not in {"start", "end", "asked"}}
        return evidence.AgentEnd(**found, stopped_after_limit=self._stopped_after_limit)

    def _hosts(self, end: ContainerEnd) -> tuple[HostTried, ...] | None:
        if end.asked is None:
            return None
        since = self._anchor.since
        return tuple(
            HostTried(name=found.name, first_s=since(found.first), count=found.count) for found in end.asked
        )

    def _time_agent(self, start: float, end: float) -> None:
        """Set-up lasts until the CLI starts."""
        since = self._anchor.since
        self._phases["setup"] = evidence.Span(start=0.0, end=since(start))
        self._phases["agent"] = evidence.Span(start=since(start), end=since(end))

    def _mounts(self, scratch: Path) -> list[Mount]:
        """Workdir and HOME, and for a baseline the solution."""
        solution = [Mount(scratch / "solution", SOLUTION)] if self._adapter.needs_solution else []
        places = (("workdir", WORKDIR), ("home", HOME))
        return [*(Mount(scratch / name, target, read_only=False) for name, target in places), *solution]

    def _agent_spec(self, scratch: Path, launch: Launch) -> ContainerSpec:
        mounts = self._mounts(scratch)
        cli_home = self.bench.grader.sandbox.inside(mounts[1])
        return ContainerSpec(
            name=f"cab-{token_hex(6)}",
            image_id=self.bench.pins.get(self.cell.key.cli),
            argv=launch.argv,
            env={**CONTAINER_ENV, "HOME": cli_home, **launch.env},
            workdir=WORKDIR,
            user=self.bench.grader.agent,
            mounts=tuple(mounts),
            run_dir=scratch / "run",
            time_limit_s=self.bench.timeout_s or self._task.agent_timeout_s,
            limits=self.bench.grader.limits,
            tty=TTY if self._adapter.tty else None,
            model_socket=self._adapter.uses_model,
            names=True,
            labels=self.bench.grader.labels(self.cell.cell_id),
        )

    def _route(self, scratch: Path) -> CellRoute:
        return CellRoute(
            cell_id=self.cell.cell_id,
            socket=scratch / "run" / "model.sock",
            socket_owner=self.bench.grader.agent,
            credential=self._credential,
            model=self.cell.model,
            endpoint=self.cell.endpoint,
            replay=self._replay(self.cell.recorded) if self.cell.recorded else None,
            script=build_script(self._task, self.cell.script) if self.cell.script else None,
            calls_path=self.staging / "calls.jsonl",
            wire_path=self.staging / "wire.jsonl.gz",
            max_calls=self._task.max_turns,
            max_tokens=self.bench.spending.tokens,
            max_usd=None if isinstance(self._price, str) else self.bench.spending.usd,
            price=None if isinstance(self._price, str) else self._price,
            max_retries=self.bench.call_retries,
            settings=self.bench.settings.get(self.cell.key.model, AS_THE_CLI_ASKS),
            other_models=self._adapter.other_models,
            cli_wire=self._adapter.wire,
            ask_usage=(self.cell.endpoint, self.cell.model) not in self.bench.unasked,
            workdir=self.bench.grader.sandbox.inside(self._mounts(scratch)[0]),
        )

    def _replay(self, recorded: Recorded) -> Replay:
        assert self._adapter.wire is not None
        wire_path = recorded.cell_dir / "wire.jsonl.gz"
        return Replay(
            cell_id=recorded.cell_id,
            calls_path=recorded.cell_dir / "calls.jsonl",
            wire_path=wire_path,
            report_path=self.staging / REPLAY_FILE,
            wire=recorded_wire(wire_path) or self._adapter.wire,
            paced=recorded.paced,
        )

    def _read_wire(self, tracer: CellTracer, span: Span) -> None:
        """Read what went over the wire into evidence and spans."""
        calls, wire = self.staging / "calls.jsonl", self.staging / "wire.jsonl.gz"
        self._calls = read_calls(calls, wire, self._anchor.origin, self._adapter.side_prompts)
        tools = tool_calls(read_wire(wire), self._calls)
        self._evidence |= {"calls": self._calls, "tool_calls": tools}
        add_model_calls(tracer, span, self._calls, recorded_wire(wire) or "chat")
        add_tool_calls(tracer, span, tools)
        self._offered = offered(self._plugins, (body.request for body in read_wire(wire)))

    def _collect(self, scratch: Path) -> Difference:
        """Listings, diff, documents, final message, HOME."""
        template, workdir = self._template(), scratch / "workdir"
        after = scan(workdir)
        classify = Classifier(template.path, self._adapter.state_globs, self._adapter.state_lines)
        difference = compare(template, workdir, after, classify)
        write_manifest(self.staging / "before.json", template.before)
        write_manifest(self.staging / "after.json", after)
        (self.staging / "diff.patch").write_bytes(difference.patch)
        write_manifest(
            self.staging / "home.json", home.archive(scratch / "home", self.staging / "home.tar.gz")
        )
        self._evidence |= {
            "changes": difference.changes,
            "diff": difference.patch.decode("utf-8", "replace"),
            "diff_truncated": difference.truncated,
            "documents": documents(workdir, difference),
            "extra_git_dir": any(path.endswith("/.git") for path in after),
            "final_message": self._final_message(),
            **cli_usage(self._adapter, tail_of(self.staging / "stdout.log", PRINTED_BYTES)),
            "stdout_tail": tail_of(self.staging / "stdout.log", TAIL_BYTES),
            "stderr_tail": tail_of(self.staging / "stderr.log", TAIL_BYTES),
        }
        return difference

    def _final_message(self) -> evidence.FinalMessage:
        if self._adapter.final_message == "wire":
            return final_message(read_wire(self.staging / "wire.jsonl.gz"), self._calls)
        text = tail_of(self.staging / "stdout.log", MAX_MESSAGE_BYTES)
        return evidence.FinalMessage(text=text, source="stdout" if text else "none")

    def _verify(self, scratch: Path, difference: Difference, agent: Outcome) -> Outcome:
        """Grade the work; where the verifier came to no result, ask whether the reference fares better."""
        verification = self.bench.grader.verify(
            self._task, scratch / "workdir", difference, self.cell.cell_id, self._on_start
        )
        self._check_cancelled()
        if verification.reward is None or not verification.tests:
            passes = self.bench.grader.reference_passes(self._task, self._on_start)
            verification = verification.model_copy(update={"reference_passes": passes})
        self._evidence["verification"] = verification
        return of_verification(agent, verification)

    # ---- the end ----

    def _result(self, outcome: Outcome) -> CellResult:
        facts, found = self._task.facts(), self._frozen()
        ends = [phase.end for phase in found.phases.values()]
        return CellResult(
            outcome=outcome,
            facts=facts,
            evidence=found,
            scores=score(facts, found, outcome_counts=outcome.rule.counted),
            started_at=self._anchor.started_at,
            duration_s=max(ends, default=self._anchor.elapsed()),
            load=self._load,
            bounded=self._bounded,
            hosts_tried=self._hosts_tried,
            offered=self._offered,
        )

    def _frozen(self) -> evidence.Evidence:
        return evidence.Evidence.model_validate({**self._evidence, "phases": self._phases})

    # ---- small things ----

    @contextmanager
    def _stage(self, tracer: CellTracer, kind: Kind) -> Iterator[None]:
        """One stage: told to the watcher, traced, timed where scores need it. Raises Cancelled before it."""
        self._check_cancelled()
        self.on_stage(kind)
        begin = self._anchor.elapsed()
        name = stage_name(kind, cli=self.cell.key.cli, task=self.cell.key.task)
        attributes: dict[str, Value] = {}
        if kind in (Kind.TASK_SETUP, Kind.ADAPTER_RUN):
            attributes = {"plugin_stack": self.cell.key.stack, "behavior_mode": self._mode}
        with tracer.span(name, kind, **attributes):
            yield
        if kind in (Kind.COLLECT, Kind.VERIFY, Kind.SCORE):
            self._phases[kind.value] = evidence.Span(start=begin, end=self._anchor.elapsed())

    def _check_replay(self) -> None:
        """Raises CellFault where a replay met a request that was not recorded."""
        for call in self._calls:
            if call.error == REPLAY_DIFFERS:
                raise CellFault(REPLAY_DIFFERS, call.error_detail or "a request differs")

    def _on_limit(self) -> None:
        """A call was refused since a limit was reached: a CLI that does not end by itself is ended."""
        with self._clock:
            if not self._agent_ended:
                self._limit_timer = threading.Timer(self.bench.limit_grace_s, self._stop_after_limit)
                self._limit_timer.daemon = True
                self._limit_timer.start()

    def _stop_after_limit(self) -> None:
        with self._clock:
            if self._running is not None and not self._agent_ended:
                self._stopped_after_limit = True
                self._running.kill("went on after a limit was reached")

    def _no_limit_timer(self) -> None:
        """The CLI has ended: what comes after is not to be stopped for its sake."""
        with self._clock:
            self._agent_ended = True
            if self._limit_timer is not None:
                self._limit_timer.cancel()

    def _on_difference(self) -> None:
        """A request of a replay was not recorded: nothing that comes after it means anything."""
        self._differs.set()
        if self._running is not None:
            self._running.kill("the replay differs")

    def _check_cancelled(self) -> None:
        if self._cancelled.is_set():
            raise Cancelled

    def _on_start(self, running: RunningContainer) -> None:
        self._running = running
        if self._cancelled.is_set():
            running.kill("cancelled by the user")
        if self._differs.is_set():
            running.kill("the replay differs")

    def _on_agent(self, running: RunningContainer) -> None:
        self._agent_began = time.monotonic()
        self._on_start(running)
        with self._clock:
            if self._waiting:
                running.pause_clock()

    def _on_wait(self, waiting: bool) -> None:
        """Waiting for a rate limit is not the agent's time, from its first call on, which may come before
        `_on_agent` does.
        """
        with self._clock:
            self._waiting = waiting
            if self._running is None:
                return
            if waiting:
                self._running.pause_clock()
            else:
                self._running.resume_clock()
