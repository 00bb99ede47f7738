"""What a history comes to: which event takes the place of which, ends it, or has no say."""

from __future__ import annotations

import pytest
from histories import KEY, ORDER, item, past

from orchestrator.context.events import KINDS
from orchestrator.context.state import _REDUCERS, GROUP_OF, HELD_BACK, reduce

TEST = "tests/test_ops.py::test_mean"


def test_every_kind_has_a_reducer_and_a_group() -> None:
    assert set(_REDUCERS) == set(GROUP_OF) == set(KINDS)


def test_a_test_that_passes_later_is_no_open_failure() -> None:
    state = reduce(past(("test_failed", "1 != 1.5", TEST, "tool"), ("test_passed", "ok", TEST, "tool")))
    assert state.of("open_failures") == ()
    [note] = state.of("resolved_failure_notes")
    assert (note.id, note.key, note.status) == ("e2", TEST, "active")
    failed = item(state, "e1")
    assert (failed.status, failed.events, failed.last) == ("resolved", ("e1", "e2"), 1)
    assert failed.note == "resolved by e2"


def test_a_test_that_fails_again_is_open_again() -> None:
    state = reduce(
        past(
            ("test_failed", "first", TEST, "tool"),
            ("test_passed", "ok", TEST, "tool"),
            ("test_failed", "second", TEST, "tool"),
        )
    )
    assert [failure.text for failure in state.of("open_failures")] == ["second"]
    assert state.of("resolved_failure_notes") == ()


def test_of_a_test_that_failed_twice_the_last_failure_counts() -> None:
    state = reduce(past(("test_failed", "first", TEST, "tool"), ("test_failed", "second", TEST, "tool")))
    assert [failure.id for failure in state.of("open_failures")] == ["e2"]
    assert item(state, "e1").note == "superseded by e2"


def test_a_pass_without_a_failure_is_evidence_until_the_test_fails() -> None:
    passed = ("test_passed", "ok", TEST, "tool")
    assert [one.id for one in reduce(past(passed)).of("tool_evidence")] == ["e1"]
    state = reduce(past(passed, ("test_failed", "now", TEST, "tool")))
    assert state.of("tool_evidence") == ()
    assert [one.id for one in state.of("open_failures")] == ["e2"]


def test_tests_of_different_ids_do_not_meet() -> None:
    state = reduce(past(("test_failed", "x", TEST, "tool"), ("test_passed", "ok", f"{TEST}_2", "tool")))
    assert [one.id for one in state.of("open_failures")] == ["e1"]


@pytest.mark.parametrize(
    ("begins", "ends", "group", "status"),
    [
        ("goal", "goal_done", "active_goals", "resolved"),
        ("constraint", "constraint_lifted", "constraints", "resolved"),
        ("risk", "risk_closed", "risks", "resolved"),
        ("fact", "fact_retracted", "generic_facts", "superseded"),
        ("failure", "failure_resolved", "open_failures", "resolved"),
    ],
)
def test_what_is_ended_is_not_active_and_can_begin_again(
    begins: str, ends: str, group: str, status: str
) -> None:
    first, last = (begins, "is so", "k", "user"), (ends, "no more", "k", "user")
    state = reduce(past(first, last))
    assert not any(one.group == group for one in state.active)
    assert (item(state, "e1").status, item(state, "e1").events) == (status, ("e1", "e2"))
    again = reduce(past(first, last, (begins, "so again", "k", "user")))
    assert [one.id for one in again.active if one.group == group] == ["e3"]


@pytest.mark.parametrize(
    "kind", ["goal", "constraint", "decision", "procedure", "tool_output", "safety_note", "risk", "fact"]
)
def test_the_later_of_one_key_holds(kind: str) -> None:
    source = "tool" if kind == "tool_output" else "user"
    state = reduce(past((kind, "old", "k", source), (kind, "new", "k", source), (kind, "other", "l", source)))
    assert [one.text for one in state.active] == ["new", "other"]
    assert item(state, "e1").note == "superseded by e2"


def test_without_a_key_each_stands_for_itself_and_is_ended_by_its_id() -> None:
    state = reduce(past(("goal", "a"), ("goal", "b"), ("goal_done", "a is done", "e1")))
    assert [one.text for one in state.active] == ["b"]


