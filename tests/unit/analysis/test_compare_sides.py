"""`compare`: what is paired with what, and what may be said of it."""

from __future__ import annotations

import pytest
from analysis_samples import LOST, cell, cells, frame

from orchestrator.analysis.cells import Cell, cells_of
from orchestrator.analysis.compare import Compared, Comparison, compare
from orchestrator.analysis.differences import FEW, MCNEMAR, SIGN_FLIP, SWAP, Difference
from orchestrator.analysis.measures import ALL_ALIKE
from orchestrator.analysis.sides import Side, sides
from orchestrator.errors import InputError
from orchestrator.stats.paired import mcnemar, needed, sign_flip, spread
from orchestrator.store.index import IndexEntry


def sided(a: str, b: str, *made: list[IndexEntry]) -> tuple[Side, Side]:
    return sides(cells_of(frame(*made)), a, b)


def only(found: Compared) -> Comparison:
    [comparison] = found.comparisons
    return comparison


def of(comparison: Comparison, measure: str) -> Difference:
    [found] = [it for it in comparison.differences if it.measure == measure]
    return found


def test_single_runs_are_mcnemars() -> None:
    made = [cells("aider", [[0]] * 9 + [[1]] * 3), cells("opencode", [[1]] * 8 + [[0]] + [[1]] * 2 + [[0]])]
    found = only(compare(*sided("aider", "opencode", *made)))
    rate = found.pass_rate
    assert (found.tasks, found.units, found.runs_a, found.runs_b) == (12, 12, (1, 1), (1, 1))
    assert (rate.a, rate.b, rate.value) == (3 / 12, 10 / 12, pytest.approx(7 / 12))
    assert (rate.method, rate.p) == (MCNEMAR, mcnemar(1, 8))
    assert rate.p_adjusted == rate.p
    assert rate.verdict == "better"
    assert rate.needed is None
    assert rate.low is not None
    assert 0 < rate.low < 7 / 12


def test_the_other_way_round_it_is_worse() -> None:
    made = [cells("aider", [[0]] * 9 + [[1]] * 3), cells("opencode", [[1]] * 12)]
    assert only(compare(*sided("opencode", "aider", *made))).pass_rate.verdict == "worse"


def test_more_runs_are_permuted_over_tasks() -> None:
    a = [[0, 0, 1], [0, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 0], [0, 1, 0], [1, 1, 1]]
    b = [[1, 1, 1], [0, 1, 1], [1, 1, 0], [1, 1, 1], [1, 0, 1], [1, 1, 1], [1, 1, 1]]
    rate = only(compare(*sided("aider", "opencode", cells("aider", a), cells("opencode", b)))).pass_rate
    differences = [(sum(y) - sum(x)) / 3 for x, y in zip(a, b, strict=True)]
    assert (rate.method, rate.p) == (SIGN_FLIP, pytest.approx(sign_flip(differences)))
    assert rate.value == pytest.approx(sum(differences) / 7)
    assert rate.verdict == "better"


def test_models_on_one_task_are_one_task() -> None:
    """Ten models on five tasks are five tasks, whatever they agree on."""
    made = [
        cells(cli, [[passed]] * 5, model=f"v/m{number}")
        for number in range(10)
        for cli, passed in (("aider", 0), ("opencode", 1))
    ]
    found = only(compare(*sided("aider", "opencode", *made)))
    assert (found.tasks, found.units) == (5, 50)
    assert (found.pass_rate.verdict, found.pass_rate.reason) == ("too few shared tasks", FEW)
    assert found.pass_rate.value == 1


def test_only_what_both_attempted_is_compared() -> None:
    made = [cells("aider", [[1]] * 4), cells("opencode", [[0]] * 6), cells("aider", [[0]] * 2, model="v/two")]
    found = only(compare(*sided("aider", "opencode", *made)))
    assert (found.tasks, found.only_a, found.only_b) == (4, 2, 2)
    assert (found.pass_rate.a, found.pass_rate.b) == (1, 0)


