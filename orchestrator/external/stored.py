"""A run as it is on disk: its work gathered, its predictions written and judged, its reports made.

Nothing here knows how the run was asked for beyond what its metadata keep.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from orchestrator.errors import InputError
from orchestrator.external.artifacts import Artifacts, Attempt
from orchestrator.external.cells import task_name
from orchestrator.external.claims import claim_data, claim_of
from orchestrator.external.command_agent import CommandAgent
from orchestrator.external.container_agent import Cells, laid_beside
from orchestrator.external.dry_run import fake_work
from orchestrator.external.judging import HarnessRequest, Predicted, judge_cells, verdicts_of
from orchestrator.external.patches import NotApplied, lines_of, predictor
from orchestrator.external.predictions import write_predictions
from orchestrator.external.report import write_reports
from orchestrator.external.results import Scorecard, TaskResult, Verdict
from orchestrator.external.scorecard import enforced
from orchestrator.external.tasks import ExternalTask
from orchestrator.external.verdicts import of_attempt, stored_verdicts
from orchestrator.external.work import Mode, Work
from orchestrator.plan.task import Task, load_task

Progress = Callable[[str], None]

NOT_APPLIED = "what the agent left does not apply to the tree that it was given"


@dataclass(frozen=True)
class _Made:
    """The patch that was made of what an agent left; none, and why, where that could not be."""

    patch: bytes
    fault: str = ""


@dataclass(frozen=True)
class StoredRun:
    """A run as it is on disk, whoever began it."""

    artifacts: Artifacts
    metadata: dict[str, Any]
    tasks: tuple[ExternalTask, ...]

    def require_work(self) -> None:
        """Raises InputError where no attempt has ended, or all that is known of them is gone."""
        if next(self._works(), None) is None:
            mode = self.asked["mode"]
            sweep = self.artifacts.results / str(self.metadata["run_id"])
            place = sweep if mode == "cli" else self.artifacts.root / "agent_logs"
            mend = "give the whole command of the run again, which runs what is missing"
            raise InputError(
                "holds no attempt that has ended: nothing is to be judged", place=str(place), mend=mend
            )

    def finish(self, harness: HarnessRequest | None, progress: Progress) -> Scorecard:
        """Gather the work, write predictions, have them judged where that is asked for, and report."""
        works = dict(self._works())
        made = dict(self._made(works))
        for attempt, it in made.items():
            if it.fault:
                progress(f"{attempt.instance_id} {attempt.condition} run {attempt.run}: {it.fault}")
        files = list(self._predictions(made))
        verdicts: dict[Attempt, Verdict] = {}
        for file in files:
            known = file.of(stored_verdicts(self.artifacts.harness(*file.which), file.patches))
            verdicts |= _on_attempts(known, made)
        # Before the harness, which may take hours: whatever ends it, what was made is told.
        card = self._report(works, made, verdicts)
        if harness is None:
            return card
        for file in files:
            tasks = tuple(task for task in self.tasks if task.instance_id in file.patches)
            work = self.artifacts.harness(*file.which)
            found = file.of(verdicts_of(harness, self.artifacts, tasks, file, work, progress))
            verdicts |= _on_attempts(found, made)
            if self.cells is not None:
                judge_cells(self.cells, _on_attempts(found, made))
        return self._report(works, made, verdicts)

    @property
    def asked(self) -> dict[str, Any]:
        return dict(self.metadata["asked"])

    @property
    def conditions(self) -> tuple[str, ...]:
        return tuple(self.asked["conditions"])

    @property
    def runs(self) -> int:
        return int(self.asked["runs"])

    @property
    def attempts(self) -> Iterator[Attempt]:
        for task in self.tasks:
            for condition in self.conditions:
                for run in range(1, self.runs + 1):
                    yield Attempt(task.instance_id, condition, run)

    @cached_property
    def cells(self) -> Cells | None:
        """The cells of CLIs; None where no CLI of cab's was the agent."""
        if self.asked["mode"] != "cli":
            return None
        return Cells.read(self.artifacts, self.metadata["run_id"])

    def _works(self) -> Iterator[tuple[Attempt, Work]]:
        """What each attempt that has ended came to."""
        mode: Mode = self.asked["mode"]
        command = CommandAgent(self.artifacts, (), {}, 0.0)
        for attempt in self.attempts:
            if mode == "dry_run":
                yield attempt, fake_work(attempt.instance_id)
            elif self.cells is not None:
                if attempt in self.cells.found:
                    yield attempt, self.cells.work(attempt)
            elif (record := command.record(attempt)) is not None:
                yield (
                    attempt,
                    Work(
                        record.outcome,
                        command.diff(attempt),
                        record.elapsed_s,
                        left_out=record.patch_left_out,
                    ),
                )

    def _made(self, works: Mapping[Attempt, Work]) -> Iterator[tuple[Attempt, _Made]]:
        """The patch of each, which is also written."""
        for task in self.tasks:
            own = {
                attempt: work for attempt, work in works.items() if attempt.instance_id == task.instance_id
            }
            if not own:
                continue
            for attempt, made in self._of_task(task, own):
                self.artifacts.write(self.artifacts.patch(attempt), made.patch)
                yield attempt, made

    def _of_task(self, task: ExternalTask, works: Mapping[Attempt, Work]) -> Iterator[tuple[Attempt, _Made]]:
        if self.asked["mode"] == "dry_run":
            yield from ((attempt, _Made(work.diff)) for attempt, work in works.items())
            return
        found: Task = load_task(self.artifacts.tasks, task_name(task))
        without = laid_beside(self.asked["agent"], found.workdir) if self.cells is not None else ()
        with predictor(found.workdir, task.prior_patch) as makes:
            for attempt, work in works.items():
                try:
                    yield attempt, _Made(makes.prediction(work.diff, without))
                except NotApplied as error:
                    yield attempt, _Made(b"", f"{NOT_APPLIED}: {error}")

    def _predictions(self, made: Mapping[Attempt, _Made]) -> Iterator[Predicted]:
        """The files of predictions, which are written: one for each condition and run."""
        for condition in self.conditions:
            for run in range(1, self.runs + 1):
                own = {
                    attempt.instance_id: it.patch.decode()
                    for attempt, it in made.items()
                    if (attempt.condition, attempt.run) == (condition, run)
                }
                if own:
                    path = self.artifacts.predictions(condition, run)
                    write_predictions(path, condition, own)
                    yield Predicted(condition, run, path, own)

    def _report(
        self,
        works: Mapping[Attempt, Work],
        made: Mapping[Attempt, _Made],
        verdicts: Mapping[Attempt, Verdict],
    ) -> Scorecard:
        results = tuple(
            self._result(attempt, work, made[attempt], verdicts.get(attempt))
            for attempt, work in works.items()
        )
        weaknesses = list(self.cells.weaknesses()) if self.cells is not None else []
        if self.asked["mode"] == "command":
            weaknesses.append("isolation none: the agent ran on the machine itself")
        if lacking := sum(work.left_out for work in works.values()):
            weaknesses.append(f"{lacking} of {len(works)} patches lack a change that is too large for one")
        if faults := sum(bool(it.fault) for it in made.values()):
            weaknesses.append(f"of {faults} of {len(works)} attempts {NOT_APPLIED}")
        expected = len(self.tasks) * len(self.conditions) * self.runs
        card = Scorecard(
            run_id=self.metadata["run_id"],
            benchmark=self.asked["benchmark"],
            agent=self.asked["agent"],
            model=self.asked["model"],
            conditions=self.conditions,
            runs=self.runs,
            tasks=tuple(task.instance_id for task in self.tasks),
            claim=claim_of(results, expected, weaknesses),
            results=results,
        )
        card = enforced(card)
        write_reports(self.artifacts.root, card)
        self.artifacts.note(self.metadata | {"claim": claim_data(card.claim)} | self._isolation())
        return card

    def _isolation(self) -> dict[str, Any]:
        """How agents were kept apart from the machine, as their records say."""
        if self.cells is not None:
            kinds = {str(it.isolation.containers) for it in self.cells.found.values() if it.isolation}
            return {"isolation": sorted(kinds)}
        return {"isolation": ["none"] if self.asked["mode"] == "command" else []}

    def _result(self, attempt: Attempt, work: Work, made: _Made, verdict: Verdict | None) -> TaskResult:
        facts = self.artifacts.prompt_facts(attempt.instance_id, attempt.condition)
        return TaskResult(
            instance_id=attempt.instance_id,
            condition=attempt.condition,
            run=attempt.run,
            cell_id=work.cell_id,
            agent_outcome=work.outcome,
            prompt_tokens=facts.prompt_tokens,
            context_tokens=facts.context_tokens,
            carried=facts.carried,
            patch_fault=made.fault,
            patch_bytes=len(made.patch),
            patch_sha256=hashlib.sha256(made.patch).hexdigest(),
            patch_lines=lines_of(made.patch),
            elapsed_s=work.elapsed_s,
            input_tokens=work.input_tokens,
            output_tokens=work.output_tokens,
            verdict=verdict,
        )


def _on_attempts(said: Mapping[Attempt, Verdict], made: Mapping[Attempt, _Made]) -> dict[Attempt, Verdict]:
    """Verdicts on attempts, from those on their predictions."""
    return {
        attempt: of_attempt(verdict, made[attempt].fault)
        for attempt, verdict in said.items()
        if attempt in made
    }
