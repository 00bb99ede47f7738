"""Outcome differences by state group, on scorecards made so that the answer is known."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from orchestrator.analysis.conditions import Outcome
from orchestrator.errors import InputError
from orchestrator.external.attributed import as_data, print_attribution, table, words
from orchestrator.external.attribution import Ablation, Attribution, attribute
from orchestrator.external.results import Claim, ClaimLevel, Scorecard, TaskResult, Verdict

TASKS = tuple(f"t{number}" for number in range(8))
ALL = {"decisions": ("d1",), "procedures": ("p1",)}
RESOLVED: Mapping[bool, Outcome] = {True: "resolved", False: "unresolved"}


def result(
    task: str,
    condition: str,
    outcome: Outcome | None,
    carried: Mapping[str, tuple[str, ...]],
    *,
    run: int = 1,
    tokens: int = 100,
) -> TaskResult:
    return TaskResult(
        instance_id=task,
        condition=condition,
        run=run,
        agent_outcome="completed",
        prompt_tokens=500 + tokens,
        context_tokens=tokens,
        carried=dict(carried),
        patch_bytes=10,
        patch_lines=2,
        verdict=None if outcome is None else Verdict(outcome=outcome),
    )


def card(
    results: Sequence[TaskResult], *, level: ClaimLevel = "harness_evaluated", partial: bool = False
) -> Scorecard:
    return Scorecard(
        run_id="r1",
        benchmark="swebench",
        agent="aider",
        model="embedded/follows-context",
        conditions=tuple(dict.fromkeys(one.condition for one in results)),
        runs=1,
        claim=Claim(level=level, partial=partial),
        results=tuple(results),
    )


def sides(group: str, with_it: str, without: str, *, carried: str = "") -> list[TaskResult]:
    """One result a task on either side, resolved where the text has `+`; with `carried` only the tasks that
    have a `+` there carried the group.
    """
    found = []
    for number, (a, b) in enumerate(zip(with_it, without, strict=True)):
        rest = {of: items for of, items in ALL.items() if of != group}
        has = not carried or carried[number] == "+"
        full = {**rest, group: ALL[group]} if has else rest
        found.append(result(TASKS[number], "stateplane", RESOLVED[a == "+"], full))
        found.append(result(TASKS[number], f"stateplane-no_{group}", RESOLVED[b == "+"], rest, tokens=60))
    return found


def one(found: Attribution, group: str) -> Ablation:
    return next(it for it in found.ablations if it.group == group)


def test_a_group_that_all_hangs_on_and_one_that_nothing_does() -> None:
    decisions = sides("decisions", "++++++++", "--------")
    procedures = [it for it in sides("procedures", "++++++++", "++++++++") if it.condition != "stateplane"]
    found = attribute(card([*decisions, *procedures]))
    it = one(found, "decisions")
    assert [flip.task for flip in it.helped] == list(TASKS)
    assert it.hurt == ()
    assert it.resolved.value == 1.0
    assert it.resolved.p == pytest.approx(2 / 2**8)
    # Two groups were tested: Holm doubles the smaller p.
    assert it.resolved.p_adjusted == pytest.approx(4 / 2**8)
    assert it.resolved.verdict == "better"
    assert it.tokens == 40
    other = one(found, "procedures")
    assert (other.helped, other.hurt, other.resolved.value, other.resolved.p) == ((), (), 0.0, 1.0)
    assert other.resolved.verdict == "no detectable difference"


def test_a_group_that_hurts_is_worse() -> None:
    it = one(attribute(card(sides("decisions", "--------", "++++++++"))), "decisions")
    assert (it.resolved.value, it.resolved.verdict, len(it.hurt), it.helped) == (-1.0, "worse", 8, ())


def test_a_difference_of_a_few_tasks_is_no_finding() -> None:
    it = one(attribute(card(sides("decisions", "++++++++", "--++++++"))), "decisions")
    assert it.resolved.value == 0.25
    assert it.resolved.p == 0.5
    assert it.resolved.verdict == "no detectable difference"


def test_no_claim_below_the_minimum_of_tasks_and_none_for_others_either() -> None:
    """Five tasks that all flip say nothing, and are no test that others are corrected for."""
    few = sides("decisions", "++++++++", "-----+++", carried="+++++---")
    base = [it for it in few if it.condition == "stateplane"]
    without = [
        result(task, "stateplane-no_procedures", "unresolved", {"decisions": ("d1",)}) for task in TASKS
    ]
    found = attribute(card([*base, *without, *(it for it in few if it not in base)]))
    it = one(found, "decisions")
    assert it.tasks == TASKS[:5]
    assert it.resolved.verdict == "too few shared tasks"
    assert it.resolved.p_adjusted is None
    assert one(found, "procedures").resolved.p_adjusted == one(found, "procedures").resolved.p
    assert any("below 6 tasks" in line for line in words(found))


def test_tasks_that_have_nothing_of_the_group_do_not_count() -> None:
    it = one(attribute(card(sides("decisions", "++++++++", "------++", carried="++++++--"))), "decisions")
    assert (it.tasks, it.uncarried) == (TASKS[:6], 2)
    assert it.resolved.value == 1.0
    # The same outcomes, with all of them counted.
    assert (
        one(attribute(card(sides("decisions", "++++++++", "------++"))), "decisions").resolved.value == 0.75
    )


@pytest.mark.parametrize("partial", [False, True])
def test_nothing_of_an_outcome_is_told_where_nothing_may_be_claimed(*, partial: bool) -> None:
    level: ClaimLevel = "harness_evaluated" if partial else "patch_generation_only"
    shown = as_data(attribute(card(sides("decisions", "++++++++", "--------"), level=level, partial=partial)))
    hidden = as_data(
        attribute(card(sides("decisions", "--------", "++++++++"), level=level, partial=partial))
    )
    assert shown["withheld"]
    assert json.dumps(shown) == json.dumps(hidden)
    assert shown["ablations"][0]["tokens"] == 40


def test_a_card_that_does_not_agree_with_its_run_tells_no_outcome() -> None:
    of = card(sides("decisions", "++++++++", "--------"))
    doubted = of.model_copy(update={"claim": of.claim.model_copy(update={"doubts": ("it lacks one",)})})
    found = attribute(doubted)
    assert found.withheld == "the scorecard does not agree with the run beside it: it lacks one"
    assert one(found, "decisions").resolved.value is None


def test_runs_are_means_within_a_task() -> None:
    again = [
        it.model_copy(update={"run": run})
        for run in (1, 2)
        for it in sides("decisions", "++++++++", "--------" if run == 1 else "++++++++")
    ]
    it = one(attribute(card(again)), "decisions")
    assert it.resolved.value == 0.5
    assert it.resolved.method == "sign-flip permutation"
    assert it.runs == ((2, 2), (2, 2))
    assert (it.helped[0].b, it.helped[0].runs_b, it.helped[0].a, it.helped[0].runs_a) == (2, 2, 1, 2)


def test_other_items_that_came_in_are_said() -> None:
    results = sides("decisions", "++++++++", "--------")
    ablated = {"procedures": ("p1", "p2")}
    results[1] = results[1].model_copy(update={"carried": ablated})
    found = attribute(card(results))
    assert one(found, "decisions").displaced == 1
    assert any("in 1 task other items came in" in line for line in words(found))


def test_a_condition_that_carried_what_it_leaves_out_is_refused() -> None:
    results = sides("decisions", "+" * 8, "-" * 8)
    results[1] = results[1].model_copy(update={"carried": ALL})
    with pytest.raises(InputError, match=r"t0 under stateplane-no_decisions: the prompt of run 1 carried d1"):
        attribute(card(results))


@pytest.mark.parametrize("names", [["stateplane"], ["stateplane-no_decisions"], ["compact_summary"]])
def test_a_run_without_both_sides_is_refused(names: list[str]) -> None:
    results = [it for it in sides("decisions", "+" * 8, "-" * 8) if it.condition in names]
    results += [result("t0", "transcript_replay", "resolved", {})]
    with pytest.raises(InputError, match=r"nothing to attribute .*stateplane-no_decisions"):
        attribute(card(results))


def cells_of(found: Attribution) -> dict[str, str]:
    return {column.name: column.cells[0] for column in table(found)}


def test_the_table_shows_the_difference_and_its_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    found = attribute(card(sides("decisions", "++++++++", "--------")))
    shown: dict[str, Any] = cells_of(found)
    assert (shown["group"], shown["tasks"], shown["tokens"]) == ("decisions", "8", "40")
    assert (shown["helped"], shown["hurt"], shown["with − without"]) == ("8", "0", "+1.000")
    assert (shown["p"], shown["with it"]) == ("0.0078", "better")
    print_attribution(found, as_json=False, as_markdown=True)
    said = capsys.readouterr().out
    assert "claim: harness_evaluated" in said
    assert "decisions helped: t0 (1/1 with, 0/1 without)" in said


def test_the_table_shows_no_outcome_where_nothing_may_be_claimed() -> None:
    shown = cells_of(attribute(card(sides("decisions", "+" * 8, "-" * 8), level="dry_run_pipeline_only")))
    assert [shown[name] for name in ("helped", "hurt", "with − without", "95 %", "p")] == ["–"] * 5
    assert shown["with it"] == "not measured"
