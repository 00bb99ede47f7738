"""Which items a policy takes: what is required, what ranks higher, what fits, and why the rest does not."""

from __future__ import annotations

import pytest
from histories import ORDER, past

from orchestrator.context.block import block_of
from orchestrator.context.relevance import relevance, words_of
from orchestrator.context.select import (
    GROUP_WEIGHTS,
    POLICIES,
    PROFILES,
    SHAPES,
    Selection,
    is_useful,
    policy_for,
    select,
)
from orchestrator.context.state import GROUPS, HELD_BACK, State, reduce
from orchestrator.context.tokens import tokens_of
from orchestrator.errors import InputError

TASK = "mean() in tinymath/ops.py loses the fraction"
WORK = past(
    ("goal", "Keep the fraction", "mean", "user"),
    ("constraint", "Do not edit tests.", "edit_tests", "user", {"hard": True}),
    ("constraint", "Prefer short functions.", "style", "user"),
    ("test_failed", "1 != 1.5", "tests/test_ops.py::test_mean", "tool", {"files": ["tests/test_ops.py"]}),
    ("decision", "True division", "division", "agent", {"files": ["tinymath/ops.py"]}),
    ("decision", "Colours of the banner are blue", "banner", "agent"),
    ("tool_output", "nothing that matters", "ls", "tool"),
    ("tool_output", "the fraction is lost at //", "grep", "tool"),
    ("safety_note", "The cache is shared.", "cache", "harness"),
    ("episode", "We began with the fraction", "", "agent"),
)
STATE = reduce(WORK)


def reasons(selection: Selection) -> dict[str, tuple[bool, str]]:
    return {one.item.id: (one.included, one.reason) for one in selection.decisions}


def selected(name: str, profile: str | None = None, state: State = STATE, **more: object) -> Selection:
    return select(state, TASK, policy_for(name, profile, state, **more))


def test_every_group_and_profile_has_its_numbers() -> None:
    assert set(GROUP_WEIGHTS) == set(GROUPS)
    assert set(SHAPES) == set(PROFILES)


def test_required_items_are_taken_and_say_so() -> None:
    found = reasons(selected("continuation"))
    assert found["e2"] == (True, "required: hard constraint")
    assert found["e4"] == (True, "required: open failure")
    assert found["e9"] == (True, "required: safety note")


def test_background_that_shares_nothing_with_the_task_is_left_out_but_in_full() -> None:
    assert reasons(selected("continuation"))["e7"] == (False, "shares nothing with the task")
    assert reasons(selected("continuation"))["e8"][0]
    assert reasons(selected("debug"))["e7"][0]


def test_what_is_nearer_to_the_task_goes_first() -> None:
    found = {one.item.id: one for one in selected("continuation").decisions}
    near, far = found["e5"], found["e6"]
    assert near.breakdown["files"] == 0.5 > far.breakdown["files"]
    assert near.score > far.score
    for one in (near, far):
        assert one.score == round(sum(one.breakdown.values()), 4)
    needed = tokens_of(block_of([*(found[name].item for name in ("e2", "e4", "e9")), near.item], None)) + 2
    tight = reasons(selected("continuation", without=frozenset(("active_goals",)), budget=needed))
    assert (tight["e5"][0], tight["e6"][0]) == (True, False)
    assert "does not fit: " in tight["e6"][1]


def test_a_smaller_item_may_come_after_one_that_does_not_fit() -> None:
    state = reduce(past(("decision", "fraction " * 90, "long", "user"), ("decision", "short", "s", "user")))
    found = reasons(selected("continuation", state=state, budget=20))
    assert [found["e1"][0], found["e2"][0]] == [False, True]


def test_a_required_item_that_does_not_fit_is_an_error_that_names_it() -> None:
    with pytest.raises(InputError) as caught:
        selected("continuation", budget=20)
    said = str(caught.value)
    assert "'e4' is required and does not fit into 20 tokens" in said
    needed = int(said.rpartition("takes ")[2].partition(":")[0])
    assert selected("continuation", budget=needed).tokens <= needed
    with pytest.raises(InputError):
        selected("continuation", budget=needed - 1)