def test_no_difference_says_what_it_takes_to_see_one() -> None:
    made = [cells("aider", [[1], [0]] * 5), cells("opencode", [[0], [1]] * 4 + [[1], [1]])]
    rate = only(compare(*sided("aider", "opencode", *made))).pass_rate
    assert rate.verdict == "no detectable difference"
    assert rate.needed is not None
    assert rate.needed.tasks is not None
    assert rate.needed.tasks > 10
    assert rate.needed.runs is None
    assert rate.needed.detectable > 0.2


def test_what_was_not_seen_takes_more_than_there_is() -> None:
    """Five of six is no significant difference, and six that Holm's correction takes are none either."""
    five = [cells("aider", [[0]] * 6), cells("opencode", [[1]] * 5 + [[0]])]
    rate = only(compare(*sided("aider", "opencode", *five))).pass_rate
    assert rate.verdict == "no detectable difference"
    assert rate.needed is not None
    assert rate.needed.tasks is not None
    assert rate.needed.tasks > 6
    assert rate.needed.detectable > 0.9
    many = [
        made
        for model in ("v/one", "v/two", "v/three")
        for made in (
            cells("aider", [[0]] * 12, model=model),
            cells("opencode", [[1]] * 6 + [[0]] * 6, model=model),
        )
    ]
    for of in compare(*sided("aider", "opencode", *many), "model").comparisons:
        assert of.pass_rate.verdict == "no detectable difference"
        assert of.pass_rate.needed is not None
        assert of.pass_rate.needed.tasks is not None
        assert of.pass_rate.needed.tasks > 12


def test_runs_are_told_where_runs_are_what_differs() -> None:
    a = [[0, 1, 0, 1]] * 10
    b = [[0, 1, 0, 1]] * 8 + [[1, 1, 0, 1]] * 2
    rate = only(compare(*sided("aider", "opencode", cells("aider", a), cells("opencode", b)))).pass_rate
    assert rate.needed is not None
    assert rate.needed.runs is not None
    assert rate.needed.runs > 4


def test_more_models_that_say_the_same_add_nothing() -> None:
    """The unit is the task: a second model with the same results changes no p-value and no interval."""
    a, b = [[0, 1, 0, 1]] * 10, [[0, 1, 0, 1]] * 8 + [[1, 1, 0, 1]] * 2
    one = [cells("aider", a), cells("opencode", b)]
    two = [*one, cells("aider", a, model="v/two"), cells("opencode", b, model="v/two")]
    once, twice = (only(compare(*sided("aider", "opencode", *made))).pass_rate for made in (one, two))
    assert (twice.value, twice.p, twice.low, twice.high) == pytest.approx(
        (once.value, once.p, once.low, once.high)
    )
    # A mean of 2 of 4 runs has the variance 1/12, one of 3 the variance 1/16, and two models halve theirs.
    differences = [0.0] * 8 + [0.25] * 2
    within = (8 * (1 / 12 + 1 / 12) + 2 * (1 / 12 + 1 / 16)) / 10 / 2
    assert twice.needed == needed(0.05, spread(differences), 10, within=within, runs=4)


def test_lost_cells_forbid_a_verdict_that_they_could_turn_round() -> None:
    won = cells("opencode", [[1]] * 20)
    lost = [
        cells("aider", [[0]] * 20),
        won[:18],
        [cell("opencode", task=f"polyglot/t{n}", **LOST) for n in (19, 20)],
    ]
    found = only(compare(*sided("aider", "opencode", *lost)))
    assert (found.infra_b, found.coverage_b, found.units) == (2, 0.9, 18)
    assert (found.pass_rate.verdict, found.pass_rate.reason) == ("too many lost cells", "coverage below 95%")


