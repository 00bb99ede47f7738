"""Sweep-level rates and composites of a CLI, a model or a pair: mean over tasks of the mean over runs.

Infra errors are censoring, and not at random, so no rate stands alone: its coverage and both bounds (all
infra cells as failed, all as passed) stand beside it. Nothing here depends on the order of the rows.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Literal

from scorers.axis import Axis
from scorers.evidence import Model

By = Literal["cli", "model", "pair"]
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
    state: Literal["counted", "infra", "not_run"]
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
    shared = None if by == "pair" else _shared(groups)
    return Aggregate(
        by=by,
        shared_units=None if shared is None else len(shared),
        groups=[_group(name, groups[name], shared) for name in sorted(groups)],
    )


def ranks_above(first: Estimate, second: Estimate, first_coverage: float, second_coverage: float) -> bool:
    """Whether one may be ranked above the other: enough coverage, and bounds that do not cross."""
    return min(first_coverage, second_coverage) >= MIN_COVERAGE and first.low > second.high


def _shared(groups: dict[str, dict[Unit, list[Row]]]) -> set[Unit]:
    attempted = [
        {unit for unit, rows in of.items() if any(r.state != "not_run" for r in rows)}
        for of in groups.values()
    ]
    return set.intersection(*attempted) if attempted else set()


def _group(name: str, by_unit: dict[Unit, list[Row]], shared: set[Unit] | None) -> Group:
    reasons: dict[str, str] = {}
    kept = [rows for unit, rows in sorted(by_unit.items()) if shared is None or unit in shared]
    tried = [[row for row in rows if row.state != "not_run"] for rows in kept]
    tried = [rows for rows in tried if rows]
    rows = [row for unit in tried for row in unit]
    counted = [row for row in rows if row.state == "counted"]
    infra = [row for row in rows if row.state == "infra"]
    if not rows:
        reasons["coverage"] = "no cell was attempted"
    return Group(
        name=name,
        units=len(tried),
        counted=len(counted),
        infra=len(infra),
        not_run=sum(len(unit) for unit in by_unit.values())
        - sum(row.state != "not_run" for unit in by_unit.values() for row in unit),
        coverage=len(counted) / len(rows) if rows else None,
        pass_rate=_estimate(tried, _pass_bounds),
        cab_1=_estimate(tried, _composite_bounds),
        published_0_1=_published(tried, reasons),
        tokens_per_correct_task=_per_pass(counted, reasons),
        infra_tokens=_infra_tokens(infra, reasons),
        reasons=reasons,
    )


def _pass_bounds(row: Row) -> tuple[float, float]:
    return (0.0, 1.0) if row.passed is None else (row.passed, row.passed)


def _composite_bounds(row: Row) -> tuple[float, float]:
    if row.composite is not None:
        return row.composite, row.composite
    return row.composite_bounds or (0.0, 1.0)


def _estimate(units: list[list[Row]], bounds: Callable[[Row], tuple[float, float]]) -> Estimate:
    lows, highs, values = [], [], []
    unmeasured = 0
    for rows in units:
        pairs = [bounds(row) if row.state == "counted" else (0.0, 1.0) for row in rows]
        lows.append(_mean([low for low, _ in pairs]))
        highs.append(_mean([high for _, high in pairs]))
        measured = [pair for pair, row in zip(pairs, rows, strict=True) if row.state == "counted"]
        unmeasured += sum(low != high for low, high in measured)
        if measured:
            values.append(_mean([low for low, _ in measured]))
    why = f"{unmeasured} counted cells were not wholly measured" if unmeasured else NO_RUN
    value = None if unmeasured or not values else _mean(values)
    return Estimate(
        value=value,
        low=_mean(lows) if lows else 0.0,
        high=_mean(highs) if highs else 1.0,
        reasons={} if value is not None else {"value": why},
    )


def _published(units: list[list[Row]], reasons: dict[str, str]) -> float | None:
    counted = [[row.published for row in rows if row.state == "counted"] for rows in units]
    counted = [values for values in counted if values]
    measured = [[value for value in values if value is not None] for values in counted]
    if not counted or any(len(kept) < len(values) for kept, values in zip(measured, counted, strict=True)):
        reasons["published_0_1"] = "a counted cell was not wholly measured" if counted else NO_RUN
        return None
    return _mean([_mean(values) for values in measured])


def _per_pass(counted: list[Row], reasons: dict[str, str]) -> float | None:
    """Tokens of all counted attempts, failed ones too, per pass."""
    passes = sum(row.passed == 1 for row in counted)
    known = [row.total_tokens for row in counted if row.total_tokens is not None]
    if len(known) < len(counted) or not passes:
        reasons["tokens_per_correct_task"] = (
            "nothing passed"
            if not passes
            else f"tokens of {len(counted) - len(known)} counted cells are not known"
        )
        return None
    return sum(known) / passes


def _infra_tokens(infra: list[Row], reasons: dict[str, str]) -> int | None:
    known = [row.total_tokens for row in infra if row.total_tokens is not None]
    if len(known) < len(infra):
        reasons["infra_tokens"] = f"tokens of {len(infra) - len(known)} infra cells are not known"
        return None
    return sum(known)


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)
