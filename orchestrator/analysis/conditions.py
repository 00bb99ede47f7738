"""Conditions beside each other: the same tasks under each, what came of them and what they took.

The unit of inference is the task; the methods are those of docs/reports.md. A rate is over all that was
submitted: an empty patch and one that cannot be applied are not resolved. There is none, and no comparison of
them, while a single result of any condition is missing.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Literal, get_args

from orchestrator.analysis.cells import Cell, Kind
from orchestrator.analysis.differences import (
    PASS_RATE,
    Difference,
    What,
    corrected,
    judged,
    of_measures,
    of_pass_rates,
    unknown,
)
from orchestrator.analysis.groups import contestant_of
from orchestrator.analysis.measures import Measure, mean_of, measured, ran_once
from orchestrator.analysis.sides import VALUE
from orchestrator.stats.paired import MIN_TASKS

Outcome = Literal["resolved", "unresolved", "error", "empty_patch", "incomplete"]
"""What the harness says of one prediction. `incomplete`: it has not said anything."""

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

MEASURES: Mapping[str, What] = {
    "prompt_tokens": What("difference", "lower", "prompt_tokens"),
    "input_tokens": What("difference", "lower", "input_tokens"),
    "patch_bytes": What("difference", "neither", "patch_bytes"),
    "elapsed_s": What("difference", "lower", "elapsed_s"),
}
"""What is compared beside the resolved rate: means of a run, over tasks."""


@dataclass(frozen=True)
class Attempt:
    """One task under one condition, once. `outcome` is None where nobody has judged it. `values` are those of
    `MEASURES`; what lacks or is None was not measured. `cell_id` is the cell that it ran as, if any.
    """

    task: str
    condition: str
    run: int
    outcome: Outcome | None
    values: Mapping[str, float | None] = field(default_factory=dict)
    cell_id: str | None = None


@dataclass(frozen=True)
class Condition:
    """One condition: `submitted` results of `tasks` tasks, the fewest and the most `runs` of a task.

    `outcomes` are all five apart, None where nothing was judged. `resolved` is the share of all submitted
    results, as the mean over tasks of the mean over runs. `means` has those of `MEASURES` that any
    condition measured.
    """

    name: str
    submitted: int
    tasks: int
    runs: tuple[int, int]
    outcomes: Mapping[Outcome, int] | None
    resolved: Measure
    means: Mapping[str, Measure]


@dataclass(frozen=True)
class Flip:
    """A task that B resolved more often than A, or less often: how many of its runs each resolved."""

    task: str
    a: int
    b: int
    runs_a: int
    runs_b: int

    @property
    def gained(self) -> bool:
        return self.b * self.runs_a > self.a * self.runs_b


@dataclass(frozen=True)
class Pair:
    """Condition `b` beside condition `a`, over the `tasks` that both have.

    A task is won where b resolved more of its runs than a; `wins`, `ties` and `losses` are None where there
    is no rate. `flips` are the tasks that are no tie, by name.
    """

    a: str
    b: str
    tasks: int
    only_a: int
    only_b: int
    runs_a: tuple[int, int]
    runs_b: tuple[int, int]
    wins: int | None
    ties: int | None
    losses: int | None
    flips: tuple[Flip, ...]
    resolved: Difference
    others: tuple[Difference, ...]

    @property
    def differences(self) -> tuple[Difference, ...]:
        return (self.resolved, *self.others)


@dataclass(frozen=True)
class Conditions:
    """All conditions and every two of them. `withheld` says why there is no resolved rate, None where there
    is. One measure of all pairs is a family of tests.
    """

    conditions: tuple[Condition, ...]
    pairs: tuple[Pair, ...]
    withheld: str | None


def of_conditions(
    attempts: Iterable[Attempt],
    names: Sequence[str],
    *,
    withheld: str | None = None,
    compared: Collection[str] = tuple(MEASURES),
) -> Conditions:
    """What may be said of conditions, in the order of `names`; every two are compared, the later as B.

    With `withheld` no verdict is looked at: nothing of what is returned depends on any. `compared` are the
    measures that are compared between conditions.
    """
    given = list(attempts)
    if withheld is not None:
        given = [replace(attempt, outcome=None) for attempt in given]
    no_rate = withheld or _incomplete(given)
    tried: dict[str, dict[str, _Tries]] = {name: {} for name in names}
    runs: dict[tuple[str, str], list[Attempt]] = defaultdict(list)
    for attempt in given:
        runs[attempt.condition, attempt.task].append(attempt)
    for (name, task), of in sorted(runs.items(), key=lambda item: item[0]):
        tried[name][task] = _Tries(tuple(of))
    known = [name for name in MEASURES if any(attempt.values.get(name) is not None for attempt in given)]
    found = [_condition(name, tried[name], known, no_rate) for name in names]
    measures = {name: what for name, what in MEASURES.items() if name in known and name in compared}
    pairs = [_pair(a, b, tried[a], tried[b], measures, no_rate) for a, b in combinations(names, 2)]
    return Conditions(tuple(found), _with_verdicts(pairs), no_rate)


@dataclass(frozen=True)
class Agents:
    """Whose conditions may stand beside each other: of one kind and methodology, one CLI with one stack and
    one model.
    """

    kind: Kind
    methodology: str
    agent: str
    model: str


def by_agent(cells: Iterable[Cell]) -> dict[Agents, list[Attempt]]:
    """The finished cells of sweeps as attempts, by who worked on them.

    Cells do not tell an error from a patch that does not resolve: both did not pass. One that did not count
    has no verdict.
    """
    found: dict[Agents, list[Attempt]] = defaultdict(list)
    for cell in cells:
        found[agents_of(cell)].append(_attempt(cell))
    return dict(found)


def agents_of(cell: Cell) -> Agents:
    """Whose conditions a cell belongs to."""
    return Agents(cell.kind, cell.methodology, contestant_of(cell.cli, cell.stack, None), cell.model)


def _attempt(cell: Cell) -> Attempt:
    outcome: Outcome | None = None
    if cell.counted:
        outcome = "resolved" if cell.row.passed else "unresolved"
    values = {"input_tokens": cell.input_tokens, "elapsed_s": cell.active_s}
    return Attempt(cell.task, VALUE["condition"](cell), cell.row.run, outcome, values, cell.cell_id)


class _Tries:
    """All runs of one task under one condition, as `units.Runs` has them."""

    def __init__(self, attempts: Sequence[Attempt]) -> None:
        self.attempts = attempts
        self.runs = len(attempts)
        self.passes = sum(attempt.outcome == "resolved" for attempt in attempts)
        values = {name: [attempt.values.get(name) for attempt in attempts] for name in MEASURES}
        known = {name: [it for it in of if it is not None] for name, of in values.items()}
        self.unknown = {name: self.runs - len(of) for name, of in known.items()} | {"passed": 0}
        self.means: dict[str, float | None] = {
            name: None if self.unknown[name] else math.fsum(of) / self.runs for name, of in known.items()
        }
        self.means["passed"] = self.passes / self.runs


_ByTask = Mapping[str, _Tries]


def _incomplete(attempts: Sequence[Attempt]) -> str | None:
    """Why there is no rate: results that have no verdict."""
    missing = sum(attempt.outcome in (None, "incomplete") for attempt in attempts)
    if not attempts:
        return "nothing was submitted"
    return f"partial: {missing} of {len(attempts)} results have no verdict" if missing else None


def _condition(name: str, tried: _ByTask, known: Sequence[str], no_rate: str | None) -> Condition:
    clusters = {task: [tries] for task, tries in tried.items()}
    attempts = [attempt for tries in tried.values() for attempt in tries.attempts]
    nothing = None if attempts else "nothing was submitted"
    ratios = {
        measure: nothing or mean_of(clusters, measure, "not measured in {} of {} results")
        for measure in known
    }
    rate = no_rate or nothing or mean_of(clusters, "passed", "")
    once = ran_once(clusters)
    # Each is resampled for itself: sizes that are the same under two conditions have the same interval.
    found = {
        measure: measured({measure: ratio}, once, (PASS_RATE,))[measure]
        for measure, ratio in {PASS_RATE: rate, **ratios}.items()
    }
    judged_ones = Counter(attempt.outcome for attempt in attempts if attempt.outcome is not None)
    runs = [tries.runs for tries in tried.values()] or [0]
    return Condition(
        name=name,
        submitted=len(attempts),
        tasks=len(tried),
        runs=(min(runs), max(runs)),
        outcomes=_all_of(judged_ones, len(attempts)) if judged_ones else None,
        resolved=found[PASS_RATE],
        means={measure: found[measure] for measure in known},
    )


def _all_of(outcomes: Mapping[Outcome, int], submitted: int) -> dict[Outcome, int]:
    """Every outcome with its number; a result that nobody judged beside others is incomplete."""
    found: dict[Outcome, int] = {name: outcomes.get(name, 0) for name in OUTCOMES}
    found["incomplete"] += submitted - sum(found.values())
    return found


def _pair(
    a: str, b: str, of_a: _ByTask, of_b: _ByTask, measures: Mapping[str, What], no_rate: str | None
) -> Pair:
    shared = sorted(of_a.keys() & of_b.keys())
    paired = [[(of_a[task], of_b[task])] for task in shared]
    runs_a, runs_b = ([side[task].runs for task in shared] or [0] for side in (of_a, of_b))
    rate = unknown(PASS_RATE, "difference", no_rate) if no_rate else of_pass_rates(paired)
    flips = () if no_rate else _flips({task: (of_a[task], of_b[task]) for task in shared})
    wins = sum(flip.gained for flip in flips)
    return Pair(
        a=a,
        b=b,
        tasks=len(shared),
        only_a=len(of_a) - len(shared),
        only_b=len(of_b) - len(shared),
        runs_a=(min(runs_a), max(runs_a)),
        runs_b=(min(runs_b), max(runs_b)),
        wins=None if no_rate else wins,
        ties=None if no_rate else len(shared) - len(flips),
        losses=None if no_rate else len(flips) - wins,
        flips=flips,
        resolved=rate,
        others=tuple(of_measures(paired, {name: what})[0] for name, what in measures.items()),
    )


def _flips(shared: Mapping[str, tuple[_Tries, _Tries]]) -> tuple[Flip, ...]:
    return tuple(
        Flip(task, a.passes, b.passes, a.runs, b.runs)
        for task, (a, b) in shared.items()
        if a.passes * b.runs != b.passes * a.runs
    )


def _with_verdicts(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """With what may be said, each measure corrected for how many pairs there are."""
    rates = corrected([pair.resolved if pair.tasks >= MIN_TASKS else None for pair in pairs])
    # Of each measure the p-values of all pairs; then of each pair those of all measures.
    others = zip(*(corrected(of) for of in zip(*(pair.others for pair in pairs), strict=True)), strict=True)
    found = list(others) or [()] * len(pairs)
    return tuple(
        replace(
            pair,
            resolved=judged(pair.resolved, rate, pair, "higher"),
            others=tuple(
                judged(it, p, pair, MEASURES[it.measure].better)
                for it, p in zip(pair.others, ps, strict=True)
            ),
        )
        for pair, rate, ps in zip(pairs, rates, found, strict=True)
    )