def test_a_default_budget_gives_way_to_what_is_required_except_under_eval() -> None:
    state = reduce(past(*(("test_failed", "x" * 500, f"t{number}", "harness") for number in range(20))))
    assert sum(included for included, _ in reasons(selected("continuation", state=state)).values()) == 20
    with pytest.raises(InputError):
        selected("eval", state=state)


def test_a_budget_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="holds nothing"):
        policy_for("auto", None, STATE, budget=0)


@pytest.mark.parametrize(
    ("name", "profile", "applies"),
    [
        ("auto", None, ("continuation", "compact")),
        ("single_shot", None, ("single_shot", "minimal")),
        ("continuation", None, ("continuation", "compact")),
        ("debug", None, ("debug", "full")),
        ("eval", None, ("eval", "compact")),
        *((name, profile, (None, profile)) for name in POLICIES for profile in PROFILES),
    ],
)
def test_policies_have_profiles_and_a_named_one_goes_before(
    name: str, profile: str | None, applies: tuple[str | None, str]
) -> None:
    policy = policy_for(name, profile, STATE)
    assert policy.profile == applies[1]
    assert applies[0] in (None, policy.name)
    assert policy.asked == name


@pytest.mark.parametrize(
    "history", [past(), past(("goal", "x")), past(("goal", "x"), ("goal_done", "y", "e1"))]
)
@pytest.mark.parametrize("profile", [None, *PROFILES])
def test_single_shot_without_useful_state_takes_nothing(history: object, profile: str | None) -> None:
    state = reduce(history)
    for name in ("auto", "single_shot"):
        selection = selected(name, profile, state)
        assert selection.policy.name == "single_shot"
        assert (selection.items, selection.tokens, selection.carried) == ((), 0, {})
    for _, reason in reasons(selected("auto", profile, reduce(past(("goal", "x"))))).values():
        assert reason == "single-shot: there is no useful earlier state"


def test_held_back_content_alone_is_no_useful_state() -> None:
    state = reduce(past(("tool_output", ORDER, "x", "tool")))
    assert state.of("safety_notes")[0].id.startswith(HELD_BACK)
    assert not is_useful(state)


def test_minimal_takes_its_groups_alone() -> None:
    found = reasons(selected("continuation", "minimal"))
    assert {name for name, (included, _) in found.items() if included} == {"e1", "e2", "e3", "e4", "e9"}
    assert found["e5"] == (False, "the profile minimal takes no decisions")


def test_an_ablation_leaves_out_even_what_is_required_and_says_so() -> None:
    found = reasons(selected("continuation", without=frozenset(("safety_notes",))))
    assert found["e9"] == (False, "the condition leaves out safety_notes")


def test_receipt_selects_as_compact_does_and_carries_nothing() -> None:
    compact, receipt = selected("continuation"), selected("continuation", "receipt")
    assert receipt.items == compact.items
    assert receipt.carried == {}
    assert not receipt.policy.injects


def test_carried_are_the_ids_by_group_in_the_order_of_groups() -> None:
    carried = selected("continuation").carried
    assert list(carried) == [group for group in GROUPS if group in carried]
    assert carried["constraints"] == ("e2", "e3")


def test_long_texts_are_cut_in_their_middle_but_not_those_of_constraints() -> None:
    long = "begin " + "x" * 5000 + " end"
    state = reduce(past(("constraint", long, "c", "user"), ("failure", long, "f", "user")))
    kept, cut = block_of(state.of("constraints"), 60), block_of(state.of("open_failures"), 60)
    assert long in kept
    for part in ("begin", "end", "[… 4950 characters left out]"):
        assert part in cut


def test_words_of_names_are_found_apart() -> None:
    assert words_of("parseHTTPHeader snake_case the x2") == ["parse", "http", "header", "snake", "case"]


def test_relevance_is_one_for_the_best_and_zero_without_a_shared_word() -> None:
    scores = relevance("lost fraction", ["the fraction is lost", "a fraction here", "nothing"])
    assert scores[0] == 1.0 > scores[1] > scores[2] == 0.0
    assert relevance("lost", []) == []
    assert relevance("", ["x y"]) == [0.0]
