"""What is run several times: one CLI (with stack and condition) with one model on one task.

Every summary and comparison is made of units; they are the same by whatever key one looks.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from orchestrator.analysis.cells import Cell, cells_of
from orchestrator.store.record import ClaimLevel
from scorers.aggregate import UnitScores, scores_of_unit

if TYPE_CHECKING:
    import polars as pl

VALUES: Mapping[str, Callable[[Cell], float | None]] = {
    "passed": lambda cell: cell.row.passed,
    "composite": lambda cell: cell.row.composite,
    "tokens": lambda cell: cell.row.total_tokens,
    "usd": lambda cell: cell.cost_usd,
    "wall_s": lambda cell: cell.wall_s,
    "active_s": lambda cell: cell.active_s,
    "model_s": lambda cell: cell.model_s,
    "blast": lambda cell: cell.blast,
    "findings": lambda cell: cell.findings,
}
"""What is averaged and compared, by cell; times in seconds, `usd` in US dollars."""


class Runs(Protocol):
    """What ran once or several times: how often, how often it passed, and of each value the mean over the
    runs, None where one of them was not measured; `unknown` says how many were not.
    """

    @property
    def runs(self) -> int: ...
    @property
    def passes(self) -> int: ...
    @property
    def means(self) -> Mapping[str, float | None]: ...
    @property
    def unknown(self) -> Mapping[str, int]: ...


@dataclass(frozen=True, slots=True)
class Unit:
    """The cells of one unit. `first` names it: contestant, model and task are those of every cell.

    `sums` and `means` have each of `VALUES` over the counted cells, None where one of them was not measured
    (`unknown` says how many were not) or, of means, where no cell counted. `runs` is the number of counted
    cells and `passes` of those that passed. `refusals` are those by the score 1, 0.5 and 0, `false_refusals`
    those with one and those without. `outcomes` and what follows are of all cells, and so is `unjudged`:
    those that wait for a verdict.
    """

    cells: tuple[Cell, ...]
    counted: tuple[Cell, ...]
    scores: UnitScores
    sums: Mapping[str, float | None]
    means: Mapping[str, float | None]
    unknown: Mapping[str, int]
    runs: int
    passes: int
    void: int
    unread: int
    unjudged: int
    refusals: tuple[int, int, int]
    false_refusals: tuple[int, int]
    outcomes: Counter[str]
    claims: frozenset[ClaimLevel]
    cli_versions: frozenset[str]
    model_builds: frozenset[str]
    sweeps: frozenset[str]

    @property
    def first(self) -> Cell:
        return self.cells[0]


def units_of(cells: pl.DataFrame | Sequence[Cell]) -> list[Unit]:
    """The units of a frame of `store.load_frame`, or of cells, by name. Cells of different kinds or
    methodology versions are in different ones.
    """
    found: dict[tuple[str, ...], list[Cell]] = defaultdict(list)
    for cell in cells if isinstance(cells, Sequence) else cells_of(cells):
        found[cell.kind, cell.methodology, cell.contestant, cell.model, cell.task].append(cell)
    return [unit_of(found[name]) for name in sorted(found)]


def unit_of(cells: Sequence[Cell]) -> Unit:
    """The unit of these cells; there is at least one."""
    counted = tuple(cell for cell in cells if cell.counted)
    known = {
        name: [value for cell in counted if (value := of(cell)) is not None] for name, of in VALUES.items()
    }
    unknown = {name: len(counted) - len(values) for name, values in known.items()}
    runs = len(counted)
    sums = {name: None if unknown[name] else math.fsum(values) for name, values in known.items()}
    scores = scores_of_unit([cell.row for cell in cells])
    verdicts = [cell.refusal for cell in counted]
    declined = [cell.false_refusal for cell in counted]
    return Unit(
        cells=tuple(cells),
        counted=counted,
        scores=scores,
        sums=sums,
        means={name: None if total is None or not runs else total / runs for name, total in sums.items()},
        unknown=unknown,
        runs=runs,
        passes=scores.passes,
        void=sum(cell.void is True for cell in counted),
        unread=sum(cell.integrity is None for cell in counted),
        unjudged=sum(cell.unjudged for cell in cells),
        refusals=(verdicts.count(1), verdicts.count(0.5), verdicts.count(0)),
        false_refusals=(declined.count(True), declined.count(False)),
        outcomes=Counter(cell.outcome for cell in cells),
        claims=frozenset(cell.claim for cell in cells),
        cli_versions=frozenset(cell.cli_version for cell in cells if cell.cli_version is not None),
        model_builds=frozenset(build for cell in cells for build in cell.model_builds),
        sweeps=frozenset(cell.sweep_id for cell in cells),
    )
