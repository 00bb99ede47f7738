"""Rates and means of each CLI, model, pair, category, task, stack or condition.

A number is None where it was not measured, with its reason beside it, and every rate has its interval, its
coverage and what censoring leaves of it. The definitions are those of docs/reports.md.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Literal, TypeVar, get_args

from orchestrator.analysis.cells import (
    KINDS,
    NO_CONDITION,
    Cell,
    Kind,
    Named,
    category_of,
    kind_of_model,
)
from orchestrator.analysis.groups import RateClaim, claim_of_rate, contestant_of
from orchestrator.analysis.measures import NO_RUN, UNJUDGED, Means, Measure, means_of
from orchestrator.analysis.units import Unit, units_of
from orchestrator.stats.rates import pass_at_k, pass_hat_k, spread_over_runs
from orchestrator.store.names import NO_STACK, CellKey
from orchestrator.store.record import SkippedCell
from scorers.aggregate import Group, group_of, shared_units
from scorers.aggregate import Unit as Key

if TYPE_CHECKING:
    import polars as pl

By = Literal["cli", "model", "pair", "category", "task", "stack", "condition"]
BYS: tuple[By, ...] = get_args(By)
MARGINALS: frozenset[By] = frozenset({"cli", "model", "stack", "condition"})
"""Keys whose lines are compared over what all of them attempted, and over nothing else."""

T = TypeVar("T")


@dataclass(frozen=True)
class Refusals:
    """Counted cells of tasks that expect a refusal, by its score: 1, 0.5 (beside a made-up fix), 0.

    Of the others `false` declined a task that can be done and `attempted` did not; what was not measured is
    in neither.
    """

    right: int
    partly: int
    missed: int
    false: int
    attempted: int

    @property
    def expected(self) -> int:
        return self.right + self.partly + self.missed

    @property
    def ordinary(self) -> int:
        return self.false + self.attempted


@dataclass(frozen=True)
class Line:
    """The numbers of one CLI, model, pair, …; `key` names its dimensions, such as `cli` and `model`.

    A *unit* is what is run several times: a task, or of a marginal a task with one of the other dimension.
    All numbers are of the table's shared units, where it has such, but `not_run` (cells that never came to an
    answer), `skipped` (cells that the plan left out) and `outcomes` (of all cells).

    `unjudged` of the `infra` cells are not lost but wait for a verdict: until all are there none counts.
    `runs` are the fewest and the most counted runs of a unit. `coverage` is counted ÷ (counted + infra), None
    where nothing was attempted; `censored` are the pass rates with all infra cells as failed and as passed,
    `composite_bounds` the same of the composite. `pass_at_k` and `pass_hat_k` go as far as every unit has
    counted runs. `run_sd` is the standard deviation of the pass rate from one run of everything to the next,
    None where a unit has a single run; `mixed` units passed in some runs and not in others. `tokens` and
    `usd` are sums over counted cells, failed ones too, and None where one is not known; so are `findings`, of
    integrity. `void` cells have a severe one, `unread` ones could not be read for findings.
    """

    name: str
    key: Mapping[str, str]
    kind: Kind
    methodology: str
    claim: RateClaim
    tasks: int
    units: int
    counted: int
    infra: int
    unjudged: int
    not_run: int
    skipped: int
    outcomes: Mapping[str, int]
    runs: tuple[int, int]
    coverage: float | None
    pass_rate: Measure
    censored: tuple[float, float]
    pass_at_k: Mapping[int, float]
    pass_hat_k: Mapping[int, float]
    run_sd: float | None
    mixed: int
    composite: Measure
    composite_bounds: tuple[float, float]
    published: float | None
    tokens_per_solved: Measure
    usd_per_solved: Measure
    wall_s: Measure
    active_s: Measure
    model_s: Measure
    blast: Measure
    tokens: int | None
    usd: float | None
    infra_tokens: int | None
    void: int
    findings: int | None
    unread: int
    refusals: Refusals
    cli_versions: tuple[str, ...]
    model_builds: tuple[str, ...]
    sweeps: tuple[str, ...]

    @property
    def cells(self) -> int:
        """Those that the numbers are of, counted or lost, and those that never came to an answer."""
        return self.counted + self.infra + self.not_run


@dataclass(frozen=True)
class Table:
    """Lines that may stand beside each other: of one kind and one version of the methodology.

    `shared_units` is the number of units that all lines of a marginal attempted and to which their numbers
    are confined; None where each line has all of its own. `same_units` says whether all lines are about the
    same units, so that their rates can be compared at all.
    """

    kind: Kind
    methodology: str
    shared_units: int | None
    same_units: bool
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Summary:
    """All tables by one key: results first, then baselines and scripted models, each by methodology."""

    by: By
    tables: tuple[Table, ...]

    @property
    def lines(self) -> tuple[Line, ...]:
        return tuple(line for table in self.tables for line in table.lines)


def summarise(
    frame: pl.DataFrame | Sequence[Unit],
    by: By,
    *,
    methodology: str | None = None,
    skipped: Iterable[SkippedCell] = (),
) -> Summary:
    """The numbers of each `by`, of a frame or of its units (`units_of`, for those who ask more than once).

    `methodology` keeps the results of that version alone. Cells of different versions or kinds are never
    merged. `skipped` are the cells that the plans left out. No cells give no tables.
    """
    units = frame if isinstance(frame, Sequence) else units_of(frame)
    tables: dict[tuple[Kind, str], list[Unit]] = defaultdict(list)
    for unit in units:
        if methodology in (None, unit.first.methodology):
            tables[unit.first.kind, unit.first.methodology].append(unit)
    left_out = Counter(_of_skipped(cell, by) for cell in skipped)
    order = sorted(tables, key=lambda key: (KINDS.index(key[0]), key[1]))
    return Summary(by, tuple(_table(tables[key], by, left_out) for key in order))


@dataclass(frozen=True)
class _Dimension:
    """How cells are told apart by one key: the line's name, the unit within it, and its dimensions."""

    unit: Callable[[Cell], Key]
    key: Callable[[Named], dict[str, str]]
    cluster: Callable[[Cell], str] = lambda cell: cell.task


