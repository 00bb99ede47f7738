"""The tests of a gate: each pair's pass rate, and further axes with their limits, of one night against those
before.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from orchestrator.analysis.cells import Cell
from orchestrator.analysis.units import VALUES
from orchestrator.stats.many import holm
from orchestrator.stats.paired import MIN_TASKS, difference_interval
from orchestrator.stats.rates import cluster_bootstrap
from orchestrator.stats.rotation import (
    Bools,
    Floats,
    Ints,
    common_scale,
    detectable_drop,
    drop_p_values,
    smallest_p,
)

LimitedAxis = Literal["tokens", "usd", "wall_s", "active_s"]
LIMITED: tuple[LimitedAxis, ...] = ("tokens", "usd", "wall_s", "active_s")
"""What may be limited: numbers of `VALUES` that are above 0 and better when they are lower."""

Verdict = Literal["worse", "no significant change", "too few tasks"]

_STEP = 0.005
"""What logarithms are rounded to: half a per cent."""


@dataclass(frozen=True)
class Limit:
    """`factor` times the baseline's is what a pair's may be; only significantly more fails."""

    axis: LimitedAxis
    factor: float


@dataclass(frozen=True)
class Moved:
    """A task's value in the baseline, the mean over its nights, and now."""

    task: str
    before: float
    now: float


@dataclass(frozen=True)
class PairTest:
    """One axis of one pair over the `tasks` that it and the baseline have results of, on up to `nights`
    nights before.

    `before` and `now` are pass rates (means over tasks), or of a limited axis geometric means over tasks in
    the unit of the axis. `change` is the 95 % interval of now − before, of a limited axis of now ÷ before;
    None where the tasks are too few for one. `p` is one-sided, `p_holm` corrected over all tests of the gate;
    both are None where the tasks are too few for any result to be significant. `detectable` is about the drop
    of the pass rate that would be seen with a probability of 80 %; None where that cannot be said. `fell` has
    the tasks that are worse now, the worst first.
    """

    pair: str
    axis: Literal["passed"] | LimitedAxis
    limit: float | None
    tasks: int
    nights: int
    before: float | None
    now: float | None
    change: tuple[float, float] | None
    p: float | None
    p_holm: float | None
    verdict: Verdict
    detectable: float | None
    fell: tuple[Moved, ...]


def pair_tests(
    before: Sequence[Iterable[Cell]], now: Iterable[Cell], alpha: float, limits: Sequence[Limit]
) -> list[PairTest]:
    """The tests of all pairs of models that both sides have, by pair; `before` has each night's cells."""
    if not before:
        return []
    nights = [_by_pair(cells) for cells in (*before, now)]
    pairs = sorted(set(nights[-1]) & set().union(*nights[:-1]))
    axes: list[Limit | None] = [None, *limits]
    tables = [
        _Table.of(pair, axis, [night.get(pair, {}) for night in nights]) for pair in pairs for axis in axes
    ]
    # What can never be significant is no test, and costs the others nothing.
    tested = [table for table in tables if table.smallest_p <= alpha]
    while any(table.smallest_p > alpha / len(tested) for table in tested):
        tested.remove(max(tested, key=lambda table: table.smallest_p))
    p_values = [table.p_value() for table in tested]
    corrected = dict(zip(map(id, tested), zip(p_values, holm(p_values), strict=True), strict=True))
    return [table.test(corrected.get(id(table)), alpha, len(tested)) for table in tables]


