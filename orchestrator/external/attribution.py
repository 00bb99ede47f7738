"""Which groups of the state an outcome hangs on, by leaving each out: `stateplane` beside `stateplane-no_X`.

A task counts for a group only where every prompt of the base condition carried that group: of the others the
two prompts are alike, and whatever they differ in is chance. Whether a task counts is known from the prompts
alone, before any outcome. The unit of inference is the task; the methods are those of docs/reports.md, with
Holm's correction over all groups that are tested together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.analysis.conditions import Attempt, Flip, of_conditions
from orchestrator.analysis.differences import Difference, corrected, judged
from orchestrator.errors import InputError
from orchestrator.external.results import Scorecard, TaskResult
from orchestrator.external.scorecard import DOUBTED
from orchestrator.stats.paired import MIN_TASKS

BASE = "stateplane"
WITHOUT = "-no_"


@dataclass(frozen=True)
class Ablation:
    """One group left out: the base condition (B) beside the one without it (A).

    `tasks` are those that count, by name; `uncarried` is how many shared tasks have nothing of the group to
    leave out. `helped` are tasks that were resolved more often with the group, `hurt` less often. `resolved`
    is with − without, so that a positive difference speaks for the group; its verdict is Holm's. `tokens` is
    what the group added to a prompt of these tasks, in the mean; None without a task. `displaced` counts the
    tasks in which other items came in where the group was left out: there the difference is not the group's
    alone.
    """

    group: str
    condition: str
    tasks: tuple[str, ...]
    uncarried: int
    runs: tuple[tuple[int, int], tuple[int, int]]
    """The fewest and the most runs of a task, with and without the group."""
    helped: tuple[Flip, ...]
    hurt: tuple[Flip, ...]
    resolved: Difference
    tokens: float | None
    displaced: int


@dataclass(frozen=True)
class Attribution:
    """All ablations of one run, by group. `withheld` says why no outcome is looked at, None where it is."""

    run_id: str
    base: str
    agent: str
    model: str
    claim: str
    ablations: tuple[Ablation, ...]
    withheld: str | None


def attribute(card: Scorecard, base: str = BASE) -> Attribution:
    """What each group that was left out made of it.

    Raises InputError where the run has no base condition or none without a group, or where a condition
    carried what its name says it leaves out.
    """
    left_out = {
        name.removeprefix(f"{base}{WITHOUT}"): name
        for name in card.conditions
        if name.startswith(f"{base}{WITHOUT}")
    }
    if base not in card.conditions or not left_out:
        raise InputError(
            f"has the conditions {', '.join(card.conditions)}: nothing to attribute a difference to",
            place=card.run_id,
            mend=f"run it with --conditions {base},{base}{WITHOUT}decisions,… (any of the groups)",
        )
    results: dict[str, dict[str, list[TaskResult]]] = defaultdict(lambda: defaultdict(list))
    for result in card.results:
        results[result.condition][result.instance_id].append(result)
    withheld = _withheld(card)
    found = [
        _ablation(group, name, base, results[base], results[name], withheld)
        for group, name in sorted(left_out.items())
    ]
    return Attribution(
        *(card.run_id, base, card.agent, card.model, card.claim.level, _with_verdicts(found), withheld)
    )


def _withheld(card: Scorecard) -> str | None:
    if card.claim.doubts:
        return f"{DOUBTED}: {'; '.join(card.claim.doubts)}"
    if card.claim.level != "harness_evaluated":
        return f"{card.claim.level}: nobody has judged the patches"
    return "partial: the harness has not judged every patch" if card.claim.partial else None


_ByTask = Mapping[str, list[TaskResult]]


def _ablation(
    group: str, name: str, base: str, with_it: _ByTask, without: _ByTask, withheld: str | None
) -> Ablation:
    for results in without.values():
        for result in results:
            if result.carried.get(group):
                raise InputError(
                    f"the prompt of run {result.run} carried {', '.join(result.carried[group])}",
                    place=f"{result.instance_id} under {name}",
                    mend="the record does not fit its condition: run it again",
                )
    shared = sorted(with_it.keys() & without.keys())
    tasks = tuple(task for task in shared if all(one.carried.get(group) for one in with_it[task]))
    attempts = [_attempt(one) for task in tasks for side in (without, with_it) for one in side[task]]
    compared = of_conditions(attempts, [name, base], withheld=withheld, compared=())
    [pair] = compared.pairs
    return Ablation(
        group=group,
        condition=name,
        tasks=tasks,
        uncarried=len(shared) - len(tasks),
        runs=(pair.runs_b, pair.runs_a),
        helped=tuple(flip for flip in pair.flips if flip.gained),
        hurt=tuple(flip for flip in pair.flips if not flip.gained),
        resolved=pair.resolved,
        tokens=_tokens(tasks, with_it) - _tokens(tasks, without) if tasks else None,
        displaced=sum(_displaced(group, with_it[task], without[task]) for task in tasks),
    )


def _attempt(result: TaskResult) -> Attempt:
    outcome = result.verdict.outcome if result.verdict else None
    return Attempt(result.instance_id, result.condition, result.run, outcome, cell_id=result.cell_id)


def _tokens(tasks: Sequence[str], results: _ByTask) -> float:
    """What the condition added to a prompt, in the mean over tasks."""
    means = [sum(one.context_tokens for one in results[task]) / len(results[task]) for task in tasks]
    return sum(means) / len(means)


def _displaced(group: str, with_it: Sequence[TaskResult], without: Sequence[TaskResult]) -> bool:
    """Whether items of other groups differ between the prompts of a task."""

    def others(results: Sequence[TaskResult]) -> set[tuple[str, str]]:
        return {
            (of, item)
            for one in results
            for of, items in one.carried.items()
            if of != group
            for item in items
        }

    return others(with_it) != others(without)


@dataclass(frozen=True)
class _Over:
    """What a difference is over, as `judged` asks for it."""

    tasks: int
    runs_a: tuple[int, int]
    runs_b: tuple[int, int]


def _with_verdicts(found: Sequence[Ablation]) -> tuple[Ablation, ...]:
    """With Holm's correction over the groups that have enough tasks for any claim."""
    enough = [one.resolved if len(one.tasks) >= MIN_TASKS else None for one in found]
    return tuple(
        replace(
            one,
            resolved=judged(one.resolved, p, _Over(len(one.tasks), one.runs[1], one.runs[0]), "higher"),
        )
        for one, p in zip(found, corrected(enough), strict=True)
    )
