"""`of_conditions`: rates over all that was submitted, and every two conditions paired by task."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from random import Random
from typing import Any

import pytest
from analysis_samples import LOST, cell, cells, frame
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.analysis.cells import cells_of
from orchestrator.analysis.conditions import Attempt, Conditions, Outcome, by_agent, of_conditions
from orchestrator.analysis.differences import FEW, MCNEMAR, SIGN_FLIP
from orchestrator.analysis.measures import BOOTSTRAP, WILSON, WILSON_OVER_TASKS
from orchestrator.stats.many import holm
from orchestrator.stats.paired import mcnemar, sign_flip
from orchestrator.stats.rates import wilson

MARKS: Mapping[str, Outcome | None] = {
    **{"+": "resolved", "-": "unresolved", "e": "error", "0": "empty_patch", "?": "incomplete", " ": None}
}


def attempts(condition: str, *runs: str, **values: Any) -> list[Attempt]:
    """One attempt for each mark: the tasks t1, t2, … of each run."""
    return [
        Attempt(f"t{number}", condition, run, MARKS[mark], values)
        for run, marks in enumerate(runs, start=1)
        for number, mark in enumerate(marks, start=1)
    ]


def found(**conditions: Sequence[str]) -> Conditions:
    made = [it for name, runs in conditions.items() for it in attempts(name, *runs)]
    return of_conditions(made, list(conditions))


def test_the_published_table_is_a_tie_on_five_tasks_and_no_verdict() -> None:
    """Five tasks, the same two solved in all three conditions: 0.40, difference 0.00, win/tie/loss 0/5/0."""
    tokens = {"transcript_replay": 887.4, "compact_summary": 914.6, "stateplane": 1736.2}
    made = [it for name, mean in tokens.items() for it in attempts(name, "-+--+", prompt_tokens=mean)]
    table = of_conditions(made, list(tokens))
    assert [it.resolved.value for it in table.conditions] == [0.4, 0.4, 0.4]
    assert table.conditions[0].resolved.low == wilson(2, 5)[0]
    for pair in table.pairs:
        assert (pair.wins, pair.ties, pair.losses, pair.flips) == (0, 5, 0, ())
        assert (pair.resolved.value, pair.resolved.p, pair.resolved.verdict) == (0, 1, "too few shared tasks")
        assert pair.resolved.reason == FEW
    by_name = {(pair.a, pair.b): pair.others[0] for pair in table.pairs}
    assert by_name["transcript_replay", "stateplane"].value == pytest.approx(848.8)
    assert by_name["compact_summary", "stateplane"].value == pytest.approx(821.6)
    assert {it.verdict for it in by_name.values()} == {"too few shared tasks"}


def test_a_rate_is_over_all_that_was_submitted() -> None:
    [it] = found(a=["++-e0-----"]).conditions
    assert (it.submitted, it.tasks, it.runs) == (10, 10, (1, 1))
    assert (it.resolved.value, it.resolved.method) == (0.2, WILSON)
    assert (it.resolved.low, it.resolved.high) == wilson(2, 10)
    assert it.outcomes == {"resolved": 2, "unresolved": 6, "error": 1, "empty_patch": 1, "incomplete": 0}


@pytest.mark.parametrize("missing", ["?", " "])
def test_one_missing_verdict_takes_every_rate_and_no_count(missing: str) -> None:
    table = found(a=["+++++++"], b=[f"------{missing}"])
    assert table.withheld == "partial: 1 of 14 results have no verdict"
    assert [it.resolved.value for it in table.conditions] == [None, None]
    assert table.conditions[1].outcomes is not None
    assert table.conditions[1].outcomes["incomplete"] == 1
    [pair] = table.pairs
    assert (pair.wins, pair.ties, pair.losses, pair.flips) == (None, None, None, ())
    assert (pair.resolved.a, pair.resolved.b, pair.resolved.p) == (None, None, None)
    assert (pair.resolved.verdict, pair.resolved.reason) == ("not measured", table.withheld)


def test_more_runs_are_resampled_by_task() -> None:
    [it] = found(a=["+-+-++", "++--+-", "+++-+-"]).conditions
    assert it.resolved.value == pytest.approx(11 / 18)
    assert (it.resolved.method, it.runs) == (BOOTSTRAP, (3, 3))
    [few] = found(a=["+-+", "++-"]).conditions
    assert few.resolved.method == WILSON_OVER_TASKS


def test_single_runs_are_mcnemars_corrected_by_holm() -> None:
    base, some, most = "----------", "+++-------", "+++++++++-"
    table = found(base=[base], some=[some], most=[most])
    assert [(pair.a, pair.b) for pair in table.pairs] == [
        ("base", "some"),
        ("base", "most"),
        ("some", "most"),
    ]
    ps = [mcnemar(0, 3), mcnemar(0, 9), mcnemar(0, 6)]
    assert [pair.resolved.p for pair in table.pairs] == ps
    assert [pair.resolved.p_adjusted for pair in table.pairs] == holm(ps)
    assert {pair.resolved.method for pair in table.pairs} == {MCNEMAR}
    few, clear, six = table.pairs
    assert (clear.resolved.verdict, clear.wins, clear.ties, clear.losses) == ("better", 9, 1, 0)
    assert six.resolved.p_adjusted is not None
    assert six.resolved.p_adjusted > six.resolved.p > 0.03
    assert few.resolved.verdict == "no detectable difference"
    assert few.resolved.needed is not None
    assert few.resolved.needed.tasks is not None
    assert few.resolved.needed.tasks > 10


def test_the_other_order_is_worse() -> None:
    [pair] = found(most=["+++++++++"], base=["---------"]).pairs
    assert (pair.resolved.verdict, pair.wins, pair.losses) == ("worse", 0, 9)
    assert not any(flip.gained for flip in pair.flips)


def test_more_runs_are_permuted_over_task_means_and_a_task_flips_by_its_runs() -> None:
    a, b = ["+-------", "+-------", "+-------"], ["+++--++-", "+++--+++", "+-+--++-"]
    [pair] = found(a=a, b=b).pairs
    differences = [0, 2 / 3, 1, 0, 0, 1, 1, 1 / 3]
    assert (pair.resolved.method, pair.resolved.p) == (SIGN_FLIP, sign_flip(differences))
    assert (pair.wins, pair.ties, pair.losses) == (5, 3, 0)
    first = pair.flips[0]
    assert (first.task, first.a, first.b) == ("t2", 0, 2)


def test_only_shared_tasks_are_paired() -> None:
    made = [*attempts("a", "++++++++"), *attempts("b", "------")]
    [pair] = of_conditions(made, ["a", "b"]).pairs
    assert (pair.tasks, pair.only_a, pair.only_b, pair.losses) == (6, 2, 0, 6)


def test_what_is_neither_good_nor_bad_is_higher_or_lower() -> None:
    made = []
    for name, size in (("a", 100), ("b", 200)):
        made += [
            Attempt(
                f"t{number}", name, 1, "resolved", {"patch_bytes": size + number, "elapsed_s": size * 0.1}
            )
            for number in range(8)
        ]
    [pair] = of_conditions(made, ["a", "b"]).pairs
    assert {it.measure: it.verdict for it in pair.others} == {"patch_bytes": "higher", "elapsed_s": "worse"}


def test_a_measure_of_one_missing_is_not_known_and_says_so() -> None:
    made = [*attempts("a", "++++++", elapsed_s=2.0), *attempts("b", "++++++", elapsed_s=3.0)]
    made[3] = Attempt("t4", "a", 1, "resolved", {"elapsed_s": None})
    a, b = of_conditions(made, ["a", "b"]).conditions
    assert (a.means["elapsed_s"].value, a.means["elapsed_s"].reason) == (
        None,
        "not measured in 1 of 6 results",
    )
    assert b.means["elapsed_s"].value == 3
    assert set(a.means) == {"elapsed_s"}


def test_the_same_sizes_have_the_same_interval_whatever_else_was_measured() -> None:
    made = [
        Attempt(f"t{number}", name, 1, "resolved", {"patch_bytes": number * 10, "elapsed_s": number * pace})
        for name, pace in (("a", 1.5), ("b", 7.25))
        for number in range(8)
    ]
    a, b = of_conditions(made, ["a", "b"]).conditions
    assert a.means["patch_bytes"] == b.means["patch_bytes"]
    assert a.means["elapsed_s"] != b.means["elapsed_s"]


def test_nothing_depends_on_verdicts_that_are_withheld() -> None:
    some = of_conditions(attempts("a", "+-+e0?+"), ["a"], withheld="not judged")
    others = of_conditions(attempts("a", "-------"), ["a"], withheld="not judged")
    assert some == others
    assert some.conditions[0].outcomes is None
    assert some.withheld == "not judged"


def test_a_condition_without_results_is_there_and_has_no_number() -> None:
    table = of_conditions(attempts("a", "++++++"), ["a", "b"])
    assert table.conditions[1].submitted == 0
    assert table.conditions[1].resolved.reason == "nothing was submitted"
    assert table.pairs[0].tasks == 0


def test_cells_under_conditions_are_told_by_agent() -> None:
    made = [
        *cells("codex", [[1], [0], [1]], condition="stateplane", prompt_tokens=50),
        *cells("codex", [[0], [0], [1]], condition="compact_summary", prompt_tokens=40),
        *cells("aider", [[1], [None]], condition="stateplane"),
        cell("codex", "embedded/wrong", claim="pipeline_only", condition="stateplane"),
    ]
    by = by_agent(cells_of(frame(made)))
    assert [(it.kind, it.agent, it.model) for it in by] == [
        ("result", "aider", "v/one"),
        ("pipeline", "codex", "embedded/wrong"),
        ("result", "codex", "v/one"),
    ]
    of = {it.agent: of_conditions(got, ["compact_summary", "stateplane"]) for it, got in by.items()}
    assert LOST["passed"] is None
    assert of["aider"].withheld == "partial: 1 of 2 results have no verdict"
    codex = of_conditions(list(by.values())[2], ["compact_summary", "stateplane"])
    assert [it.resolved.value for it in codex.conditions] == [pytest.approx(1 / 3), pytest.approx(2 / 3)]
    assert codex.conditions[1].means["input_tokens"].value == 50
    assert codex.pairs[0].flips[0].task == "polyglot/t1"


ATTEMPTS = st.dictionaries(
    st.tuples(st.sampled_from("abc"), st.integers(1, 8), st.integers(1, 2)),
    st.tuples(st.sampled_from([*MARKS]), st.none() | st.integers(0, 9000), st.none() | st.floats(0, 99)),
    max_size=48,
)


@settings(max_examples=40)
@given(ATTEMPTS, st.randoms(use_true_random=False))
def test_numbers_hold_and_do_not_depend_on_order(
    drawn: dict[tuple[str, int, int], tuple[str, int | None, float | None]], random: Random
) -> None:
    made = [
        Attempt(f"t{task}", name, run, MARKS[mark], {"patch_bytes": size, "elapsed_s": took})
        for (name, task, run), (mark, size, took) in drawn.items()
    ]
    table = of_conditions(made, "abc")
    json.dumps(asdict(table), allow_nan=False)
    random.shuffle(made)
    assert of_conditions(made, "abc") == table
    complete = all(it.outcome not in (None, "incomplete") for it in made)
    for it in table.conditions:
        assert (it.resolved.value is not None) == (bool(made) and complete and it.submitted > 0)
        assert it.outcomes is None or sum(it.outcomes.values()) == it.submitted
    for pair in table.pairs:
        if pair.wins is None:
            assert table.withheld
            continue
        assert pair.wins + (pair.ties or 0) + (pair.losses or 0) == pair.tasks
        assert pair.resolved.verdict not in ("better", "worse") or pair.tasks >= 6
