"""Which contestants of a sweep are told apart, and which cells would tell more: adaptive runs.

A contestant is a CLI (with its stack) × model. A *round* is one run of all tasks of it: contestants of which
a pair is open run one more round, all of their tasks at once, so that tasks weigh alike in every rate. What
is decided comes from the stored results alone, round after round from the first on: an interrupted sweep
comes to the decisions that it would have come to. How it is decided: `stats/sequential.py`.

Results of models are ranked among themselves, and so are baselines, which ask no model. Scripted models do
what they are made to do: they run the fewest runs, and are not ranked.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Literal, get_args

import numpy as np

from orchestrator.analysis.cells import Kind, kind_of_model
from orchestrator.analysis.groups import contestant_of, state_of
from orchestrator.plan.runs import AdaptiveRuns
from orchestrator.stats.sequential import (
    ALPHA,
    Floats,
    Race,
    fewest_rounds,
    interval,
    log_evidence,
    moved_together,
)
from orchestrator.store.index import IndexEntry
from orchestrator.store.names import CellKey, less_run

RANKED: tuple[Kind, ...] = ("result", "baseline")
State = Literal["nothing_to_rank", "decided", "max_runs", "open"]
"""`nothing_to_rank`: no two contestants share a task. `decided`: every pair is told apart. `max_runs`: some
are not, after the most runs. `open`: a round is not finished. Of two families the later one holds."""


@dataclass(frozen=True)
class Contestant:
    """One CLI × model, and by task its cells' ids without their runs."""

    name: str
    kind: Kind
    cells: Mapping[str, str]


@dataclass(frozen=True)
class Standing:
    """Where a contestant stands among its kind: its rank is between `best_rank` and `worst_rank`, with all
    others' at once. `runs` are whole rounds; `pass_rate` is over their counted cells, None without one of
    each task. `moved_together` is a p-value against what the verdicts assume of its runs: that the tasks of
    one do not fail or pass together; None where that cannot be seen.
    """

    name: str
    kind: Kind
    tasks: int
    runs: int
    pass_rate: float | None
    best_rank: int
    worst_rank: int
    moved_together: float | None


@dataclass(frozen=True)
class Comparison:
    """Two contestants over the `tasks` that both have, by the `runs` that both have of each.

    `difference` is the first's pass rate less the second's; [low, high] holds its true value with 95 %
    confidence for all pairs of the kind and all looks at once. `better` is None while they are not told
    apart, and `decided_in` the run after which they were. `censored` is the number of cells without a
    result, which count for neither.
    """

    first: str
    second: str
    kind: Kind
    tasks: int
    runs: int
    difference: float | None
    low: float
    high: float
    better: str | None
    decided_in: int | None
    censored: int


@dataclass(frozen=True)
class Ranking:
    """What a sweep of adaptive runs tells so far. `to_run` are the cells of the next round that are not
    finished, of which some may be part of the sweep already. `scripted` are not ranked.
    """

    runs: AdaptiveRuns
    state: State
    standings: tuple[Standing, ...]
    comparisons: tuple[Comparison, ...]
    scripted: tuple[str, ...]
    to_run: tuple[str, ...]

    @property
    def decided(self) -> int:
        """How many pairs are told apart."""
        return sum(comparison.better is not None for comparison in self.comparisons)


@dataclass(frozen=True)
class Saved:
    """What ran, and what the most runs of every cell would have been: cells, tokens and USD.

    Tokens and money are of models alone. What did not run is taken for what that contestant's runs of that
    task took on average; None where not all of them stated it.
    """

    cells: int
    uniform_cells: int
    tokens: float | None
    uniform_tokens: float | None
    usd: float | None
    uniform_usd: float | None


def rank(
    order: Iterable[str],
    finished: Mapping[str, IndexEntry],
    runs: AdaptiveRuns,
    left_out: Collection[str] = (),
) -> Ranking:
    """Rank the contestants of a sweep, by the ids of its cells and those that are finished. Contestants with
    a cell in `left_out`, which cannot be run, are none.
    """
    contestants, families = _families(order, finished, runs, left_out)
    states = {family.state for family in families}
    state: State = "nothing_to_rank"
    for one in get_args(State):
        state = one if one in states else state
    to_run = _to_run(contestants, families, finished, runs)
    return Ranking(
        runs,
        "open" if to_run else state,
        tuple(standing for family in families for standing in family.standings()),
        tuple(comparison for family in families for comparison in family.comparisons()),
        tuple(it.name for it in contestants if it.kind == "pipeline"),
        to_run,
    )


