"""One pair's handshake: up to three tries of the cell in `hello/`."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from orchestrator.plan.expand import PlannedCell
from orchestrator.plan.spec import Spending
from orchestrator.plan.task import Environment, Task
from orchestrator.run.bench import Bench
from orchestrator.run.cell import CellResult, CellRun
from orchestrator.run.ground import check_ground
from orchestrator.run.preflight.verdict import EDITED_FILE, WORD, Finding, judge
from orchestrator.store.cells import CellStore
from orchestrator.store.names import CellKey
from orchestrator.store.preflight import PairResult
from scorers.tokens import consumes

TASK_DIR = Path(__file__).parent / "hello"
TASK = "preflight/hello"
TRIES = 3
CALLS = 8
TOKENS = 150_000
"""Of one try. A CLI's own prompt is sent with each call, and takes up to 20,000 tokens."""

WALL_S = 180.0
LOCAL_WALL_S = 600.0
"""Seconds of one try; a model on CPU takes minutes to read a CLI's prompt."""

CALL_RETRIES = 2


def hello_task() -> Task:
    """The task of a handshake. It has no tests, no proof, and stands in no list of tasks."""
    return Task(
        language="python",
        category="preflight",
        max_turns=CALLS,
        reproduce=f"grep -q {WORD} {EDITED_FILE}",
        ground_truth_files=[EDITED_FILE],
        graded=False,
        canary="no file of this task is hidden",
        name=TASK,
        path=TASK_DIR,
        agent_timeout_s=WALL_S,
        verifier_timeout_s=WALL_S,
        environment=Environment(),
        instruction=(TASK_DIR / "instruction.md").read_text(encoding="utf-8"),
    )


def handshake_bench(bench: Bench) -> Bench:
    """What a sweep's cells share, as handshakes have it: their task and limits. Their spans go nowhere, and
    what the sweep requires is asked of what they found.
    """
    return replace(
        bench,
        tasks={TASK: hello_task()},
        timeout_s=None,
        spending=Spending(tokens=TOKENS, usd=bench.spending.usd),
        require=(),
        call_retries=min(bench.call_retries, CALL_RETRIES),
        span_exporter=None,
    )


@dataclass
class Handshake:
    """One pair's; `cell` is any of its cells, `bench` one of `handshake_bench`. `run` is called once;
    `cancel` may be called from another thread.
    """

    bench: Bench
    store: CellStore
    cell: PlannedCell
    local: bool
    key: str
    asks_usage: bool = True
    _results: list[CellResult] = field(default_factory=list)
    _run: CellRun | None = None
    _cancelled: threading.Event = field(default_factory=threading.Event)

    def cancel(self) -> None:
        """Stop at once; `run` then raises Cancelled."""
        self._cancelled.set()
        if self._run is not None:
            self._run.cancel()

    def run(self) -> PairResult:
        """Try until the edit is made, or nothing more is to be learnt. Raises Cancelled, and EnvironmentFault
        where every further handshake would fail alike.
        """
        began = time.monotonic()
        finding, tries = self._try(), 1
        if finding.cause == "bad_request" and self._may_not_be_asked():
            # Not one of the tries: the request was refused for what cab had put into it, or is refused again.
            self.asks_usage = False
            finding = self._try()
            self.asks_usage = finding.cause == "bad_request"
        while finding.again and tries < TRIES:
            finding, tries = self._try(), tries + 1
        return self._result(finding, tries, time.monotonic() - began)

    def _may_not_be_asked(self) -> bool:
        return self.asks_usage and self.bench.adapters[self.cell.key.cli].wire == "chat"

    def _try(self) -> Finding:
        key = CellKey(self.cell.key.cli, self.cell.key.model, TASK, len(self._results) + 1)
        cell = replace(self.cell, key=key, cell_id=key.cell_id(self.bench.sweep_id))
        asked = (cell.endpoint or "", cell.model)
        unasked = self.bench.unasked - {asked} if self.asks_usage else self.bench.unasked | {asked}
        wall = LOCAL_WALL_S if self.local else WALL_S
        bench = replace(self.bench, unasked=unasked, timeout_s=wall)
        staging = self.store.staging(key)
        self._run = CellRun(bench, cell, staging.path, lambda stage: self.store.note_stage(staging, stage))
        try:
            if self._cancelled.is_set():
                self._run.cancel()
            result = self._run.run()
        finally:
            self._run = None
            self.store.discard(staging)
        self._results.append(result)
        check_ground(self.bench, self.store, result.outcome)
        return judge(result.outcome, result.evidence)

    def _result(self, finding: Finding, tries: int, seconds: float) -> PairResult:
        scores = [result.scores.tokens for result in self._results]
        tokens, costs = [it.total_tokens for it in scores], [it.cost_usd for it in scores]
        calls = [call for it in self._results for call in it.evidence.calls if consumes(call)]
        return PairResult(
            cli=self.cell.key.cli,
            model=self.cell.key.model,
            endpoint=self.cell.endpoint,
            key=self.key,
            verdict=finding.verdict,
            cause=finding.cause,
            detail=finding.detail,
            last_words=finding.last_words,
            tries=tries,
            asks_usage=self.asks_usage,
            states_usage=all(call.usage is not None for call in calls) if calls else None,
            tokens=None if None in tokens else sum(filter(None, tokens)),
            known_tokens=sum(it.known.total_tokens for it in scores if it.known),
            cost_usd=None if None in costs else sum(filter(None, costs)),
            duration_s=seconds,
            at=datetime.now(UTC),
        )
