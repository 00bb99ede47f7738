"""Writes the tables of docs/statistics.md: what simulations say of cab's statistics.

    python scripts/statistics_docs.py [STUDY…]

Without names all studies are run, which takes some minutes. Seeds are fixed: the same code gives the same
tables.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from orchestrator.stats import simulate_ranking
from orchestrator.stats.simulate_gate import Rate, Setup, Study, study, study_in_a_row
from orchestrator.stats.simulate_ranking import Setup as Sweep

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "statistics.md"
BEGIN, END = "<!-- made by `make statistics-docs`: {} -->\n", "<!-- end: {} -->\n"

GATES = 4000
SEED = 20260501
_SEVERAL = Setup(nights=5)
_EASY = {"solved": 0.8, "unsolved": 0.05, "flaky": (8.0, 1.0)}
UNCHANGED: dict[str, Setup] = {
    "one run a night": Setup(runs=1),
    "three runs a night": Setup(),
    "five runs a night": Setup(runs=5),
    "few tasks": Setup(tasks=20),
    "many tasks": Setup(tasks=60),
    "many tasks, five runs": Setup(tasks=60, runs=5),
    "one pair": Setup(pairs=1),
    "thirty pairs": Setup(pairs=30),
    "five nights": _SEVERAL,
    "five nights, one run": replace(_SEVERAL, runs=1),
    "every task flaky": Setup(solved=0.0, unsolved=0.0, flaky=(1.0, 1.0)),
    "every task flaky, five nights": replace(_SEVERAL, solved=0.0, unsolved=0.0, flaky=(1.0, 1.0)),
    "nearly all solved": Setup(**_EASY),
    "nearly all solved, five nights": replace(_SEVERAL, **_EASY),
    "5 % of runs lost to infrastructure": Setup(infra=0.05),
    "5 % lost, five nights": replace(_SEVERAL, infra=0.05),
    "5 % lost on the candidate's night alone": Setup(infra=0, infra_candidate=0.05),
    "5 % lost on it alone, five nights": replace(_SEVERAL, infra=0, infra_candidate=0.05),
    "15 % lost on the candidate's night alone": Setup(infra=0, infra_candidate=0.15),
    "15 % lost on it alone, five nights": replace(_SEVERAL, infra=0, infra_candidate=0.15),
    "each task has its better and worse nights": Setup(wobble=1.0),
    "such tasks, five nights": replace(_SEVERAL, wobble=1.0),
}
"""Nights on which nothing changed, by what is particular about them."""

IN_A_ROW: dict[str, Setup] = {
    "`last-good`": Setup(),
    "`last-good:5`": _SEVERAL,
    "`last-good`, five runs": Setup(runs=5),
}
SWINGS = (0.1, 0.2, 0.3)
DROPS = (0.05, 0.1, 0.15, 0.2, 0.3)
SHAPES = ((1, 1), (1, 5), (3, 1), (3, 5), (5, 1), (5, 5))
"""Runs a night, and nights of the baseline."""


def gate() -> str:
    """What the gate of nights calls dropped where nothing is, and where something is."""
    unchanged = [
        [name, *_shape(setup), _rate(study(setup, GATES, SEED).false_alarms)]
        for name, setup in UNCHANGED.items()
    ]
    rows, nights = 100, 100
    in_a_row = [
        [name, *_shape(setup), _rate(study_in_a_row(setup, rows, nights, SEED).false_alarms)]
        for name, setup in IN_A_ROW.items()
    ]
    swings = [
        [
            f"{swing:g}",
            *(_rate(study(replace(of, swing=swing), GATES, SEED).false_alarms) for of in (Setup(), _SEVERAL)),
        ]
        for swing in SWINGS
    ]
    return "\n".join(
        [
            f"{GATES} gates each, six pairs on 30 tasks, three runs a night where nothing else is said:\n",
            _table(["nothing changed", *_SHAPE, "false alarms"], unchanged),
            f"\nNights one after another, {rows} machines with {nights} nights each:\n",
            _table(["baseline", *_SHAPE, "false alarms a night"], in_a_row),
            "\nNights on which all tasks of a pair move together, by the standard deviation in logits:\n",
            _table(["of a night", "called dropped, one night as baseline", "five nights"], swings),
            "\nOne of six pairs has dropped: how often that is seen, by how far its pass rate is lower:\n",
            _table(
                ["drop of each flaky task", "of the rate", *map(_of_shape, SHAPES)], list(map(_power, DROPS))
            ),
        ]
    )


SWEEPS = 2000
TIED: dict[str, Sweep] = {
    "two contestants": Sweep((0.5,) * 2),
    "four": Sweep((0.5,) * 4),
    "eight": Sweep((0.5,) * 8),
    "four of which each has tasks of its own that it is good at": Sweep((0.5,) * 4, own=1.5),
    "the same on few tasks": Sweep((0.5,) * 4, tasks=4, own=1.5),
    "the same on many": Sweep((0.5,) * 4, tasks=40, own=1.5),
    "all tasks alike": Sweep((0.5,) * 4, spread=0.0),
    "nearly all solved": Sweep((0.95,) * 4, own=1.5),
    "two tied, two better": Sweep((0.4, 0.4, 0.7, 0.7), own=1.0),
    "10 % of runs lost": Sweep((0.5,) * 4, own=1.0, infra=0.1),
    "30 % of the first one's failing runs lost": Sweep((0.5,) * 4, own=1.0, infra_failing=0.3),
    "up to 60 runs": Sweep((0.5,) * 4, own=1.0, most=60),
}
"""Contestants that are equally good, by what is particular about the sweep."""
MOVING = (0.1, 0.2, 0.4, 0.8)
GAPS = (0.05, 0.1, 0.2, 0.3, 0.5)
FIELDS: dict[str, Callable[[float, int], Sweep]] = {
    "two": lambda gap, tasks: Sweep((0.5 - gap / 2, 0.5 + gap / 2), tasks=tasks, own=0.7),
    "four, one better": lambda gap, tasks: Sweep((0.4, 0.4, 0.4, 0.4 + gap), tasks=tasks, own=0.7),
}


def ranking() -> str:
    """What adaptive runs tell apart where nothing differs and where something does, and what that takes."""
    tied = [_of_tied(name, setup) for name, setup in TIED.items()]
    moving = [_of_moving(swing) for swing in MOVING]
    apart = [
        _of_gap(name, gap, tasks, make(gap, tasks))
        for name, make in FIELDS.items()
        for tasks in (10, 30)
        for gap in GAPS
    ]
    return "\n".join(
        [
            f"{SWEEPS} sweeps each, of 2 to 12 runs where nothing else is said. Contestants that are tied; "
            "the test for one look takes a lost run for half a pass:\n",
            _table(
                ["tied", "pairs", "tasks", "a tied pair told apart", "by a test for one look, at every look"],
                tied,
            ),
            "\nThe assumption broken: all tasks of a contestant move together in each run, by the standard "
            "deviation in logits. Two that are tied:\n",
            _table(["of a run", "told apart on 10 tasks", "on 30 tasks"], moving),
            "\nContestants that differ: how many of the pairs that do are told apart, and how much of 12 "
            "runs of everything that takes. Beside it, for a test that may look once alone: what it tells "
            "apart after as many cells, and after all 12 runs:\n",
            _table(
                ["contestants", "tasks", "gap", "told apart", "cells", "one look: as many", "all cells"],
                apart,
            ),
        ]
    )


def _of_tied(name: str, setup: Sweep) -> list[str]:
    found = simulate_ranking.study(setup, SWEEPS, SEED)
    return [
        name,
        str(len(setup.pairs)),
        str(setup.tasks),
        _rate(found.false_alarms),
        _percent(found.peeking.value),
    ]


def _of_moving(swing: float) -> list[str]:
    setups = (Sweep((0.5, 0.5), tasks=tasks, swing=swing) for tasks in (10, 30))
    return [
        f"{swing:g}",
        *(_rate(simulate_ranking.study(setup, SWEEPS, SEED).false_alarms) for setup in setups),
    ]


def _of_gap(name: str, gap: float, tasks: int, setup: Sweep) -> list[str]:
    found = simulate_ranking.study(setup, SWEEPS, SEED)
    shares = (found.told_apart, found.cells, found.as_many_cells, found.one_look)
    return [name, str(tasks), f"{gap:g}", *(_percent(share or 0.0) for share in shares)]


STUDIES: dict[str, Callable[[], str]] = {"gate": gate, "ranking": ranking}
"""Each makes what stands between the two marks of its name in the document."""

_SHAPE = ("pairs", "tasks", "runs", "nights")


def _shape(setup: Setup) -> list[str]:
    return [str(number) for number in (setup.pairs, setup.tasks, setup.runs, setup.nights)]


def _of_shape(shape: tuple[int, int]) -> str:
    runs, nights = shape
    return f"{runs} run{'s' * (runs > 1)}, {nights} night{'s' * (nights > 1)}"


def _power(drop: float) -> list[str]:
    found: list[Study] = [
        study(Setup(runs=runs, nights=nights, drop=drop), GATES, SEED) for runs, nights in SHAPES
    ]
    fell = [of.dropped_by for of in found if of.dropped_by is not None]
    seen = [_percent(of.seen.value) for of in found if of.seen is not None]
    return [f"{drop:g}", f"{sum(fell) / len(fell):.3f}", *seen]


def _rate(rate: Rate) -> str:
    return f"{_percent(rate.value)} [{_percent(rate.low)}, {_percent(rate.high)}]"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(head), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("studies", nargs="*", metavar="STUDY", help=f"of {', '.join(STUDIES)}")
    wanted = parser.parse_args().studies or list(STUDIES)
    for name in wanted:
        made = STUDIES[name]()
        text = DOCUMENT.read_text("utf-8")
        begin, end = BEGIN.format(name), END.format(name)
        before, found, rest = text.partition(begin)
        assert found, f"{DOCUMENT} has no place for {name}"
        DOCUMENT.write_text(f"{before}{begin}\n{made}\n\n{end}{rest.partition(end)[2]}", "utf-8")


if __name__ == "__main__":
    main()
