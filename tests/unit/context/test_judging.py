"""How the continuation eval reads texts of any form."""

from __future__ import annotations

import re

import pytest

from orchestrator.context.fixtures import Expectation
from orchestrator.context.judging import in_force, met, reads_as_open

X = re.compile(r"pkg/test_a\.py::test_x")
NAME = "pkg/test_a.py::test_x"


@pytest.mark.parametrize(
    ("text", "is_open"),
    [
        # A transcript is read in its order.
        (f"[harness] test_failed {NAME}: left 1, right 2", True),
        (f"{NAME} failed: 1\n{NAME} passed", False),
        (f"{NAME} failed: 1\n{NAME} passed\n{NAME} failed again", True),
        (f"{NAME} failed\nI look at {NAME} once more.", True),
        (f"failure_resolved {NAME}: gone", False),
        (f"--- FAIL: {NAME} (0.31s)", True),
        # What has no word of its own takes those of its sentence, its line, its heading.
        (f"## Open failures\n- {NAME}: left 1", True),
        (f"Resolved failures:\n- {NAME}: failed with left 1", False),
        (f"## Resolved\n- {NAME}: fails again since Monday", True),
        (f"[4] harness, test passed (retries › fails once, {NAME}):\n> {NAME}", False),
        (f"Still failing: pkg/b.py::test_y; {NAME}", True),
        (f"tests: pkg/b.py::test_y failed, {NAME} passed, pkg/c.py::test_z failed", False),
        (f"tests: pkg/b.py::test_y passed, {NAME} failed, pkg/c.py::test_z passed", True),
        (f"{NAME} failed once, but passes now", False),
        (f"{NAME} is not fixed yet", True),
        (f"{NAME} must be fixed", True),
        (f"{NAME} no longer fails", False),
        (f"The failure of {NAME} is resolved. Others are open.", False),
        # Names of other things are no statements about this one.
        (f"{NAME} in pkg/failed.py", False),
        (f"see pkg/test_a.py::test_failed and {NAME}", False),
        (f"{NAME}", False),
        ("", False),
    ],
)
def test_a_failure_reads_as_open_where_the_last_word_about_it_says_so(text: str, is_open: bool) -> None:
    assert reads_as_open(X, text) is is_open


def test_active_and_resolved_are_the_two_sides_of_one_reading() -> None:
    one = Expectation(what="x", match=X)
    for text in (f"{NAME} failed", f"{NAME} passed", NAME, ""):
        assert met("active_failures", one, text) is not met("resolved_failures", one, text)


@pytest.mark.parametrize(
    ("text", "stands"),
    [
        ("Decision: use an LRU", True),
        ("Decision: use an LRU\nDecision: use a WeakMap", False),
        ("Decision: use a WeakMap\nDecision: use an LRU", True),
        ("Superseded decisions:\n- use an LRU", False),
        ("use an LRU (no longer)", False),
        ("use an\n  LRU", True),
        ("Decision: use a WeakMap", False),
        ("", False),
    ],
)
def test_what_was_ended_stands_unless_the_text_says_so(text: str, stands: bool) -> None:
    one = Expectation(what="cache", match=re.compile("use an LRU"), by=re.compile("use a WeakMap"))
    assert in_force(one, text) is stands
    assert met("superseded", one, text) is not stands


def test_other_things_are_there_or_not_whatever_the_lines_and_the_case() -> None:
    one = Expectation(what="rule", match=re.compile("no new dependencies"))
    assert met("constraints", one, "hard: No new\n  dependencies in render")
    assert not met("constraints", one, "no dependencies")
    assert met("risky", one, "nothing of it")
    assert not met("risky", one, "no new dependencies")
