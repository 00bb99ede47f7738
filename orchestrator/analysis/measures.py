"""Means and ratios over tasks, each with its interval or the reason why there is none."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from orchestrator.analysis.units import Runs, Unit
from orchestrator.stats.rates import MIN_CLUSTERS, cluster_bootstrap, wilson

WILSON = "Wilson"
WILSON_OVER_TASKS = "Wilson over tasks"
BOOTSTRAP = "task bootstrap"
NO_INTERVAL = "none"

NO_RUN = "no counted run"
UNJUDGED = "cells wait for a verdict"
NOTHING_PASSED = "nothing passed"
FEW_TASKS = f"no interval from fewer than {MIN_CLUSTERS} tasks"
ALL_ALIKE = "no interval: all tasks are alike"
UNBOUNDED = "no upper bound: so few tasks passed that some resamples hold none"

Clusters = Mapping[str, Sequence[Unit]]
"""By task (or what else is drawn from many), its units; each has a counted cell."""

_WORDS = {
    "passed": "verdict",
    "composite": "composite",
    "tokens": "tokens",
    "usd": "cost",
    "wall_s": "wall clock",
    "active_s": "active time",
    "model_s": "time of model calls",
    "blast": "blast radius",
}


@dataclass(frozen=True)
class Measure:
    """A number with its 95 % interval. `reason` says why `value`, `low` or `high` is None, where one is.

    `method` says how the interval was made: `Wilson`, `Wilson over tasks`, `task bootstrap` or `none`.
    """

    value: float | None
    low: float | None
    high: float | None
    method: str
    reason: str | None

    @classmethod
    def unknown(cls, reason: str) -> Measure:
        return cls(None, None, None, NO_INTERVAL, reason)


@dataclass(frozen=True)
class Means:
    """The numbers of one line that have an interval. Times are seconds of a cell, `usd` US dollars."""

    pass_rate: Measure
    composite: Measure
    tokens_per_solved: Measure
    usd_per_solved: Measure
    wall_s: Measure
    active_s: Measure
    model_s: Measure
    blast: Measure


def means_of(clusters: Clusters) -> Means:
    """All measures of the counted cells of one line."""
    ratios: dict[str, Ratio | str] = {
        "pass_rate": _mean(clusters, "passed"),
        "composite": _mean(clusters, "composite"),
        "tokens_per_solved": _per_solved(clusters, "tokens"),
        "usd_per_solved": _per_solved(clusters, "usd"),
        "wall_s": _mean(clusters, "wall_s"),
        "active_s": _mean(clusters, "active_s"),
        "model_s": _mean(clusters, "model_s"),
        "blast": _mean(clusters, "blast"),
    }
    return Means(**measured(ratios, ran_once(clusters), _PROPORTIONS))


def ran_once(clusters: Mapping[str, Sequence[Runs]]) -> bool:
    """Whether each is one unit that has one counted run."""
    return all(len(units) == 1 and units[0].runs == 1 for units in clusters.values())


def measured(
    ratios: Mapping[str, Ratio | str], once: bool, proportions: Collection[str]
) -> dict[str, Measure]:
    """Each with its interval, all resampled together; a text says why there is no number.

    `once` says that the `pass_rate` is of one run a task; `proportions` are those between 0 and 1.
    """
    found: dict[str, Measure] = {}
    resampled: dict[str, Ratio] = {}
    for name, ratio in ratios.items():
        if isinstance(ratio, str):
            found[name] = Measure.unknown(ratio)
        elif name == "pass_rate" and once:
            found[name] = _score_interval(ratio, WILSON)
        elif not (why := ratio.why_not_resampled):
            resampled[name] = ratio
        elif name in proportions:
            found[name] = _score_interval(ratio, WILSON_OVER_TASKS)
        else:
            found[name] = Measure(ratio.value, None, None, NO_INTERVAL, why)
    return {**found, **_bootstrapped(resampled)}


_PROPORTIONS = ("pass_rate", "composite", "blast")
"""Means of numbers between 0 and 1."""


@dataclass(frozen=True)
class Ratio:
    """Σ totals ÷ Σ sizes over clusters."""

    totals: Sequence[float]
    sizes: Sequence[float]

    @property
    def value(self) -> float:
        return math.fsum(self.totals) / math.fsum(self.sizes)

    @property
    def clusters(self) -> int:
        return len(self.totals)

    @property
    def why_not_resampled(self) -> str | None:
        if self.clusters < MIN_CLUSTERS:
            return FEW_TASKS
        alike = all(
            math.isclose(total * self.sizes[0], self.totals[0] * size, rel_tol=1e-12)
            for total, size in zip(self.totals, self.sizes, strict=True)
        )
        return ALL_ALIKE if alike else None


def _score_interval(ratio: Ratio, method: str) -> Measure:
    """Wilson's interval with each task taken for one draw of 0 or 1, which it is where it ran once.

    It is never too narrow: no variable between 0 and 1 varies more than a coin of its mean.
    """
    value = min(1.0, max(0.0, ratio.value))
    return Measure(ratio.value, *wilson(value * ratio.clusters, ratio.clusters), method, None)


def _bootstrapped(ratios: Mapping[str, Ratio]) -> dict[str, Measure]:
    """All are resampled together, so that a task is drawn with all that is known of it."""
    if not ratios:
        return {}
    totals = np.array([ratio.totals for ratio in ratios.values()], dtype=float).T
    sizes = np.array([ratio.sizes for ratio in ratios.values()], dtype=float).T
    found = {}
    intervals = cluster_bootstrap(totals, sizes).tolist()
    for (name, ratio), (low, high) in zip(ratios.items(), intervals, strict=True):
        bounded = math.isfinite(high)
        found[name] = Measure(
            ratio.value, low, high if bounded else None, BOOTSTRAP, None if bounded else UNBOUNDED
        )
    return found


def _mean(clusters: Clusters, value: str) -> Ratio | str:
    return mean_of(clusters, value, f"{_WORDS[value]} of {{}} of {{}} counted cells not known")


def mean_of(clusters: Mapping[str, Sequence[Runs]], value: str, why: str) -> Ratio | str:
    """The mean over units of the mean over their runs. Where it is not known, `why`, with how many runs lack
    it of how many in its two pairs of braces.
    """
    if missing := _missing(clusters, value, why):
        return missing
    return Ratio(
        [math.fsum(unit.means[value] or 0 for unit in units) for units in clusters.values()],
        [len(units) for units in clusters.values()],
    )


def _per_solved(clusters: Clusters, value: str) -> Ratio | str:
    """The sum over all counted cells, failed ones too, for each that passed; or why it is not known."""
    why = f"{_WORDS[value]} of {{}} of {{}} counted cells not known"
    if missing := _missing(clusters, value, why):
        return missing
    passes = [sum(unit.passes for unit in units) for units in clusters.values()]
    if not any(passes):
        return NOTHING_PASSED
    totals = [math.fsum(unit.sums[value] or 0 for unit in units) for units in clusters.values()]
    return Ratio(totals, passes)


def _missing(clusters: Mapping[str, Sequence[Runs]], value: str, why: str) -> str | None:
    units = [unit for of in clusters.values() for unit in of]
    if not units:
        return NO_RUN
    unknown = sum(unit.unknown[value] for unit in units)
    runs = sum(unit.runs for unit in units)
    return why.format(unknown, runs) if unknown else None
