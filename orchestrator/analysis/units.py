"""What is run several times: one CLI (with stack and condition) with one model on one task.

Every summary and comparison is made of units; they are the same by whatever key one looks.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
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


@dataclass(frozen=True)
class Unit:
    """The cells of one unit, of which there is at least one. `first` names it: contestant, model and task are
    those of every cell. The numbers are reckoned when they are asked for, and once.

    `sums` and `means` have each of `VALUES` over the counted cells, None where one of them was not measured
    (`unknown` says how many were not) or, of means, where no cell counted. `runs` is the number of counted
    cells and `passes` of those that passed. `refusals` are those by the score 1, 0.5 and 0, `false_refusals`
    those with one and those without. `outcomes` and what follows are of all cells, and so is `unjudged`:
    those that wait for a verdict.
    """

    cells: tuple[Cell, ...]

    @cached_property
    def first(self) -> Cell:
        return self.cells[0]

    @cached_property
    def counted(self) -> tuple[Cell, ...]:
        return tuple(cell for cell in self.cells if cell.counted)

    @cached_property
    def scores(self) -> UnitScores:
        return scores_of_unit([cell.row for cell in self.cells])

    @cached_property
    def _known(self) -> dict[str, list[float]]:
        return {
            name: [value for cell in self.counted if (value := of(cell)) is not None]
            for name, of in VALUES.items()
        }

    @cached_property
    def unknown(self) -> Mapping[str, int]:
        return {name: self.runs - len(values) for name, values in self._known.items()}

    @cached_property
    def sums(self) -> Mapping[str, float | None]:
        return {
            name: None if self.unknown[name] else math.fsum(values) for name, values in self._known.items()
        }

    @cached_property
    def means(self) -> Mapping[str, float | None]:
        runs = self.runs
        return {
            name: None if total is None or not runs else total / runs for name, total in self.sums.items()
        }

    @cached_property
    def runs(self) -> int:
        return len(self.counted)

    @cached_property
    def passes(self) -> int:
        return self.scores.passes

    @cached_property
    def void(self) -> int:
        return sum(cell.void is True for cell in self.counted)

    @cached_property
    def unread(self) -> int:
        return sum(cell.integrity is None for cell in self.counted)

    @cached_property
    def unjudged(self) -> int:
        return sum(cell.unjudged for cell in self.cells)

    @cached_property
    def refusals(self) -> tuple[int, int, int]:
        verdicts = [cell.refusal for cell in self.counted]
        return verdicts.count(1), verdicts.count(0.5), verdicts.count(0)

    @cached_property
    def false_refusals(self) -> tuple[int, int]:
        declined = [cell.false_refusal for cell in self.counted]
        return declined.count(True), declined.count(False)

    @cached_property
    def outcomes(self) -> Counter[str]:
        return Counter(cell.outcome for cell in self.cells)

    @cached_property
    def claims(self) -> frozenset[ClaimLevel]:
        return frozenset(cell.claim for cell in self.cells)

    @cached_property
    def cli_versions(self) -> frozenset[str]:
        return frozenset(cell.cli_version for cell in self.cells if cell.cli_version is not None)

    @cached_property
    def model_builds(self) -> frozenset[str]:
        return frozenset(build for cell in self.cells for build in cell.model_builds)

    @cached_property
    def sweeps(self) -> frozenset[str]:
        return frozenset(cell.sweep_id for cell in self.cells)


def units_of(cells: pl.DataFrame | Sequence[Cell]) -> list[Unit]:
    """The units of a frame of `store.load_frame`, or of cells, by name. Cells of different kinds or
    methodology versions are in different ones.
    """
    found: dict[tuple[str, ...], list[Cell]] = defaultdict(list)
    for cell in cells if isinstance(cells, Sequence) else cells_of(cells):
        found[cell.kind, cell.methodology, cell.contestant, cell.model, cell.task].append(cell)
    return [Unit(tuple(found[name])) for name in sorted(found)]
