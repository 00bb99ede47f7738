"""Sweep-level rates and composites of a CLI, a model or a pair: mean over tasks of the mean over runs.

Infra errors are censoring, and not at random, so no rate stands alone: its coverage and both bounds (all
infra cells as failed, all as passed) stand beside it. Nothing here depends on the order of the rows.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from scorers.axis import Axis
from scorers.evidence import Model

By = Literal["cli", "model", "pair"]
State = Literal["counted", "infra", "not_run"]
MIN_COVERAGE = 0.95
NO_RUN = "no counted run"


class Row(Model):
    """One cell. `state`: `counted` in rates; `infra` ran and is not counted; `not_run` never ran to an
    answer.

    `passed` and the composites are of a counted cell; `composite_bounds` stand in for a composite that is
    null.
    """

    cli: str
    model: str
    task: str
    run: int = 1
    state: State
    passed: int | None = None
    composite: float | None = None
    composite_bounds: tuple[float, float] | None = None
    published: float | None = None
    total_tokens: int | None = None


class Estimate(Axis):
    """A mean, with the bounds [low, high] between which it lies whatever the unmeasured cells would have
    given."""

    value: float | None
    low: float
    high: float


class Group(Axis):
    """The numbers of one CLI, model or pair. `units` is the number of tasks, or of (other, task) that all
    share.

    `coverage` is counted ÷ (counted + infra). Tokens of infra cells stand on their own line.
    """

    name: str
    units: int
    counted: int
    infra: int
    not_run: int
    coverage: float | None
    pass_rate: Estimate
    cab_1: Estimate
    published_0_1: float | None
    tokens_per_correct_task: float | None
    infra_tokens: int | None


class Aggregate(Model):
    """All groups by one key, and the constants behind them."""

    by: By
    shared_units: int | None
    min_coverage: float = MIN_COVERAGE
    groups: list[Group]


Unit = tuple[str, ...]
"""What is run several times: a task, or one of several models or CLIs on it."""


@dataclass(frozen=True, slots=True)
class Range:
    """A mean over the counted runs of one unit, None where there are none; and the mean over all runs that
    were attempted, with what is not known of them at its least (`low`) and at its most (`high`).

    `unmeasured` counted runs have a value that is known by its bounds alone.
    """

    low: float
    high: float
    mean: float | None
    unmeasured: int


@dataclass(frozen=True, slots=True)
class UnitScores:
    """The cells of one unit as groups need them. Tokens are sums over those that are known."""

    counted: int
    infra: int
    not_run: int
    passes: int
    pass_rate: Range
    composite: Range
    published: float | None
    published_unmeasured: int
    tokens: int
    tokens_unknown: int
    infra_tokens: int
    infra_tokens_unknown: int

    @property
    def attempted(self) -> bool:
        return self.counted + self.infra > 0


ByUnit = Mapping[Unit, UnitScores]


def aggregate(rows: Iterable[Row], by: By) -> Aggregate:
    """Group the rows. A marginal (one CLI over models, one model over CLIs) uses only what all compared
    share."""
    names: dict[By, Callable[[Row], str]] = {
        "cli": lambda row: row.cli,
        "model": lambda row: row.model,
        "pair": lambda row: f"{row.cli} × {row.model}",
    }
    units: dict[By, Callable[[Row], Unit]] = {
        "cli": lambda row: (row.model, row.task),
        "model": lambda row: (row.cli, row.task),
        "pair": lambda row: (row.task,),
    }
    name, unit = names[by], units[by]
    groups: dict[str, dict[Unit, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in sorted(rows, key=lambda row: (row.cli, row.model, row.task, row.run, row.model_dump_json())):
        groups[name(row)][unit(row)].append(row)
    scores = {
        name: {unit: scores_of_unit(rows) for unit, rows in units.items()} for name, units in groups.items()
    }
    shared = None if by == "pair" else shared_units(scores.values())
    return Aggregate(
        by=by,
        shared_units=None if shared is None else len(shared),
        groups=[group_of(name, scores[name], shared) for name in sorted(scores)],
    )


def ranks_above(first: Estimate, second: Estimate, first_coverage: float, second_coverage: float) -> bool:
    """Whether one may be ranked above the other: enough coverage, and bounds that do not cross."""
    return min(first_coverage, second_coverage) >= MIN_COVERAGE and first.low > second.high


def scores_of_unit(rows: Sequence[Row]) -> UnitScores:
    """What the cells of one unit give to the groups that it is in."""
    counted = [row for row in rows if row.state == "counted"]
    infra = [row for row in rows if row.state == "infra"]
    published = [row.published for row in counted if row.published is not None]
    tokens = [row.total_tokens for row in counted if row.total_tokens is not None]
    infra_tokens = [row.total_tokens for row in infra if row.total_tokens is not None]
    return UnitScores(
        counted=len(counted),
        infra=len(infra),
        not_run=len(rows) - len(counted) - len(infra),
        passes=sum(row.passed == 1 for row in counted),
        pass_rate=_range([_pass_bounds(row) for row in counted], len(infra)),
        composite=_range([_composite_bounds(row) for row in counted], len(infra)),
        published=_mean(published) if published else None,
        published_unmeasured=len(counted) - len(published),
        tokens=sum(tokens),
        tokens_unknown=len(counted) - len(tokens),
        infra_tokens=sum(infra_tokens),
        infra_tokens_unknown=len(infra) - len(infra_tokens),
    )


def shared_units(groups: Iterable[ByUnit]) -> set[Unit]:
    """The units that every group attempted, of those that attempted any: one that never ran takes nothing
    from the others.
    """
    attempted = [tried for of in groups if (tried := {unit for unit, it in of.items() if it.attempted})]
    return set.intersection(*attempted) if attempted else set()


def group_of(name: str, by_unit: ByUnit, shared: Collection[Unit] | None = None) -> Group:
    """The numbers of one group, over the units in `shared`, or over all of its own where that is None."""
    reasons: dict[str, str] = {}
    tried = [
        scores
        for unit, scores in sorted(by_unit.items(), key=lambda item: item[0])
        if scores.attempted and (shared is None or unit in shared)
    ]
    counted, infra = sum(unit.counted for unit in tried), sum(unit.infra for unit in tried)
    if not tried:
        reasons["coverage"] = "no cell was attempted"
    return Group(
        name=name,
        units=len(tried),
        counted=counted,
        infra=infra,
        not_run=sum(unit.not_run for unit in by_unit.values()),
        coverage=counted / (counted + infra) if tried else None,
        pass_rate=_estimate([unit.pass_rate for unit in tried]),
        cab_1=_estimate([unit.composite for unit in tried]),
        published_0_1=_published(tried, reasons),
        tokens_per_correct_task=_per_pass(tried, reasons),
        infra_tokens=_infra_tokens(tried, reasons),
        reasons=reasons,
    )


def _pass_bounds(row: Row) -> tuple[float, float]:
    return (0.0, 1.0) if row.passed is None else (row.passed, row.passed)


def _composite_bounds(row: Row) -> tuple[float, float]:
    if row.composite is not None:
        return row.composite, row.composite
    return row.composite_bounds or (0.0, 1.0)


def _range(counted: list[tuple[float, float]], infra: int) -> Range:
    lows, highs = [low for low, _ in counted], [high for _, high in counted]
    return Range(
        low=_mean(lows + [0.0] * infra) if lows or infra else 0.0,
        high=_mean(highs + [1.0] * infra) if highs or infra else 1.0,
        mean=_mean(lows) if lows else None,
        unmeasured=sum(low != high for low, high in counted),
    )


def _estimate(units: Sequence[Range]) -> Estimate:
    values = [unit.mean for unit in units if unit.mean is not None]
    unmeasured = sum(unit.unmeasured for unit in units)
    why = f"{unmeasured} counted cells were not wholly measured" if unmeasured else NO_RUN
    value = None if unmeasured or not values else _mean(values)
    return Estimate(
        value=value,
        low=_mean([unit.low for unit in units]) if units else 0.0,
        high=_mean([unit.high for unit in units]) if units else 1.0,
        reasons={} if value is not None else {"value": why},
    )


def _published(units: Sequence[UnitScores], reasons: dict[str, str]) -> float | None:
    counted = [unit for unit in units if unit.counted]
    means = [unit.published for unit in counted if unit.published is not None]
    if not counted or any(unit.published_unmeasured for unit in counted):
        reasons["published_0_1"] = "a counted cell was not wholly measured" if counted else NO_RUN
        return None
    return _mean(means)


def _per_pass(units: Sequence[UnitScores], reasons: dict[str, str]) -> float | None:
    """Tokens of all counted attempts, failed ones too, per pass."""
    passes = sum(unit.passes for unit in units)
    unknown = sum(unit.tokens_unknown for unit in units)
    if unknown or not passes:
        reasons["tokens_per_correct_task"] = (
            f"tokens of {unknown} counted cells are not known" if passes else "nothing passed"
        )
        return None
    return sum(unit.tokens for unit in units) / passes


def _infra_tokens(units: Sequence[UnitScores], reasons: dict[str, str]) -> int | None:
    if unknown := sum(unit.infra_tokens_unknown for unit in units):
        reasons["infra_tokens"] = f"tokens of {unknown} infra cells are not known"
        return None
    return sum(unit.infra_tokens for unit in units)


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)
