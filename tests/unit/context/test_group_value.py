"""Labels of groups: what each comes from, and where one hangs on a single fixture."""

from __future__ import annotations

import pytest

from orchestrator.context.continuation import Reading, Tally
from orchestrator.context.fixtures import MEASURES, Measure, load_fixtures
from orchestrator.context.state import GROUPS
from orchestrator.context.value import INTERVENTIONS, UNUSED, Effect, effect, label_of, value

SOME = tuple(one for one in load_fixtures() if one.name in ("injected-audit-node", "prompt-filter-python"))
FOUND = value(SOME)


def lost(amount: int, measure: Measure = "files") -> tuple[tuple[Measure, str], ...]:
    return tuple((measure, f"{measure} {number}") for number in range(amount))


def of(tokens: int, less: int = 0, more: int = 0, measure: Measure = "files", carried: int = 5) -> Effect:
    return Effect("no_decisions", lost(less, measure), lost(more), 100, tokens, 1000, 0, carried)


@pytest.mark.parametrize(
    ("found", "label"),
    [
        (of(900, less=1, more=2), "harmful"),
        (of(400, less=1, more=1), "too costly"),
        (of(100, less=1, measure="constraints"), "required"),
        (of(100, less=1, measure="warnings"), "required"),
        (of(900, less=4), "too costly"),
        (of(900, less=5), "required"),
        (of(951, less=0), "neutral"),
        (of(950, less=0), "too costly"),
        (of(960, less=2), "required"),
        (of(960, less=1), "neutral"),
        (of(1000), "neutral"),
        (of(500, carried=0), None),
    ],
)
def test_a_label_comes_from_what_is_lost_gained_and_saved(found: Effect, label: str | None) -> None:
    assert label_of(found)[0] == label


def reading(name: str, tokens: int | None, **missed: tuple[str, ...]) -> Reading:
    tallies = {
        measure: Tally(2 - len(missed.get(measure, ())), 2, missed=missed.get(measure, ()))
        for measure in MEASURES
        if measure != "goals"
    }
    tallies["goals"] = Tally(0, 0, "none expected")
    return Reading(name, "c", tokens, 100, tallies, {"decisions": ("d1",)})


def test_an_effect_is_over_what_applies_to_both() -> None:
    base = [reading("a", 50), reading("b", 60, files=("b: x",))]
    other = [reading("a", 40, decisions=("a: y",)), reading("b", None)]
    found = effect("no_decisions", base, other)
    assert (found.lost, found.gained) == ((("decisions", "a: y"),), (("files", "b: x"),))
    assert (found.of, found.worth) == (39, 0.0)
    assert (found.tokens, found.base_tokens, found.share) == (40, 50, pytest.approx(0.2))
    assert found.carried == 2
    assert effect("minimal", base, other).carried is None


def test_every_group_is_valued_and_every_intervention_made() -> None:
    assert [one.group for one in FOUND.groups] == list(GROUPS)
    assert [one.intervention for one in FOUND.effects] == list(INTERVENTIONS)
    assert all((one.label is None) is (one.reason == UNUSED) for one in FOUND.groups)


def test_a_label_that_hangs_on_one_fixture_says_so() -> None:
    """The labels of all but one fixture are the label of all or among those that it may have."""
    whole = value(SOME)
    seen: dict[str, set[object]] = {one.group: set() for one in whole.groups}
    for number in range(len(SOME)):
        for one in value((*SOME[:number], *SOME[number + 1 :])).groups:
            seen[one.group].add(one.label)
    for one in whole.groups:
        assert set(one.unsure) == seen[one.group] - {one.label, None}
    assert any(one.unsure for one in whole.groups)


def test_nothing_packaged_keeps_nothing_and_costs_nothing() -> None:
    [none] = [one for one in FOUND.effects if one.intervention == "none"]
    assert (none.tokens, none.share, none.worth) == (0, 1.0, 1.0)
