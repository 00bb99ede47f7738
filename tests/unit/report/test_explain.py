"""`cab explain composite`: the terms shown give the number stored, or it says that they do not."""

import json

import pytest
from click.testing import CliRunner
from report_samples import entry, evidence, record, store

from orchestrator.cli.explain_cmd import explain as command
from scorers.composite import PUBLISHED
from scorers.evidence import ModelCall, Usage


def spent(tokens):
    usage = None if tokens is None else Usage(input=tokens, output=0)
    return [ModelCall(index=0, start=2, end=4, request_hash="h", usage=usage)]


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
    data["scores"]["composite"] |= {"composite": 0.5, "bounds": [0.5, 0.5]}
    path.write_text(json.dumps(data))
    shown = CliRunner().invoke(command, ["composite", str(cell_dir)])
    assert shown.exit_code == 1
    assert "do not give what is stored, 0.500000" in " ".join(shown.stdout.split())


def test_bounds_and_the_reason_stand_where_a_term_was_not_measured(stored):
    shown = CliRunner().invoke(command, ["composite", str(stored(evidence(calls=spent(None))))])
    assert shown.exit_code == 0
    assert "only bounds of it: tokens" in shown.stdout
    assert "[0.90, 1]" in shown.stdout


def test_a_cell_that_does_not_count_has_a_reason_and_no_terms(stored):
    cell_dir = stored(evidence(), outcome="infra_error", cause="engine")
    shown = CliRunner().invoke(command, ["composite", str(cell_dir)])
    assert (shown.exit_code, shown.stdout.splitlines()[1:]) == (
        0,
        ["no composite: the outcome of this cell is not counted"],
    )


def test_json_has_the_terms_and_both_numbers(stored):
    cell_dir = stored(evidence(calls=spent(400)))
    shown = CliRunner().invoke(command, ["composite", str(cell_dir), "--json", "--formula", PUBLISHED])
    data = json.loads(shown.stdout)
    assert (data["cell_id"], data["agrees"]) == (entry().cell_id, True)
    assert data["recorded"] == pytest.approx(data["value"][0], rel=1e-12)
    assert {term["name"] for term in data["terms"]} == {
        *("pass_rate", "integrity", "cost_efficiency", "latency_efficiency", "clean_blast"),
    }