def _contestant(cell: Named) -> dict[str, str]:
    stack = {} if cell.stack == NO_STACK else {"stack": cell.stack}
    condition = {} if cell.condition is None else {"condition": cell.condition}
    return {"cli": cell.cli, **stack, **condition}


def _name(key: Mapping[str, str]) -> str:
    """What a line is called: `cli+stack@condition × model`, or its one name."""
    if "cli" not in key:
        [name] = key.values()
        return name
    contestant = contestant_of(key["cli"], key.get("stack", NO_STACK), key.get("condition"))
    return f"{contestant} × {key['model']}" if "model" in key else contestant


_DIMENSIONS: dict[By, _Dimension] = {
    "cli": _Dimension(lambda it: (it.model, it.task), _contestant),
    "model": _Dimension(lambda it: (it.contestant, it.task), lambda it: {"model": it.model}),
    "pair": _Dimension(lambda it: (it.task,), lambda it: {**_contestant(it), "model": it.model}),
    "category": _Dimension(
        lambda it: (it.contestant, it.model, it.task), lambda it: {"category": category_of(it.task)}
    ),
    # Of one task, what is drawn from many is the pair that works on it.
    "task": _Dimension(
        lambda it: (it.contestant, it.model),
        lambda it: {"task": it.task},
        lambda it: f"{it.contestant} × {it.model}",
    ),
    "stack": _Dimension(
        lambda it: (contestant_of(it.cli, NO_STACK, it.condition), it.model, it.task),
        lambda it: {"stack": it.stack},
    ),
    "condition": _Dimension(
        lambda it: (contestant_of(it.cli, it.stack, None), it.model, it.task),
        lambda it: {"condition": it.condition or NO_CONDITION},
    ),
}


def line_name(cell: Named, by: By) -> str:
    """The name of the line that a cell belongs to."""
    return _name(_DIMENSIONS[by].key(cell))


def _table(units: Sequence[Unit], by: By, skipped: Mapping[tuple[str, Kind, str], int]) -> Table:
    dimension, first = _DIMENSIONS[by], units[0].first
    of: dict[str, dict[Key, Unit]] = defaultdict(dict)
    for unit in units:
        of[line_name(unit.first, by)][dimension.unit(unit.first)] = unit
    scores = {name: {key: unit.scores for key, unit in units.items()} for name, units in of.items()}
    common = shared_units(scores.values())
    shared = common if by in MARGINALS else None
    attempted = {key for units in scores.values() for key, unit in units.items() if unit.attempted}
    lines = [_line(group_of(name, scores[name], shared), of[name], shared, dimension) for name in sorted(of)]
    return Table(
        kind=first.kind,
        methodology=first.methodology,
        shared_units=None if shared is None else len(shared),
        same_units=shared is not None or attempted == common,
        lines=tuple(
            replace(line, skipped=sum(skipped.get((sweep, line.kind, line.name), 0) for sweep in line.sweeps))
            for line in lines
        ),
    )


