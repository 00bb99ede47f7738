"""The claim of a cell is the highest that nothing speaks against."""

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.plan.expand import PlannedCell, Recorded
from orchestrator.run.claim import claim_of
from orchestrator.run.provenance import Provenance
from orchestrator.store.names import CellKey
from scorers.evidence import Evidence, ModelCall, TaskFacts, Usage
from scorers.score import score

FACTS = TaskFacts(task="t", category="c", language="python")
CLEAN = Provenance("0.1.0", "0" * 40, False, "linux/amd64", "6.1", 2, 1 << 33)

USAGE = Usage(input=1, output=1)


def claim(model="openai/gpt", *, usage=USAGE, provenance=CLEAN, recorded=None, **given):
    call = ModelCall(index=0, start=0, end=1, request_hash="h", usage=usage)
    scores = score(FACTS, Evidence(calls=[call]), outcome_counts=True)
    cell = PlannedCell("s/c/m/t#run1", CellKey("opencode", model, "t"), None, 0, recorded)
    facts = {"uses_model": True, "unproved": None, "build_id": "gpt-1"} | given
    return claim_of(cell, provenance, scores, **facts)


def test_a_replay_is_no_result_of_a_model():
    recorded = Recorded("s/opencode/openai/gpt/t#run1", Path("cells"), "openai/gpt")
    said = claim("replay/openai/gpt", recorded=recorded)
    assert (said.level, said.reasons) == (
        "pipeline_only",
        ("a replay of s/opencode/openai/gpt/t#run1: no model was asked",),
    )


def test_nothing_speaks_against_it():
    assert claim().level == "citable"
    assert claim().reasons == ()


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"usage": None}, "tokens"),
        ({"build_id": None}, "build"),
        ({"unproved": "the task is not proved"}, "proved"),
        ({"provenance": replace(CLEAN, dirty=True)}, "checkout"),
        ({"provenance": replace(CLEAN, commit=None, dirty=None)}, "checkout"),
    ],
)
def test_each_lack_makes_it_provisional_and_is_named(given, word):
    found = claim(**given)
    assert found.level == "provisional"
    assert [word in reason for reason in found.reasons] == [True]


def test_a_scripted_model_and_a_baseline_only_test_the_pipeline():
    assert claim("embedded/reference").level == "pipeline_only"
    assert claim("none", uses_model=False).level == "pipeline_only"
    assert claim("embedded/idle").reasons != claim("none", uses_model=False).reasons
