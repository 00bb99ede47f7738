"""One run of an external benchmark: the same tasks, agent and harness under each condition.

First everything that can be refused is; then prompts, work, predictions and, where it is asked for, the
harness. Each step keeps what it made, and the next begins from what is on disk: whatever ended a run, the
same command goes on with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from orchestrator.context.select import PolicyName, Profile
from orchestrator.context.tokens import tokens_of
from orchestrator.errors import InputError
from orchestrator.external.artifacts import (
    TASKS,
    Artifacts,
    Attempt,
    PromptFacts,
    command_as_told,
    digest_of,
)
from orchestrator.external.cells import Prompt, prompts_of, task_name, write_task
from orchestrator.external.codex_home import CodexSettings, write_plugin
from orchestrator.external.command_agent import CommandAgent
from orchestrator.external.command_record import CommandRecord
from orchestrator.external.container_agent import CliAgent, run_cells
from orchestrator.external.judging import HarnessRequest
from orchestrator.external.results import Scorecard
from orchestrator.external.stored import StoredRun
from orchestrator.external.suites import load_suite
from orchestrator.external.tasks import ExternalTask, load_tasks_json
from orchestrator.external.work import Mode
from orchestrator.plan.spec import EMBEDDED
from orchestrator.plan.task import load_task

Progress = Callable[[str], None]

FOLLOWS_CONTEXT = f"{EMBEDDED}follows-context"


@dataclass(frozen=True)
class CommandAsked:
    """A command line of the user's, to run on this machine. `timeout_s` is of one attempt."""

    words: tuple[str, ...]
    timeout_s: float
    codex_home: Path | None = None


@dataclass(frozen=True)
class RunRequest:
    """What a call asks for. `agent` is None of a dry run. `source` says where the tasks came from, without
    any path; `repos` holds clones of their repositories. `codex` are settings for the cells of codex.
    """

    out: Path
    benchmark: str
    source: Mapping[str, Any]
    tasks: tuple[ExternalTask, ...]
    conditions: tuple[str, ...]
    agent: CliAgent | CommandAsked | None
    policy: PolicyName = "auto"
    profile: Profile | None = None
    runs: int = 1
    workers: int = 1
    repos: Path | None = None
    codex: CodexSettings | None = None
    harness: HarnessRequest | None = None

    @property
    def mode(self) -> Mode:
        if self.agent is None:
            return "dry_run"
        return "cli" if isinstance(self.agent, CliAgent) else "command"

    def asked(self) -> dict[str, Any]:
        """All that decides what a run is, as its metadata keep it."""
        asked: dict[str, Any] = {
            "benchmark": self.benchmark,
            "source": dict(self.source),
            "tasks": {task.instance_id: task.digest for task in self.tasks},
            "conditions": list(self.conditions),
            "policy": self.policy,
            "profile": self.profile,
            "runs": self.runs,
            "mode": self.mode,
        }
        if isinstance(self.agent, CliAgent):
            asked |= _cli_asked(self.agent)
        elif self.agent is not None:
            words = self.agent.words
            asked |= {"agent": "command", "model": "not known", "command": command_as_told(words)}
            asked |= {"command_digest": digest_of(*words), "timeout_s": self.agent.timeout_s}
            asked |= {"own_codex_home": self.agent.codex_home is not None}
        else:
            asked |= {"agent": "none", "model": "none"}
        if self.codex is not None:
            asked["codex_settings"] = self.codex.taken
            asked["codex_settings_left_out"] = list(self.codex.left_out)
        return asked


def _cli_asked(agent: CliAgent) -> dict[str, Any]:
    return {
        "agent": agent.cli,
        "model": agent.model,
        "wire": agent.wire if agent.hosted else None,
        "settings": agent.settings.given(),
        "price": agent.price.model_dump(mode="json") if agent.price else None,
        "limits": agent.limits.model_dump(mode="json"),
        "timeout_s": agent.timeout_s,
        "require": list(agent.require),
    }


def run(request: RunRequest, progress: Progress) -> tuple[Scorecard, bool]:
    """Run what is not done yet; the scorecard, and whether the user stopped it before its end.

    Raises InputError for what cannot be run or belongs to another command, EnvironmentFault, PinMismatch and
    StoreError as a sweep does.
    """
    _check(request)
    artifacts = Artifacts(request.out)
    prompts = {
        task.instance_id: prompts_of(task, request.conditions, request.policy, request.profile)
        for task in request.tasks
    }
    with artifacts.locked():
        day = datetime.now(UTC)
        asked = request.asked()
        metadata = artifacts.begin(asked, f"{request.benchmark}-{asked['agent']}-{day:%Y%m%d}")
        _write_prompts(artifacts, request, prompts)
        interrupted = _work(artifacts, request, prompts, metadata["run_id"], progress)
        run = StoredRun(artifacts, metadata, request.tasks)
        card = run.finish(None if interrupted else request.harness, progress)
    return card, interrupted