def test_few_lost_cells_forbid_one_that_hangs_on_them() -> None:
    """One run in four more, on six of forty tasks: significant, and less than a lost run of each may hide."""
    won = [
        cells("aider", [[0] * 4] * 6 + [[1] * 4] * 34),
        cells("opencode", [[0, 0, 0, 1]] * 6 + [[1] * 4] * 34),
    ]
    assert only(compare(*sided("aider", "opencode", *won))).pass_rate.verdict == "better"
    lost = [
        cell(cli, task=f"polyglot/t{n}", run=run, **LOST)
        for cli, runs in (("aider", (5, 6)), ("opencode", (5,)))
        for n in range(1, 7)
        for run in runs[: 1 + (n == 1)]
    ]
    found = only(compare(*sided("aider", "opencode", *won, lost)))
    assert min(found.coverage_a or 0, found.coverage_b or 0) > 0.95
    assert (found.pass_rate.verdict, found.pass_rate.reason) == (
        "too many lost cells",
        "the lost cells could turn it round",
    )


def test_what_costs_less_is_better() -> None:
    cheap = [cell("aider", task=f"polyglot/t{n}", total_tokens=1000 + n, cost_usd=None) for n in range(8)]
    dear = [
        cell("opencode", task=f"polyglot/t{n}", total_tokens=3000 + 9 * n, cost_usd=0.1) for n in range(8)
    ]
    found = only(compare(*sided("opencode", "aider", cheap, dear)))
    tokens = of(found, "tokens")
    assert (tokens.kind, tokens.method, tokens.verdict) == ("ratio", SWAP, "better")
    assert tokens.value == pytest.approx(8028 / 24252)
    assert of(found, "usd").reason == "not measured in 8 of 16 counted cells"
    assert of(found, "usd").verdict == "not measured"
    time = of(found, "wall_s")
    assert (time.value, time.low, time.reason, time.verdict) == (
        1,
        None,
        ALL_ALIKE,
        "no detectable difference",
    )


def test_nothing_passed_has_no_price_for_a_pass() -> None:
    made = [cells("aider", [[0]] * 7), cells("opencode", [[1]] * 7)]
    assert (
        of(only(compare(*sided("aider", "opencode", *made))), "tokens_per_solved").reason
        == "a side passed nothing"
    )


def test_splits_are_corrected_for_how_many_they_are() -> None:
    made = [
        cells(cli, [[passed]] * 7, model=f"v/m{number}")
        for number in range(6)
        for cli, passed in (("aider", 0), ("opencode", int(number == 0)))
    ]
    whole = sided("aider", "opencode", *made)
    by_model = compare(*whole, "model")
    first = by_model.comparisons[0].pass_rate
    assert [it.name for it in by_model.comparisons] == [f"v/m{number}" for number in range(6)]
    assert first.p == pytest.approx(2 / 2**7)
    assert first.p_adjusted == pytest.approx(6 * 2 / 2**7)
    assert first.verdict == "no detectable difference"
    alone = [it for it in made if it[0].model == "v/m0"]
    assert only(compare(*sided("aider", "opencode", *alone))).pass_rate.verdict == "better"


def test_two_sweeps_are_paired_by_contestant_model_and_task() -> None:
    before = cells("aider", [[1]] * 6) + cells("opencode", [[0]] * 6)
    after = [
        cell(it.cli, it.model, it.task, passed=1.0, sweep_id="free-20261128", stack=it.stack) for it in before
    ]
    found = compare(*sided("free-20261127", "free-20261128", before, after), "cli")
    assert [(it.name, it.pass_rate.value) for it in found.comparisons] == [("aider", 0), ("opencode", 1)]


def test_two_stacks_are_paired_by_cli_and_model() -> None:
    made = [
        cells(cli, [[0]] * 6, stack=stack) for cli in ("aider", "opencode") for stack in ("none", "careful")
    ]
    found = compare(*sided("none", "careful", *made), "cli")
    assert [it.name for it in found.comparisons] == ["aider", "opencode"]
    a, b = sided("aider", "aider+careful", *made)
    assert (a.where, b.where) == ({"cli": "aider", "stack": "none"}, {"cli": "aider", "stack": "careful"})
    assert only(compare(a, b)).tasks == 6