def upcoming(
    order: Iterable[str],
    finished: Mapping[str, IndexEntry],
    runs: AdaptiveRuns,
    left_out: Collection[str] = (),
) -> tuple[str, ...]:
    """`Ranking.to_run` alone, without the rest."""
    contestants, families = _families(order, finished, runs, left_out)
    return _to_run(contestants, families, finished, runs)


def _to_run(
    contestants: Sequence[Contestant],
    families: Sequence[_Family],
    finished: Collection[str],
    runs: AdaptiveRuns,
) -> tuple[str, ...]:
    first = _missing(contestants, range(1, runs.min + 1), finished)
    return tuple(first or (cell for family in families for cell in family.to_run))


def _families(
    order: Iterable[str], finished: Mapping[str, IndexEntry], runs: AdaptiveRuns, left_out: Collection[str]
) -> tuple[list[Contestant], list[_Family]]:
    """All contestants, and those that are ranked by their kinds."""
    contestants = contestants_of(order, left_out)
    families = [_Family([it for it in contestants if it.kind == kind], finished, runs) for kind in RANKED]
    return contestants, [family for family in families if family.pairs]


def saved(
    order: Sequence[str],
    finished: Mapping[str, IndexEntry],
    runs: AdaptiveRuns,
    left_out: Collection[str] = (),
) -> Saved:
    """What a sweep of adaptive runs took, against the most runs for every contestant."""
    cells: dict[str, list[IndexEntry]] = defaultdict(list)
    contestants = contestants_of(order, left_out)
    names = {cell: it.kind for it in contestants for cell in it.cells.values()}
    for cell_id, entry in finished.items():
        if (name := less_run(cell_id)[0]) in names:
            cells[name].append(entry)
    of_models = [cells[name] for name, kind in names.items() if kind == "result"]
    tokens, uniform_tokens = _sums([[it.total_tokens for it in runs_of] for runs_of in of_models], runs.max)
    usd, uniform_usd = _sums([[it.cost_usd for it in runs_of] for runs_of in of_models], runs.max)
    return Saved(
        cells=sum(map(len, cells.values())),
        uniform_cells=len(names) * runs.max,
        tokens=tokens,
        uniform_tokens=uniform_tokens,
        usd=usd,
        uniform_usd=uniform_usd,
    )


def _sums(cells: Sequence[Sequence[float | None]], runs: int) -> tuple[float | None, float | None]:
    """The sum of what the runs of all cells took, and of `runs` times their means."""
    known = [[it for it in of_cell if it is not None] for of_cell in cells]
    if not cells or any(not of or len(of) < len(cell) for of, cell in zip(known, cells, strict=True)):
        return None, None
    return sum(map(sum, known)), sum(sum(of) / len(of) * runs for of in known)


def contestants_of(order: Iterable[str], left_out: Collection[str] = ()) -> list[Contestant]:
    """The contestants of these cells, by name."""
    cells: dict[str, dict[str, str]] = defaultdict(dict)
    kinds: dict[str, Kind] = {}
    gone = set()
    for cell_id in order:
        _, key = CellKey.of_id(cell_id)
        name = f"{contestant_of(key.cli, key.stack, key.condition)} × {key.model}"
        cells[name][key.task] = less_run(cell_id)[0]
        kinds[name] = kind_of_model(key.model)
        if cell_id in left_out:
            gone.add(name)
    return [Contestant(name, kinds[name], cells[name]) for name in sorted(cells) if name not in gone]


def cells_at_most(order: Iterable[str], runs: AdaptiveRuns) -> int:
    """How many cells adaptive runs of these cells can come to: those that are not ranked run the fewest."""
    contestants = contestants_of(order)
    ranked = _ranked(contestants)
    return sum(len(it.cells) * (runs.max if it in ranked else runs.min) for it in contestants)


