"""Names of conditions, their parts, and what is said of a name that is none."""

from __future__ import annotations

import pytest

from orchestrator.context.conditions import CONDITIONS, Condition, parse_condition
from orchestrator.context.state import GROUPS
from orchestrator.errors import InputError

ALL = frozenset(GROUPS)


@pytest.mark.parametrize(
    ("name", "means"),
    [
        *((name, Condition(name)) for name in CONDITIONS),
        ("stateplane-minimal", Condition("stateplane", profile="minimal")),
        ("stateplane-none", Condition("stateplane", profile="none")),
        ("stateplane-max_300_tokens", Condition("stateplane", budget=300)),
        ("stateplane-no_decisions", Condition("stateplane", frozenset(("decisions",)))),
        ("stateplane-no_decisions_risks", Condition("stateplane", frozenset(("decisions", "risks")))),
        ("stateplane-no_decisions-no_risks", Condition("stateplane", frozenset(("decisions", "risks")))),
        (
            "stateplane-constraints_open_failures",
            Condition("stateplane", ALL - {"constraints", "open_failures"}),
        ),
        (
            "stateplane-full-no_episodes-max_50_tokens",
            Condition("stateplane", frozenset(("episodes",)), "full", 50),
        ),
    ],
)
def test_names_mean_what_they_say(name: str, means: Condition) -> None:
    assert parse_condition(name) == means


@pytest.mark.parametrize("group", GROUPS)
def test_every_group_can_be_left_out_and_stand_alone(group: str) -> None:
    assert parse_condition(f"stateplane-no_{group}").without == {group}
    assert parse_condition(f"stateplane-{group}").without == ALL - {group}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("stateplan", "did you mean 'stateplane'?"),
        ("transcript-replay", "did you mean 'transcript_replay'?"),
        ("stateplane-no_decision", "did you mean 'no_decisions'?"),
        ("stateplane-constraint", "did you mean 'constraints'?"),
        ("stateplane-minmal", "did you mean 'minimal'?"),
        ("stateplane-max_0_tokens", "did you mean 'max_300_tokens'?"),
        ("stateplane-", "'' is no part of one"),
        ("stateplane-max_9000000_tokens", "over 1000000 tokens"),
        ("stateplane-minimal-full", "two profiles"),
        ("stateplane-max_1_tokens-max_2_tokens", "two budgets"),
        ("compact_summary-minimal", "compact_summary stands alone"),
        ("stateplane-constraints-decisions", "leaves out every group"),
        ("", "known: "),
    ],
)
def test_what_is_no_condition_is_told_with_the_nearest(name: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_condition(name)
    assert said in str(caught.value)


@pytest.mark.parametrize("part", ["no_decisions-", "constraints_"])
def test_a_name_that_no_file_could_have_is_refused(part: str) -> None:
    with pytest.raises(InputError, match="is longer than 110 characters"):
        parse_condition(f"stateplane-{part * 3000}no_risks")
