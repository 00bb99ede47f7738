"""Whether a scorecard agrees with the run that it stands beside: all that it says was derived from there.

Files are edited, lost and copied; what is left is held against the run's metadata, prompts, patches, records
of attempts and the harness's verdicts.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from orchestrator.errors import CabError
from orchestrator.external.artifacts import METADATA, Artifacts, Attempt
from orchestrator.external.claims import NOT_RUN, claim_data
from orchestrator.external.command_record import read_record
from orchestrator.external.results import Scorecard, TaskResult, Verdict
from orchestrator.external.verdicts import of_attempt, stored_verdicts
from orchestrator.run.outcome import TABLE
from orchestrator.store.cells import CellStore

HELD_AGAINST = (METADATA, "prompts", "patches", "harness", "agent_logs")
"""What is read beside a scorecard and the run's results, in the run's directory."""

_HEAD = ("benchmark", "agent", "model", "conditions", "runs")
_NAMED = 3
"""As many are told by name."""


def held_against(card: Scorecard, out: Path) -> Scorecard:
    """The card with all tasks of the run beside it in the directory `out`, and in its claim what of it does
    not agree with that run. One that stands alone is taken as it is, and its claim says so.
    """
    if not (out / METADATA).is_file():
        return _claimed(card, reasons=(*card.claim.reasons, ALONE))
    try:
        beside = _Beside(card, Artifacts(out), dict(Artifacts(out).metadata() or {}))
        doubts = tuple(beside.doubts())
    except CabError as error:
        # Reports and pages go elsewhere: where the run is on this machine is none of theirs.
        said = str(error).replace(f"{out}/", "")
        return _claimed(card, doubts=(f"the run beside it cannot be read: {said}",))
    return _claimed(card.model_copy(update={"tasks": beside.tasks}), doubts=doubts)


ALONE = "taken as it stands: no run is beside it"


def _claimed(card: Scorecard, **changes: object) -> Scorecard:
    return card.model_copy(update={"claim": card.claim.model_copy(update=changes)})


@dataclass(frozen=True)
class _Beside:
    """A card, and the run that is stored beside it."""

    card: Scorecard
    artifacts: Artifacts
    metadata: Mapping[str, Any]

    @property
    def asked(self) -> Mapping[str, Any]:
        return dict(self.metadata["asked"])

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(self.asked["tasks"])

    @cached_property
    def results(self) -> dict[Attempt, TaskResult]:
        return {_attempt(result): result for result in self.card.results}

    def doubts(self) -> Iterator[str]:
        """In what they do not agree. Raises CabError where the run cannot be read."""
        planned = self.planned
        yield from self._of_head()
        times = Counter(_attempt(result) for result in self.card.results)
        if twice := [it for it, number in times.items() if number > 1]:
            yield f"it has {_named(twice)} twice"
        if strange := [it for it in times if it not in planned]:
            yield f"the run has nothing of {_named(strange)}"
        if lost := [it for it in planned if it not in times and self._has_ended(it)]:
            yield f"it lacks {_named(lost)}"
        differing = [
            (attempt, fields)
            for attempt, result in self.results.items()
            if attempt in planned and (fields := list(self._differing(attempt, result)))
        ]
        if differing:
            names = dict.fromkeys(name for _, fields in differing for name in fields)
            yield f"the run says otherwise of {_named([it for it, _ in differing])} ({', '.join(names)})"

    @cached_property
    def planned(self) -> dict[Attempt, None]:
        asked = self.asked
        return {
            Attempt(task, condition, run): None
            for task in self.tasks
            for condition in asked["conditions"]
            for run in range(1, asked["runs"] + 1)
        }

    def _of_head(self) -> Iterator[str]:
        stored = {name: getattr(self.card, name) for name in ("run_id", *_HEAD)}
        run = {"run_id": self.metadata["run_id"], **{name: self.asked[name] for name in _HEAD}}
        run["conditions"] = tuple(run["conditions"])
        if other := [name for name, value in stored.items() if value != run[name]]:
            yield f"of the run are other {', '.join(other)}"
        if self.card.tasks and set(self.card.tasks) != set(self.tasks):
            yield "of the run are other tasks"
        if (noted := self.metadata.get("claim")) is not None and noted != claim_data(self.card.claim):
            yield "the run came to another claim"

    def _differing(self, attempt: Attempt, result: TaskResult) -> Iterator[str]:
        """The fields of a result of which the run says something else."""
        said: dict[str, object] = {}
        facts = self.artifacts.prompt_facts(attempt.instance_id, attempt.condition)
        said |= {name: getattr(facts, name) for name in ("prompt_tokens", "context_tokens", "carried")}
        patch = self.artifacts.patch_of(attempt)
        said |= {"patch_bytes": len(patch), "patch_sha256": hashlib.sha256(patch).hexdigest()}
        said |= self._work(attempt)
        yield from (name for name, value in said.items() if getattr(result, name) != value)
        verdict = self._verdicts.get(attempt)
        if verdict is not None:
            verdict = of_attempt(verdict, result.patch_fault)
        if _said(result.verdict) != _said(verdict):
            yield "verdict"

    def _has_ended(self, attempt: Attempt) -> bool:
        mode = self.asked["mode"]
        if mode == "cli":
            return attempt in self._cells
        return mode == "dry_run" or read_record(self.artifacts, attempt) is not None

    def _work(self, attempt: Attempt) -> dict[str, object]:
        """What is stored of an agent's work."""
        mode = self.asked["mode"]
        if mode == "dry_run":
            return {"agent_outcome": NOT_RUN}
        if mode == "command":
            record = read_record(self.artifacts, attempt)
            return {
                "agent_outcome": record.outcome if record else None,
                "elapsed_s": record.elapsed_s if record else None,
            }
        return self._cells.get(attempt, {"cell_id": None})

    @cached_property
    def _cells(self) -> dict[Attempt, dict[str, object]]:
        store = CellStore(self.artifacts.results, self.metadata["run_id"])
        return {
            Attempt(entry.task.partition("/")[2], str(entry.condition), entry.run): {
                "cell_id": entry.cell_id,
                "agent_outcome": entry.outcome,
                "input_tokens": entry.prompt_tokens,
                "output_tokens": entry.completion_tokens,
            }
            for entry in store.finished().values()
            if TABLE[entry.outcome].counted
        }

    @cached_property
    def _verdicts(self) -> dict[Attempt, Verdict]:
        """The harness's on the patches that are there."""
        of: dict[tuple[str, int], dict[str, str]] = defaultdict(dict)
        for it in self.results.keys() & self.planned.keys():
            of[it.condition, it.run][it.instance_id] = self.artifacts.patch_of(it).decode("utf-8", "replace")
        return {
            Attempt(instance, *which): verdict
            for which, patches in of.items()
            for instance, verdict in stored_verdicts(self.artifacts.harness(*which), patches).items()
        }


def _attempt(result: TaskResult) -> Attempt:
    return Attempt(result.instance_id, result.condition, result.run)


def _said(verdict: Verdict | None) -> Verdict | None:
    """Incomplete is as good as none: neither says anything of a patch."""
    return None if verdict is None or verdict.outcome == "incomplete" else verdict


def _named(attempts: Collection[Attempt]) -> str:
    """Attempts by name, as many as a line holds."""
    names = [f"{it.instance_id} {it.condition} run {it.run}" for it in attempts]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"