def decided_earliest(order: Iterable[str]) -> int | None:
    """After how many runs the first pair of these cells' contestants can be told apart; None without one."""
    ranked = _ranked(contestants_of(order))
    pairs = [
        (one.kind, len(one.cells.keys() & two.cells.keys()))
        for one, two in combinations(ranked, 2)
        if one.kind == two.kind and one.cells.keys() & two.cells.keys()
    ]
    of_kind = Counter(kind for kind, _ in pairs)
    return min((fewest_rounds(tasks, of_kind[kind]) for kind, tasks in set(pairs)), default=None)


def _ranked(contestants: Iterable[Contestant]) -> list[Contestant]:
    """Those that share a task with another of their kind."""
    of = [it for it in contestants if it.kind in RANKED]
    return [
        it
        for it in of
        if any(
            it is not other and it.kind == other.kind and it.cells.keys() & other.cells.keys() for other in of
        )
    ]


def _missing(
    contestants: Iterable[Contestant], rounds: Iterable[int], finished: Collection[str]
) -> list[str]:
    """The cells of these rounds that are not finished."""
    ids = (f"{cell}#run{number}" for number in rounds for it in contestants for cell in it.cells.values())
    return [cell_id for cell_id in ids if cell_id not in finished]


class _Family:
    """Contestants of one kind, and how far their race has come."""

    def __init__(
        self, contestants: Sequence[Contestant], finished: Mapping[str, IndexEntry], runs: AdaptiveRuns
    ) -> None:
        self._contestants = contestants
        self._finished = finished
        self._rounds = [self._whole_rounds(it, runs.max) for it in contestants]
        self.pairs = [
            _Pair(one, two, tasks, min(self._rounds[one], self._rounds[two]))
            for one, two in combinations(range(len(contestants)), 2)
            if (tasks := self._shared(one, two))
        ]
        self.race = Race(len(contestants), tuple((pair.one, pair.two) for pair in self.pairs))
        self.to_run: list[str] = []
        self.state: State = "decided"
        if self.pairs:
            self._run(runs)

    def _whole_rounds(self, contestant: Contestant, most: int) -> int:
        """How many rounds are finished before the first that is not."""
        for number in range(1, most + 1):
            if _missing([contestant], [number], self._finished):
                return number - 1
        return most

    def _shared(self, one: int, two: int) -> list[str]:
        return sorted(self._contestants[one].cells.keys() & self._contestants[two].cells.keys())

    def _run(self, runs: AdaptiveRuns) -> None:
        """Look after every round that is whole, as the sweep did."""
        first, second = self._evidence()
        for number in range(1, runs.max + 1):
            going = [
                it
                for it, undecided in zip(self._contestants, self.race.undecided, strict=True)
                if undecided or number <= runs.min
            ]
            if not going:
                return
            if missing := _missing(going, [number], self._finished):
                self.state, self.to_run = "open", missing
                return
            self.race.look(
                np.array([_at(it, number) for it in first]), np.array([_at(it, number) for it in second])
            )
        if self.race.undecided.any():
            self.state = "max_runs"

    def _evidence(self) -> tuple[list[Floats], list[Floats]]:
        """For each pair, what is won after each round by betting on the one and on the other."""
        first: list[Floats] = [np.zeros(0)] * len(self.pairs)
        second = list(first)
        # Pairs of one shape at once: there are many pairs, and few shapes.
        shapes: dict[tuple[int, int], list[int]] = defaultdict(list)
        for index, pair in enumerate(self.pairs):
            shapes[pair.rounds, len(pair.tasks)].append(index)
        for indexes in shapes.values():
            differences = [self._differences(self.pairs[index]) for index in indexes]
            up = log_evidence(np.stack([least for least, _ in differences]))
            down = log_evidence(np.stack([-most for _, most in differences]))
            for place, index in enumerate(indexes):
                first[index], second[index] = up[place], down[place]
        return first, second

    def _differences(self, pair: _Pair) -> tuple[Floats, Floats]:
        """(rounds, tasks): the least and the most that each difference may be."""
        one_low, one_high = self._results(self._cells(pair.one, pair), pair.rounds)
        two_low, two_high = self._results(self._cells(pair.two, pair), pair.rounds)
        return one_low - two_high, one_high - two_low

    def _results(self, cells: Sequence[str], rounds: int) -> tuple[Floats, Floats]:
        """(rounds, cells): what each run scored; where there is no result, 0 and 1."""
        scores = np.array(
            [
                [_passed(self._finished[f"{cell}#run{number}"]) for cell in cells]
                for number in range(1, rounds + 1)
            ],
            dtype=np.float64,
        ).reshape(rounds, len(cells))
        unknown = np.isnan(scores)
        return np.where(unknown, 0.0, scores), np.where(unknown, 1.0, scores)

    def _cells(self, contestant: int, pair: _Pair) -> list[str]:
        return [self._contestants[contestant].cells[task] for task in pair.tasks]

    @cached_property
    def _verdicts(self) -> list[tuple[int, int]]:
        """Of each pair: 1, -1 or 0, and the run after which it was decided."""
        pairs = zip(self.race.verdicts.tolist(), self.race.decided_in.tolist(), strict=True)
        return [(int(verdict), int(number)) for verdict, number in pairs]

    def comparisons(self) -> list[Comparison]:
        found = []
        for pair, (verdict, number) in zip(self.pairs, self._verdicts, strict=True):
            least, most = self._differences(pair)
            low, high = interval(least, most, ALPHA / len(self.pairs))
            one, two = self._contestants[pair.one].name, self._contestants[pair.two].name
            found.append(
                Comparison(
                    first=one,
                    second=two,
                    kind=self._contestants[pair.one].kind,
                    tasks=len(pair.tasks),
                    runs=pair.rounds,
                    difference=self._difference(pair),
                    low=low,
                    high=high,
                    better=one if verdict == 1 else two if verdict == -1 else None,
                    decided_in=number or None,
                    censored=round(float((most - least).sum())),
                )
            )
        return found

    def standings(self) -> list[Standing]:
        """The best rank first, then the best rate, then by name."""
        above, below = [0] * len(self._contestants), [0] * len(self._contestants)
        for pair, (verdict, _) in zip(self.pairs, self._verdicts, strict=True):
            if verdict:
                better, worse = (pair.one, pair.two) if verdict == 1 else (pair.two, pair.one)
                above[worse] += 1
                below[better] += 1
        found = []
        for index, contestant in enumerate(self._contestants):
            rates = self._rates(contestant.cells.values(), self._rounds[index])
            found.append(
                Standing(
                    name=contestant.name,
                    kind=contestant.kind,
                    tasks=len(contestant.cells),
                    runs=self._rounds[index],
                    pass_rate=None if rates is None else float(rates.mean()),
                    best_rank=1 + above[index],
                    worst_rank=len(self._contestants) - below[index],
                    moved_together=self._moved_together(index),
                )
            )
        return sorted(found, key=lambda it: (it.best_rank, it.worst_rank, -(it.pass_rate or 0), it.name))

    def _moved_together(self, contestant: int) -> float | None:
        """Over the rounds of which every cell has a result."""
        cells = sorted(self._contestants[contestant].cells.values())
        low, high = self._results(cells, self._rounds[contestant])
        return moved_together(low[(low == high).all(axis=1)])

    def _difference(self, pair: _Pair) -> float | None:
        one = self._rates(self._cells(pair.one, pair), pair.rounds)
        two = self._rates(self._cells(pair.two, pair), pair.rounds)
        return None if one is None or two is None else float((one - two).mean())

    def _rates(self, cells: Collection[str], rounds: int) -> Floats | None:
        """The mean over counted runs of each cell; None where one has none."""
        found = []
        for cell in cells:
            scores = [_passed(self._finished[f"{cell}#run{number}"]) for number in range(1, rounds + 1)]
            counted = [score for score in scores if score is not None]
            if not counted:
                return None
            found.append(sum(counted) / len(counted))
        return np.array(found)


@dataclass(frozen=True)
class _Pair:
    """Two contestants of a family by number, the tasks that both have and the rounds that both finished."""

    one: int
    two: int
    tasks: list[str]
    rounds: int


def _at(evidence: Floats, number: int) -> float:
    """What was won after a round; a pair that no longer runs keeps what it had."""
    return float(evidence[min(number, len(evidence)) - 1]) if len(evidence) else 0.0


def _passed(entry: IndexEntry) -> float | None:
    """1 or 0; None for a cell that is not counted."""
    return entry.passed if state_of(entry.outcome, entry.passed) == "counted" else None
