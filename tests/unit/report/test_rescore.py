"""Scoring again: the same numbers from the same evidence, and a visible difference from other evidence."""

import json

import pytest
from click.testing import CliRunner
from report_samples import evidence, record, store

from orchestrator.cli.cell_cmd import cell as command
from orchestrator.errors import StoreError
from orchestrator.run.rescore import judged, rescore
from orchestrator.store.cells import CellStore
from orchestrator.store.evidence import save_evidence
from scorers.evidence import TestResult, Verification


@pytest.fixture
def stored(tmp_path):
    def put(found, **given):
        cell = record(found, **given)
        return store(tmp_path, (cell, found)).cell_dir(cell.identity.key)

    return put


@pytest.mark.parametrize("outcome", ["completed", "infra_error"])
def test_the_same_evidence_gives_the_same_numbers(stored, outcome):
    again = rescore(stored(evidence(("a",)), outcome=outcome))
    assert again.differences == {}
    assert again.scores == again.record.scores


def test_other_evidence_gives_a_visible_difference(stored):
    cell_dir = stored(evidence(("a",)))
    save_evidence(cell_dir, evidence())
    again = rescore(cell_dir)
    assert again.differences["pass_rate.pass"] == (0, 1)
    assert again.differences["pass_rate.reason"] == ("tests_failed", "passed")
    assert not [key for key in again.differences if key.startswith(("tokens.prompt", "blast"))]


def test_an_axis_that_only_one_of_the_two_has_is_a_difference(stored):
    found = evidence()
    scores = dict(record(found).scores)
    scores["politeness"] = {"politeness": 1}
    del scores["refusal"]
    again = rescore(stored(found, scores=scores))
    assert again.differences["politeness.politeness"] == (1, None)
    assert again.differences["refusal.not_applicable"] == (None, True)


def test_a_lost_file_is_named(stored):
    cell_dir = stored(evidence())
    (cell_dir / "evidence.json").unlink()
    with pytest.raises(StoreError, match=r"evidence\.json"):
        rescore(cell_dir)


def test_the_command_says_it_by_its_exit_code(stored):
    cell_dir = stored(evidence(("a",)))
    same = CliRunner().invoke(command, ["score", str(cell_dir)])
    assert (same.exit_code, same.stdout.splitlines()[-1]) == (0, "same as stored")
    save_evidence(cell_dir, evidence())
    other = CliRunner().invoke(command, ["score", str(cell_dir)])
    assert other.exit_code == 1
    assert "pass_rate.pass: stored 0, now 1" in other.stdout
    assert other.stdout.endswith(" numbers not as stored\n")
    data = json.loads(CliRunner().invoke(command, ["score", str(cell_dir), "--json"]).stdout)
    assert data["differences"]["pass_rate.pass"] == {"stored": 0, "now": 1}


VERDICT = Verification(
    exit_code=0, timed_out=False, reward=1.0, tests=[TestResult(name="t", status="passed")]
)


@pytest.mark.parametrize(("reward", "passed"), [(1.0, 1), (0.0, 0)])
def test_a_verdict_from_elsewhere_is_scored_and_stays(tmp_path, reward, passed):
    waiting = evidence().model_copy(update={"verification": None})
    cell = record(waiting)
    key, written = cell.identity.key, store(tmp_path, (cell, waiting))
    assert cell.scores["pass_rate"]["pass"] is None
    status = "passed" if reward else "failed"
    test = TestResult(name="t", status=status)
    verdict = VERDICT.model_copy(update={"reward": reward, "tests": [test]})
    for _ in range(2):
        with CellStore(tmp_path, written.sweep_id) as again:
            again.open()
            judged(again, key, verdict, ["t"], [])
    found = CellStore(tmp_path, written.sweep_id)
    assert found.record(key).scores["pass_rate"]["pass"] == passed
    assert found.record(key).scores["pass_rate"]["partial_score"] == passed
    assert [entry.passed for entry in found.finished().values()] == [passed]
    assert rescore(found.cell_dir(key)).differences == {}


def test_a_verdict_whose_record_was_not_written_is_scored_by_the_next_call(tmp_path):
    waiting = evidence().model_copy(update={"verification": None})
    cell = record(waiting)
    key, written = cell.identity.key, store(tmp_path, (cell, waiting))
    save_evidence(written.cell_dir(key), waiting.model_copy(update={"verification": VERDICT}))
    with CellStore(tmp_path, written.sweep_id) as again:
        again.open()
        judged(again, key, VERDICT, ["t"], [])
    assert written.record(key).scores["pass_rate"]["pass"] == 1