def test_two_conditions() -> None:
    made = [cells("aider", [[1]] * 6), cells("aider", [[0]] * 6, condition="slow")]
    assert only(compare(*sided("condition=none", "slow", *made))).pass_rate.verdict == "worse"


def test_a_task_that_changed_is_not_compared_with_what_it_was() -> None:
    other = {"task_content_hash": "sha256:" + "b" * 64, "sweep_id": "free-20261128"}
    made = [cells("aider", [[1]] * 6), cells("aider", [[1]] * 6, **other)]
    with pytest.raises(InputError, match="share no task"):
        compare(*sided("free-20261127", "free-20261128", *made))


def test_kinds_and_versions_are_never_compared() -> None:
    made = [cells("aider", [[1]], model="embedded/wrong", claim="pipeline_only"), cells("aider", [[1]])]
    with pytest.raises(InputError, match="kinds pipeline and result are never compared"):
        compare(*sided("embedded/wrong", "v/one", *made))
    versions = [cells("aider", [[1]]), cells("aider", [[1]], sweep_id="old", methodology_version="0")]
    with pytest.raises(InputError, match="methodology versions 0 and 1 are never compared"):
        compare(*sided("old", "free-20261127", *versions))


def test_both_kinds_of_a_sweep_are_compared_each_with_its_own() -> None:
    made = [
        cells(cli, [[1]] * 6, model=model, claim=claim)
        for cli in ("aider", "opencode")
        for model, claim in (("embedded/wrong", "pipeline_only"), ("v/one", "citable"))
    ]
    assert [it.kind for it in compare(*sided("aider", "opencode", *made)).comparisons] == [
        "result",
        "pipeline",
    ]


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        ("aidr", "opencode", "did you mean 'aider'"),
        ("aider", "aider", "is on both sides"),
        ("cli=aider", "cli=opencode,model=v/one", "names no model"),
        ("cli=aidr", "opencode", "no finished cell has cli 'aidr'"),
        ("clu=aider", "opencode", "names no dimension"),
        ("twice", "twice", "write cli=twice or model=twice"),
        (
            "cli=aider,model=v/two",
            "cli=opencode,model=v/two",
            "no finished cell has cli opencode, model v/two",
        ),
    ],
)
def test_words_that_mean_no_side_are_told(a: str, b: str, said: str) -> None:
    made = [
        *(cells("aider", [[1]]), cells("opencode", [[1]]), cells("twice", [[1]], model="twice")),
        cells("aider", [[1]], model="v/two"),
    ]
    with pytest.raises(InputError) as error:
        sided(a, b, *made)
    assert said in str(error.value)


def test_pairs_can_be_named_as_tables_name_them() -> None:
    made = [cells("aider", [[1]] * 6), cells("opencode", [[1]] * 6, model="v/two")]
    a, b = sided("aider × v/one", "cli=opencode,model=v/two", *made)
    assert a.where == {"cli": "aider", "model": "v/one"}
    assert only(compare(a, b)).tasks == 6


def test_what_the_sides_differ_in_is_nothing_to_split_by() -> None:
    made = [cells("aider", [[1]]), cells("opencode", [[1]])]
    for by in ("cli", "pair"):
        with pytest.raises(InputError, match="the sides differ in their"):
            compare(*sided("aider", "opencode", *made), by)


def test_cells_know_their_task_by_name_and_content() -> None:
    [found] = cells_of(frame([cell()]))
    assert isinstance(found, Cell)
    assert (found.task, found.task_name, found.content) == (
        "polyglot/t1",
        "polyglot/t1",
        "sha256:" + "a" * 64,
    )


def test_a_word_of_no_side_tells_which_sweeps_were_read() -> None:
    one = cells("aider", [[1]] * 6, sweep_id="free-1")
    with pytest.raises(InputError, match="condition in free-1 "):
        sided("aider", "codex", one)
    with pytest.raises(InputError, match="condition in these 2 sweeps "):
        sided("aider", "codex", one, cells("aider", [[1]] * 6, sweep_id="free-2"))