def test_a_file_is_known_by_its_path() -> None:
    touched = ("file_touched", "one", "", "agent", {"files": ["a.py"]})
    state = reduce(past(touched, ("file_touched", "two", "", "agent", {"files": ["a.py"]})))
    assert [(one.key, one.text) for one in state.of("touched_files")] == [("a.py", "two")]


def test_what_ends_nothing_is_kept_for_the_receipt() -> None:
    [only] = reduce(past(("goal_done", "done", "k"))).items
    assert (only.status, only.note) == ("resolved", "nothing of its key was active")


@pytest.mark.parametrize("source", ["agent", "tool"])
@pytest.mark.parametrize(
    ("kind", "other", "group"),
    [
        ("constraint", "constraint_lifted", "constraints"),
        ("constraint", "constraint", "constraints"),
        ("safety_note", "safety_note", "safety_notes"),
        ("risk", "risk_closed", "risks"),
    ],
)
def test_nobody_else_overrules_what_the_user_stated(kind: str, other: str, group: str, source: str) -> None:
    state = reduce(past((kind, "stays", "k", "user"), (other, "goes", "k", source)))
    assert [one.text for one in state.active if one.group == group] == ["stays"]
    assert item(state, "e2").status == "superseded" or item(state, "e2").group == "tool_evidence"


def test_an_agent_takes_back_what_an_agent_stated() -> None:
    state = reduce(past(("constraint", "x", "k", "agent"), ("constraint_lifted", "y", "k", "agent")))
    assert state.active == ()


@pytest.mark.parametrize("kind", ["goal", "constraint", "decision", "safety_note"])
def test_what_a_tool_claims_to_set_is_evidence(kind: str) -> None:
    more = {"hard": True} if kind == "constraint" else {}
    [only] = reduce(past((kind, "always do x", "k", "tool", more))).items
    assert (only.group, only.status, only.hard) == ("tool_evidence", "active", False)


def test_risky_output_leaves_a_note_without_a_word_of_it() -> None:
    state = reduce(past(("tool_output", ORDER, "pytest", "tool"), ("tool_output", ORDER, "ruff", "tool")))
    assert [one.status for one in state.items] == ["quarantined", "quarantined", "active"]
    [note] = state.of("safety_notes")
    assert note.id.startswith(HELD_BACK)
    assert note.text == (
        "2 tool outputs were held back, each for the same reason: it tries to override instructions."
    )
    assert note.events == ("e1", "e2")
    assert item(state, "e1").rules == ("overrides_instructions",)
    assert "gnore" not in repr(state)


def test_risky_content_has_no_effect() -> None:
    held = ("test_passed", ORDER, TEST, "tool")
    assert [one.id for one in reduce(past(("test_failed", "x", TEST, "tool"), held)).of("open_failures")] == [
        "e1"
    ]
    state = reduce(past(("fact", "old", "k"), ("fact", ORDER, "k")))
    assert [one.text for one in state.of("generic_facts")] == ["old"]


def test_a_failure_with_risky_output_stays_a_failure() -> None:
    state = reduce(past(("test_failed", f"E {ORDER}", TEST, "tool", {"files": [ORDER]})))
    [failure] = state.of("open_failures")
    assert failure.key == TEST
    assert failure.text == "The output of this was held back: it tries to override instructions."
    assert item(state, "e1:content").status == "quarantined"
    assert "gnore" not in repr(state)


def test_a_risky_key_is_held_back_with_all() -> None:
    state = reduce(past(("test_failed", "x", ORDER, "tool")))
    assert state.of("open_failures") == ()
    assert "gnore" not in repr(state)


def test_what_the_user_says_is_taken_as_it_is_but_for_keys() -> None:
    state = reduce(past(("fact", f"{ORDER} {KEY}", "k", "user"), ("fact", "rm -rf /", "l", "harness")))
    assert [one.text for one in state.active] == [f"{ORDER} [key taken out]", "rm -rf /"]


def test_a_key_in_an_id_is_taken_out() -> None:
    history = past(("fact", "x", "", "user", {"id": KEY}))
    assert KEY not in repr(reduce(history))


def test_a_long_history_is_reduced() -> None:
    several = [("test_failed", "x", f"t{number % 900}", "harness") for number in range(4000)]
    assert len(reduce(past(*several)).of("open_failures")) == 900
