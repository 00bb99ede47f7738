"""A run as it is on disk: its work gathered, its predictions written and judged, its reports made.

Nothing here knows how the run was asked for beyond what its metadata keep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ValidationError

from orchestrator.errors import InputError, StoreError
from orchestrator.external.artifacts import Artifacts, Attempt
from orchestrator.external.cells import task_name
from orchestrator.external.claims import claim_of
from orchestrator.external.command_agent import CommandAgent
from orchestrator.external.container_agent import Cells, laid_beside
from orchestrator.external.dry_run import fake_work
from orchestrator.external.judging import HarnessRequest, Predicted, judge_cells, stored_verdicts, verdicts_of
from orchestrator.external.patches import NotApplied, lines_of, predictor
from orchestrator.external.predictions import write_predictions
from orchestrator.external.report import write_reports
from orchestrator.external.results import Scorecard, TaskResult, Verdict
from orchestrator.external.tasks import ExternalTask
from orchestrator.external.work import Mode, Work
from orchestrator.plan.task import Task, load_task
from orchestrator.store.files import store_errors

Progress = Callable[[str], None]


@dataclass(frozen=True)
class StoredRun:
    """A run as it is on disk, whoever began it."""

    artifacts: Artifacts
    metadata: dict[str, Any]
    tasks: tuple[ExternalTask, ...]

    def finish(self, harness: HarnessRequest | None, progress: Progress) -> Scorecard:
        """Gather the work, write predictions, have them judged where that is asked for, and report."""
        works = dict(self._works())
        patches = dict(self._patches(works))
        files = list(self._predictions(patches))
        verdicts: dict[Attempt, Verdict] = {}
        for file in files:
            verdicts |= file.of(stored_verdicts(self.artifacts.harness(*file.which), file.patches))
        # Before the harness, which may take hours: whatever ends it, what was made is told.
        card = self._report(works, patches, verdicts)
        if harness is None:
            return card
        for file in files:
            tasks = tuple(task for task in self.tasks if task.instance_id in file.patches)
            work = self.artifacts.harness(*file.which)
            found = verdicts_of(harness, self.artifacts, tasks, file, work, progress)
            verdicts |= file.of(found)
            if self.cells is not None:
                judge_cells(self.cells, file.of(found))
        return self._report(works, patches, verdicts)

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

    def _patches(self, works: Mapping[Attempt, Work]) -> Iterator[tuple[Attempt, bytes]]:
        """The prediction of each, which is also written."""
        for task in self.tasks:
            own = {
                attempt: work for attempt, work in works.items() if attempt.instance_id == task.instance_id
            }
            if not own:
                continue
            for attempt, patch in self._of_task(task, own):
                path = self.artifacts.patch(attempt)
                if not path.exists() or path.read_bytes() != patch:
                    self.artifacts.write(path, patch)
                yield attempt, patch

    def _of_task(self, task: ExternalTask, works: Mapping[Attempt, Work]) -> Iterator[tuple[Attempt, bytes]]:
        if self.asked["mode"] == "dry_run":
            yield from ((attempt, work.diff) for attempt, work in works.items())
            return
        found: Task = load_task(self.artifacts.tasks, task_name(task))
        without = laid_beside(self.asked["agent"], found.workdir) if self.cells is not None else ()
        with predictor(found.workdir, task.prior_patch) as made:
            for attempt, work in works.items():
                try:
                    yield attempt, made.prediction(work.diff, without)
                except NotApplied as error:
                    place = f"{attempt.instance_id} {attempt.condition} run {attempt.run}"
                    thing = f"what the agent left does not apply to the tree that it was given: {error}"
                    raise InputError(thing, place=place, mend="give another --out") from None

    def _predictions(self, patches: Mapping[Attempt, bytes]) -> Iterator[Predicted]:
        """The files of predictions, which are written: one for each condition and run."""
        for condition in self.conditions:
            for run in range(1, self.runs + 1):
                own = {
                    attempt.instance_id: patch.decode()
                    for attempt, patch in patches.items()
                    if (attempt.condition, attempt.run) == (condition, run)
                }
                if own:
                    path = self.artifacts.predictions(condition, run)
                    write_predictions(path, condition, own)
                    yield Predicted(condition, run, path, own)

    def _report(
        self,
        works: Mapping[Attempt, Work],
        patches: Mapping[Attempt, bytes],
        verdicts: Mapping[Attempt, Verdict],
    ) -> Scorecard:
        results = tuple(
            self._result(attempt, work, patches[attempt], verdicts.get(attempt))
            for attempt, work in works.items()
        )
        weaknesses = list(self.cells.weaknesses()) if self.cells is not None else []
        if self.asked["mode"] == "command":
            weaknesses.append("isolation none: the agent ran on the machine itself")
        if lacking := sum(work.left_out for work in works.values()):
            weaknesses.append(f"{lacking} of {len(works)} patches lack a change that is too large for one")
        expected = len(self.tasks) * len(self.conditions) * self.runs
        card = Scorecard(
            run_id=self.metadata["run_id"],
            benchmark=self.asked["benchmark"],
            agent=self.asked["agent"],
            model=self.asked["model"],
            conditions=self.conditions,
            runs=self.runs,
            claim=claim_of(results, expected, weaknesses),
            results=results,
        )
        write_reports(self.artifacts.root, card)
        self.artifacts.note(self.metadata | {"claim": card.claim.model_dump(mode="json")} | self._isolation())
        return card

    def _isolation(self) -> dict[str, Any]:
        """How agents were kept apart from the machine, as their records say."""
        if self.cells is not None:
            kinds = {str(it.isolation.containers) for it in self.cells.found.values() if it.isolation}
            return {"isolation": sorted(kinds)}
        return {"isolation": ["none"] if self.asked["mode"] == "command" else []}

    def _result(self, attempt: Attempt, work: Work, patch: bytes, verdict: Verdict | None) -> TaskResult:
        facts = self._facts(attempt)
        return TaskResult(
            instance_id=attempt.instance_id,
            condition=attempt.condition,
            run=attempt.run,
            cell_id=work.cell_id,
            agent_outcome=work.outcome,
            prompt_tokens=facts.prompt_tokens,
            context_tokens=facts.context_tokens,
            carried=facts.carried,
            patch_bytes=len(patch),
            patch_lines=lines_of(patch),
            elapsed_s=work.elapsed_s,
            input_tokens=work.input_tokens,
            output_tokens=work.output_tokens,
            verdict=verdict,
        )

    def _facts(self, attempt: Attempt) -> _Facts:
        """What the prompt of an attempt carried. Raises StoreError where that is not there, or damaged."""
        path = self.artifacts.prompt(attempt.instance_id, attempt.condition).with_suffix(".json")
        with store_errors(path):
            raw = path.read_bytes()
        try:
            return _Facts.model_validate_json(raw)
        except ValidationError:
            mend = "give the whole command of the run again, which writes it anew"
            raise StoreError("is damaged", place=str(path), mend=mend) from None


class _Facts(BaseModel):
    """`prompts/<instance>/<condition>.json`."""

    prompt_tokens: int
    context_tokens: int
    carried: dict[str, tuple[str, ...]]