def evaluate(out: Path, harness: HarnessRequest, progress: Progress) -> Scorecard:
    """Have the harness judge a run that is there, and nothing else. Raises InputError where none is."""
    artifacts = Artifacts(out)
    with artifacts.locked():
        metadata = artifacts.metadata()
        if metadata is None:
            mend = "give --suite, --tasks-json or --dataset_name to start one"
            raise InputError("holds no run to evaluate", place=str(out), mend=mend)
        if metadata["asked"]["mode"] == "dry_run":
            raise InputError(_NOT_JUDGED, place=str(out), mend="give the --out of a run with an agent")
        tasks = _stored_tasks(artifacts, metadata)
        harness.check(tasks)
        run = StoredRun(artifacts, metadata, tasks)
        run.require_work()
        return run.finish(harness, progress)


_NOT_JUDGED = "the patches of a dry run are no agent's: they are not judged"


def _stored_tasks(artifacts: Artifacts, metadata: Mapping[str, Any]) -> tuple[ExternalTask, ...]:
    """The tasks of a run that is there, which are what they were. Raises InputError."""
    source, digests = metadata["asked"]["source"], metadata["asked"]["tasks"]
    if suite := source.get("suite"):
        tasks = load_suite(suite, list(digests))
    else:
        tasks = load_tasks_json(artifacts.root / TASKS)
    for task in tasks:
        if digests.get(task.instance_id) != task.digest:
            mend = "give another --out to run the new one"
            raise InputError("is not the task that was run any more", place=task.instance_id, mend=mend)
    return tasks


def _check(request: RunRequest) -> None:
    """Raises InputError for what no run can do."""
    if request.mode == "dry_run" and request.harness is not None:
        raise InputError(_NOT_JUDGED, mend="leave --dry-run or --run-harness out")
    if request.harness is not None:
        request.harness.check(request.tasks)
    if isinstance(request.agent, CliAgent):
        request.agent.check()
        if request.agent.model == FOLLOWS_CONTEXT:
            _check_decided(request.tasks)


def _check_decided(tasks: tuple[ExternalTask, ...]) -> None:
    """Raises InputError where what a prompt carries decides nothing about a task."""
    undecided = [task.instance_id for task in tasks if not task.needs]
    if undecided:
        raise InputError(
            f"list nothing that they need of earlier work: {', '.join(undecided)}",
            place=f"--model {FOLLOWS_CONTEXT}",
            mend="take --suite continuation, or another model",
        )


def _write_prompts(
    artifacts: Artifacts, request: RunRequest, prompts: Mapping[str, Mapping[str, Prompt]]
) -> None:
    """`tasks.json`, prompts, snapshots and receipts."""
    artifacts.write_tasks(request.tasks)
    for instance, found in prompts.items():
        for condition, prompt in found.items():
            artifacts.write(artifacts.prompt(instance, condition), prompt.text.encode())
            told = {"snapshot.md": prompt.packaged.snapshot, "receipt.md": prompt.packaged.receipt}
            for name, text in told.items():
                if text is not None:
                    artifacts.write(artifacts.state(instance, condition) / name, text.encode())
            facts = PromptFacts(
                prompt_tokens=tokens_of(prompt.text),
                context_tokens=prompt.packaged.tokens,
                carried={str(group): ids for group, ids in prompt.packaged.carried.items()},
            )
            text = f"{json.dumps(facts.model_dump(mode='json'), indent=1)}\n"
            artifacts.write(artifacts.prompt(instance, condition).with_suffix(".json"), text.encode())


def _work(
    artifacts: Artifacts,
    request: RunRequest,
    prompts: Mapping[str, Mapping[str, Prompt]],
    run_id: str,
    progress: Progress,
) -> bool:
    """Have the agent work on what is not done; whether the user stopped it."""
    agent = request.agent
    if agent is None:
        return False
    artifacts.staging.mkdir(exist_ok=True)
    for task in request.tasks:
        path = artifacts.tasks / task_name(task)
        if not path.is_dir():
            progress(f"{task.instance_id}: laying out {task.repo}")
        write_task(task, prompts[task.instance_id], path, staging=artifacts.staging, repos=request.repos)
    if isinstance(agent, CommandAsked):
        _command(artifacts, agent, request, progress).run(_attempts(request), request.workers)
        return False
    if request.codex is not None:
        write_plugin(request.codex, artifacts.plugins)
    names = tuple(task_name(task) for task in request.tasks)
    spec = agent.spec(run_id, names, request.conditions, request.runs, request.workers)
    asked = json.dumps(request.asked(), sort_keys=True)
    return run_cells(artifacts, spec, run_id, digest_of(asked))


def _command(
    artifacts: Artifacts, agent: CommandAsked, request: RunRequest, progress: Progress
) -> CommandAgent:
    def told(attempt: Attempt, record: CommandRecord) -> None:
        where = f"{attempt.instance_id} {attempt.condition} run {attempt.run}"
        progress(f"{where}: {record.outcome} after {record.elapsed_s:.1f} s")

    found = CommandAgent(
        artifacts,
        agent.words,
        {task.instance_id: load_task(artifacts.tasks, task_name(task)) for task in request.tasks},
        agent.timeout_s,
        agent.codex_home,
        told,
    )
    found.check()
    return found


def _attempts(request: RunRequest) -> list[Attempt]:
    """Run 1 of everything first, and the conditions of one task one after another."""
    return [
        Attempt(task.instance_id, condition, run)
        for run in range(1, request.runs + 1)
        for task in request.tasks
        for condition in request.conditions
    ]