@dataclass(frozen=True)
class _Table:
    """The values of one axis of one pair, (tasks, nights) with the last night's last; NaN where there is
    none.
    """

    pair: str
    limit: Limit | None
    tasks: tuple[str, ...]
    means: Floats
    runs: tuple[int, ...]

    @classmethod
    def of(cls, pair: str, limit: Limit | None, nights: Sequence[Mapping[str, Sequence[Cell]]]) -> _Table:
        names = sorted(set(nights[-1]) & set().union(*nights[:-1]))
        found = [[_values(night.get(task, ()), limit) for night in nights] for task in names]
        usable = [bool(values[-1]) and any(values[:-1]) for values in found]
        kept = [values for values, use in zip(found, usable, strict=True) if use]
        means = [[sum(night) / len(night) if night else math.nan for night in values] for values in kept]
        return cls(
            pair,
            limit,
            tuple(name for name, use in zip(names, usable, strict=True) if use),
            np.array(means).reshape(len(kept), len(nights)),
            tuple({len(night) for values in kept for night in values}),
        )

    @property
    def present(self) -> Bools:
        return np.asarray(~np.isnan(self.means)[None])

    @property
    def smallest_p(self) -> float:
        return float(smallest_p(self.present)[0]) if self.tasks else 1.0

    @property
    def scale(self) -> int:
        return common_scale(self.runs) if self.limit is None else round(1 / _STEP)

    def whole(self) -> Ints:
        """The values as whole numbers, higher where they are better, and the last night's less what the limit
        allows.
        """
        means = np.nan_to_num(self.means)
        if self.limit is not None:
            allowed = np.zeros(means.shape[1])
            allowed[-1] = math.log(self.limit.factor)
            means = allowed - means
        return np.asarray(np.rint(means * self.scale)[None], dtype=np.int64)

    def p_value(self) -> float:
        return float(drop_p_values(self.whole(), self.present)[0])

    def test(self, p: tuple[float, float] | None, alpha: float, tests: int) -> PairTest:
        """The outcome, with p-values before and after the correction, None where this was not tested."""
        plain = PairTest(
            pair=self.pair,
            axis="passed" if self.limit is None else self.limit.axis,
            limit=None if self.limit is None else self.limit.factor,
            tasks=len(self.tasks),
            nights=int((~np.isnan(self.means[:, :-1])).sum(axis=1).max(initial=0)),
            before=None,
            now=None,
            change=None,
            p=None,
            p_holm=None,
            verdict="too few tasks",
            detectable=None,
            fell=(),
        )
        if not self.tasks:
            return plain
        earlier, last = np.nanmean(self.means[:, :-1], axis=1), self.means[:, -1]
        back = np.exp if self.limit else np.asarray
        moved = [
            Moved(task, float(back(was)), float(back(now)))
            for task, was, now in zip(self.tasks, earlier, last, strict=True)
        ]
        sign = -1 if self.limit is None else 1
        fell = sorted(
            (it for it in moved if sign * (it.now - it.before) > 0),
            key=lambda it: -sign * (it.now - it.before),
        )
        known = replace(
            plain,
            before=float(back(earlier.mean())),
            now=float(back(last.mean())),
            change=self._change(earlier, last),
            fell=tuple(fell),
        )
        if p is None:
            return known
        return replace(
            known,
            p=p[0],
            p_holm=p[1],
            verdict="worse" if p[1] <= alpha else "no significant change",
            detectable=self._detectable(alpha / tests),
        )

    def _change(self, earlier: Floats, last: Floats) -> tuple[float, float] | None:
        if len(self.tasks) < MIN_TASKS:
            return None
        if self.limit is None:
            return difference_interval((last - earlier).tolist())
        [[low, high]] = cluster_bootstrap((last - earlier)[:, None], np.ones((len(self.tasks), 1))).tolist()
        return math.exp(low), math.exp(high)

    def _detectable(self, level: float) -> float | None:
        if self.limit is not None:
            return None
        drop = float(detectable_drop(self.whole(), self.present, scale=self.scale, level=level)[0])
        return drop if drop <= 1 else None


def _by_pair(cells: Iterable[Cell]) -> dict[str, dict[str, list[Cell]]]:
    """Counted cells of models, by pair and task."""
    found: dict[str, dict[str, list[Cell]]] = defaultdict(lambda: defaultdict(list))
    for cell in cells:
        if cell.counted and cell.kind == "result":
            found[f"{cell.contestant} × {cell.model}"][cell.task].append(cell)
    return {pair: dict(tasks) for pair, tasks in found.items()}


def _values(cells: Sequence[Cell], limit: Limit | None) -> list[float]:
    """What a night gave for a task: passes, or logarithms of what was measured and is above 0."""
    values = [VALUES["passed" if limit is None else limit.axis](cell) for cell in cells]
    if limit is None:
        return [value for value in values if value is not None]
    return [math.log(value) for value in values if value is not None and value > 0]
