"""A composite's terms give the recorded number, measured or between bounds."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.analysis.terms import explain
from scorers.evidence import (
    AgentEnd,
    Evidence,
    FileChange,
    ModelCall,
    Span,
    TaskFacts,
    Usage,
    Verification,
)
from scorers.score import score

FACTS = TaskFacts(
    task="polyglot/sum",
    category="polyglot",
    language="python",
    ref_tokens=100,
    ref_active_s=5.0,
    ref_diff_lines=4,
)


def scores(facts: TaskFacts = FACTS, **given: Any) -> dict[str, dict[str, Any]]:
    fields: dict[str, Any] = {
        "phases": {
            name: Span(start=at, end=at + 10) for at, name in enumerate(("setup", "agent", "collect"))
        },
        "end": AgentEnd(exit_code=0),
        "calls": [ModelCall(index=0, start=2, end=4, request_hash="h", usage=Usage(input=300, output=100))],
        "changes": [FileChange(path="x", change="added", lines_added=3, lines_removed=0)],
        "verification": Verification(exit_code=0, timed_out=False, reward=1.0),
    }
    return score(facts, Evidence(**(fields | given)), outcome_counts=True).by_axis()


@pytest.mark.parametrize("axis", ["composite", "composite_published"])
def test_terms_times_factors_are_the_recorded_number(axis: str) -> None:
    found = explain(scores(), FACTS, axis)
    assert found is not None
    assert found.total is not None
    assert found.agrees is True
    assert sum(term.adds[0] for term in found.terms) == pytest.approx(found.total[0])
    assert 0.4 < found.recorded < 1  # type: ignore[operator]


def test_each_term_says_what_it_was_made_of() -> None:
    found = explain(scores(), FACTS)
    assert found is not None
    tokens = found.terms[1]
    assert (tokens.low, tokens.adds) == (0.5, (0.05, 0.05))
    assert "√(100 / 400)" in tokens.how


def test_an_unmeasured_term_lies_between_bounds_as_the_composite_does() -> None:
    stated = ModelCall(index=0, start=2, end=4, request_hash="h", usage=Usage(input=300, output=100))
    silent = ModelCall(index=1, start=4, end=5, request_hash="h")
    found = explain(scores(calls=[stated, silent]), FACTS)
    assert found is not None
    tokens = found.terms[1]
    assert (tokens.low, tokens.high) == (0, 0.5)
    assert tokens.reason
    assert found.recorded is None
    assert found.bounds == found.value
    assert found.agrees is True


def test_other_rules_than_todays_are_not_passed_over() -> None:
    changed = scores()
    changed["composite"] |= {"composite": 0.123, "bounds": [0.123, 0.123]}
    found = explain(changed, FACTS)
    assert found is not None
    assert found.agrees is False


def test_a_voided_cell_has_its_terms_and_no_points() -> None:
    changed = scores()
    changed["composite"]["components"] |= {"void_factor": 0.0}
    changed["composite"] |= {"composite": 0.0, "bounds": [0.0, 0.0]}
    found = explain(changed, FACTS)
    assert found is not None
    assert found.total is not None
    assert found.total[0] > 0.7
    assert found.value == (0, 0)
    assert found.agrees


def test_a_cell_that_is_not_counted_has_no_terms() -> None:
    uncounted = score(FACTS, Evidence(), outcome_counts=False).by_axis()
    assert explain(uncounted, FACTS) is None
