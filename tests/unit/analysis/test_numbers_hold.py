"""Whatever cells there are: a number is finite or None with its reason, and lies where it must."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest
from analysis_samples import LOST, cell, frame
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.analysis.cells import cells_of
from orchestrator.analysis.compare import compare
from orchestrator.analysis.groups import pairs
from orchestrator.analysis.measures import Measure
from orchestrator.analysis.sides import sides
from orchestrator.analysis.summary import BYS, summarise
from orchestrator.errors import InputError
from orchestrator.report.compared import as_data
from orchestrator.store.index import IndexEntry

POINTS = st.tuples(
    st.sampled_from(["aider", "pi"]), st.sampled_from(["v/a", "v/b"]), st.integers(1, 7), st.integers(1, 3)
)
CELLS = st.dictionaries(
    POINTS,
    st.tuples(
        st.sampled_from([0.0, 1.0, None]),
        st.none() | st.integers(0, 10**6),
        st.none() | st.floats(0, 100),
        st.sampled_from([0.0, 250.0, 1e7]),
    ),
    min_size=1,
    max_size=40,
)


def entries(
    drawn: dict[tuple[str, str, int, int], tuple[float | None, int | None, float | None, float]],
) -> list[IndexEntry]:
    return [
        cell(
            *(cli, model, f"c{number % 2}/t{number}", run),
            **(LOST if passed is None else {"passed": passed, "composite": passed * 0.9}),
            **({} if passed is None else {"total_tokens": tokens}),
            cost_usd=usd,
            wall_clock_ms=ms,
        )
        for (cli, model, number, run), (passed, tokens, usd, ms) in drawn.items()
    ]


@settings(max_examples=25)
@given(CELLS)
def test_summaries(drawn) -> None:
    made = entries(drawn)
    for by in BYS:
        for line in summarise(frame(made), by).lines:
            json.dumps(asdict(line), allow_nan=False)
            assert line.censored[0] <= line.censored[1]
            for measure in vars(line).values():
                if isinstance(measure, Measure):
                    assert (measure.value is not None and measure.high is not None) or measure.reason
                    assert measure.low is None or measure.low <= (measure.high or float("inf"))
            rate = line.pass_rate
            if rate.value is not None and rate.low is not None and rate.high is not None:
                assert 0 <= rate.low <= rate.value + 1e-9 <= rate.high + 2e-9
                assert line.pass_at_k[1] == pytest.approx(line.pass_hat_k[1], rel=1e-12, abs=1e-12)


@settings(max_examples=25)
@given(CELLS)
def test_a_pair_has_the_rate_that_its_sweep_shows(drawn) -> None:
    made = entries(drawn)
    shown = {pair.group.name: pair for pair in pairs(made)}
    for line in summarise(frame(made), "pair").lines:
        group = shown[line.name].group
        assert line.claim == shown[line.name].claim
        assert line.censored == (group.pass_rate.low, group.pass_rate.high)
        for here, there in (
            (line.pass_rate.value, group.pass_rate.value),
            (line.composite.value, group.cab_1.value),
            (line.tokens_per_solved.value, group.tokens_per_correct_task),
        ):
            assert (here is None) == (there is None)
            assert here is None or there is None or abs(here - there) <= 1e-9 * max(1, abs(there))


@settings(max_examples=25)
@given(CELLS)
def test_comparisons(drawn) -> None:
    try:
        found = compare(*sides(cells_of(frame(entries(drawn))), "aider", "pi"), "model")
    except InputError:
        return
    json.dumps(as_data(found), allow_nan=False)
    for it in (difference for comparison in found.comparisons for difference in comparison.differences):
        assert it.value is not None or it.reason
        assert it.p is None or 0 < it.p <= (it.p_adjusted or 1) <= 1
        assert it.verdict not in ("better", "worse") or it.p_adjusted is not None