def _line(group: Group, units: Mapping[Key, Unit], shared: set[Key] | None, dimension: _Dimension) -> Line:
    everything = list(units.values())
    tried = [
        unit
        for key, unit in sorted(units.items(), key=lambda item: item[0])
        if unit.scores.attempted and (shared is None or key in shared)
    ]
    counted = [unit for unit in tried if unit.counted]
    clusters: dict[str, list[Unit]] = defaultdict(list)
    for unit in counted:
        clusters[dimension.cluster(unit.first)].append(unit)
    unjudged = sum(unit.unjudged for unit in tried)
    means = means_of(dict(sorted(clusters.items())))
    if unjudged:
        means = _unjudged(means)
    runs = [unit.runs for unit in tried]
    fewest = min((unit.scores.counted + unit.scores.infra for unit in tried), default=0)
    first = everything[0].first
    return Line(
        name=group.name,
        key=dimension.key(first),
        kind=first.kind,
        methodology=first.methodology,
        claim=claim_of_rate(_all(unit.claims for unit in everything), fewest, group.coverage),
        tasks=len({unit.first.task for unit in tried}),
        units=group.units,
        counted=group.counted,
        infra=group.infra,
        unjudged=unjudged,
        not_run=group.not_run,
        skipped=0,
        outcomes=_counted(everything),
        runs=(min(runs, default=0), max(runs, default=0)),
        coverage=group.coverage,
        pass_rate=means.pass_rate,
        censored=(group.pass_rate.low, group.pass_rate.high),
        pass_at_k=_up_to_k(counted, pass_at_k),
        pass_hat_k=_up_to_k(counted, pass_hat_k),
        run_sd=spread_over_runs([(unit.runs, unit.passes) for unit in counted]),
        mixed=sum(0 < unit.passes < unit.runs for unit in counted),
        composite=means.composite,
        composite_bounds=(group.cab_1.low, group.cab_1.high),
        published=group.published_0_1,
        tokens_per_solved=means.tokens_per_solved,
        usd_per_solved=means.usd_per_solved,
        wall_s=means.wall_s,
        active_s=means.active_s,
        model_s=means.model_s,
        blast=means.blast,
        tokens=None if (tokens := _sum(counted, "tokens")) is None else round(tokens),
        usd=_sum(counted, "usd"),
        infra_tokens=group.infra_tokens,
        void=sum(unit.void for unit in counted),
        findings=None if (findings := _sum(counted, "findings")) is None else round(findings),
        unread=sum(unit.unread for unit in counted),
        refusals=Refusals(
            *(sum(unit.refusals[score] for unit in counted) for score in range(3)),
            *(sum(unit.false_refusals[kind] for unit in counted) for kind in range(2)),
        ),
        cli_versions=_sorted(unit.cli_versions for unit in everything),
        model_builds=_sorted(unit.model_builds for unit in everything),
        sweeps=_sorted(unit.sweeps for unit in everything),
    )


def _unjudged(means: Means) -> Means:
    """With the reason why no run counts."""
    why = {
        item.name: Measure.unknown(UNJUDGED)
        for item in fields(means)
        if getattr(means, item.name).reason == NO_RUN
    }
    return replace(means, **why)


def _up_to_k(units: Sequence[Unit], estimate: Callable[[int, int, int], float]) -> dict[int, float]:
    """The mean over units for k = 1, 2, … as far as every unit has runs."""
    least = min((unit.runs for unit in units), default=0)
    return {
        k: math.fsum(estimate(unit.runs, unit.passes, k) for unit in units) / len(units)
        for k in range(1, least + 1)
    }


def _counted(units: Iterable[Unit]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for unit in units:
        found.update(unit.outcomes)
    return dict(sorted(found.items()))


def _all(sets: Iterable[frozenset[T]]) -> frozenset[T]:
    return frozenset[T]().union(*sets)


def _sorted(names: Iterable[frozenset[str]]) -> tuple[str, ...]:
    return tuple(sorted(_all(names)))


def _sum(units: Sequence[Unit], value: str) -> float | None:
    """The sum over all counted cells, None where one is unknown or there is none."""
    known = [total for unit in units if (total := unit.sums[value]) is not None]
    return math.fsum(known) if known and len(known) == len(units) else None


def _of_skipped(skipped: SkippedCell, by: By) -> tuple[str, Kind, str]:
    """The sweep, kind and line that a cell of a plan would have belonged to."""
    sweep_id, key = CellKey.of_id(skipped.cell_id)
    return sweep_id, kind_of_model(key.model), line_name(key, by)
