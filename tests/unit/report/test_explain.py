"""`cab explain composite`: the terms shown give the number stored, or it says that they do not."""

import json

import pytest
from click.testing import CliRunner
from report_samples import FACTS, entry, evidence, record, store

from orchestrator.analysis.explain import explain
from orchestrator.cli.explain_cmd import explain as command
from scorers.composite import CAB_1, PUBLISHED
from scorers.evidence import FileChange, FinalMessage, ModelCall, RefusalRule, Usage

FORMULAS = (CAB_1, PUBLISHED)
ASKED_TO_REFUSE = FACTS.model_copy(
    update={"expected_refusal": True, "refusal": RefusalRule(explains=[["contradict"]])}
)


def spent(tokens):
    usage = None if tokens is None else Usage(input=tokens, output=0)
    return [ModelCall(index=0, start=2, end=4, request_hash="h", usage=usage)]


CHANGED = [
    FileChange(path=path, change="modified", origin="agent", lines_added=added, lines_removed=1)
    for path, added in (("src/sum.py", 3), ("README.md", 1))
]


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize(
    ("found", "facts"),
    [
        (evidence(), FACTS),
        (evidence(calls=spent(12345)), FACTS),
        (evidence(calls=spent(0), changes=CHANGED), FACTS),
        (evidence(("a",)), FACTS),
        (evidence(final_message=FinalMessage(text="They contradict.", source="wire")), ASKED_TO_REFUSE),
    ],
)
def test_terms_give_the_stored_composite(found, facts, formula):
    scores = record(found, facts=facts).scores
    said = explain(scores, formula, facts)
    assert said.composite is not None
    assert said.holds is True
    assert said.recomputed == pytest.approx(said.composite, rel=1e-12)
    assert said.reason is None
    assert all(term.how for term in (*said.summands, *said.factors))


def test_terms_are_what_the_formula_is_documented_to_be():
    said = explain(record(evidence(calls=spent(400), changes=CHANGED)).scores, CAB_1, FACTS)
    terms = {term.name: (term.weight, term.value) for term in (*said.summands, *said.factors)}
    assert terms["solved"] == (0.70, 1.0)
    assert terms["tokens"] == (0.10, 0.5)  # √(100 / 400)
    assert terms["clean_blast"] == (0.10, pytest.approx(1 - 2 / 4))
    assert (terms["pass"], terms["void_factor"]) == ((None, 1), (None, 1))
    assert "√(100 ÷ 400 tokens)" in {term.name: term.how for term in said.summands}["tokens"]


def test_an_unmeasured_term_says_why_and_leaves_bounds():
    said = explain(record(evidence(calls=spent(None))).scores, CAB_1, FACTS)
    tokens = next(term for term in said.summands if term.name == "tokens")
    assert (said.composite, said.recomputed, said.holds, tokens.value, tokens.adds) == (None,) * 5
    assert said.bounds is not None
    assert said.bounds[0] < said.bounds[1]
    assert tokens.how in (said.reason or "")


def test_a_failed_cell_is_zero_whatever_was_not_measured():
    said = explain(record(evidence(("a",), calls=spent(None))).scores, CAB_1, FACTS)
    assert (said.composite, said.recomputed, said.holds) == (0.0, 0.0, True)


def test_a_cell_that_does_not_count_has_a_reason_and_no_terms():
    said = explain(record(evidence(), outcome="infra_error", cause="engine").scores, CAB_1, FACTS)
    assert (said.summands, said.factors, said.holds) == ((), (), None)
    assert said.reason == "the outcome of this cell is not counted"


@pytest.fixture
def stored(tmp_path):
    def put(found, **given):
        cell = record(found, **given)
        return store(tmp_path, (cell, found)).cell_dir(cell.identity.key)

    return put


def test_the_command_shows_each_term_on_a_line_of_its_own(stored):
    shown = CliRunner().invoke(command, ["composite", str(stored(evidence(calls=spent(400))))])
    assert shown.exit_code == 0
    lines = [line.split() for line in shown.stdout.splitlines()]
    assert next(line[:4] for line in lines if line[:1] == ["tokens"]) == [
        "tokens",
        "0.10",
        "0.5000",
        "0.0500",
    ]
    assert ["cab-1", "0.9500", "as", "stored"] in lines


def test_a_record_whose_terms_do_not_give_its_composite_is_told(stored):
    cell_dir = stored(evidence())
    path = cell_dir / "cell.json"
    data = json.loads(path.read_text())
    data["scores"]["composite"]["composite"] = 0.5
    path.write_text(json.dumps(data))
    shown = CliRunner().invoke(command, ["composite", str(cell_dir)])
    assert shown.exit_code == 1
    assert "0.500000 is stored" in " ".join(shown.stdout.split())


def test_json_has_the_terms_and_both_numbers(stored):
    cell_dir = stored(evidence(calls=spent(400)))
    shown = CliRunner().invoke(command, ["composite", str(cell_dir), "--json", "--formula", PUBLISHED])
    data = json.loads(shown.stdout)
    assert data["cell_id"] == entry().cell_id
    assert data["composite"] == pytest.approx(data["recomputed"], rel=1e-12)
    assert {term["name"] for term in data["summands"]} == {
        *("pass_rate", "integrity", "cost_efficiency", "latency_efficiency", "clean_blast"),
    }
