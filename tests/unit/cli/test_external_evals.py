"""`cab external continuation` and `value`: forms of output, fixtures of one's own, wrong input."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from orchestrator.cli.external_cmd import external
from orchestrator.errors import CabError
from orchestrator.paths import EXTERNAL

ONE = EXTERNAL / "continuation" / "flaky-scheduler-go.json"


@pytest.fixture
def fixtures(tmp_path: Path) -> str:
    (tmp_path / ONE.name).write_bytes(ONE.read_bytes())
    return str(tmp_path)


def call(*words: str) -> Result:
    return CliRunner(catch_exceptions=False).invoke(external, words)


def test_json_and_csv_hold_the_same_numbers(fixtures: str) -> None:
    words = ("continuation", "--fixtures", fixtures, "--conditions", "stateplane-minimal,compact_summary")
    data = json.loads(call(*words, "--json").output)
    assert (data["fixtures"], data["conditions"]) == (1, ["stateplane-minimal", "compact_summary"])
    rows = list(csv.DictReader(io.StringIO(call(*words, "--csv").output)))
    for one in data["overall"]:
        for measure, tally in one["tallies"].items():
            [row] = [
                row
                for row in rows
                if (row["fixture"], row["condition"], row["measure"])
                == ("overall", one["condition"], measure)
            ]
            assert (int(row["met"]), int(row["of"])) == (tally["met"], tally["of"])
            assert bool(row["reason"]) is (tally["of"] == 0)


def test_a_table_names_measures_misses_and_why_there_is_a_dash(fixtures: str) -> None:
    words = ("continuation", "--fixtures", fixtures, "--conditions", "stateplane-none,transcript_replay")
    for form in ((), ("--markdown",)):
        text = call(*words, *form).output
        assert "constraints kept" in text
        assert "0/2" in text
        assert "nothing is packaged" in text
        assert "drain test is open again" in text


def test_value_comes_in_every_form(fixtures: str) -> None:
    data = json.loads(call("value", "--fixtures", fixtures, "--json").output)
    rows = list(csv.DictReader(io.StringIO(call("value", "--fixtures", fixtures, "--csv").output)))
    effects = {one["intervention"]: one for one in data["effects"]}
    assert {row["intervention"]: int(row["lost"]) for row in rows} == {
        name: len(one["lost"]) for name, one in effects.items()
    }
    assert "open_failures" in call("value", "--fixtures", fixtures).output
    assert "| no\\_decisions |" in call("value", "--fixtures", fixtures, "--markdown").output


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("continuation", "--conditions", "compact_sumary"), "compact_summary"),
        (("continuation", "--conditions", "stateplane,stateplane"), "twice"),
        (("continuation", "--json", "--csv"), "give one"),
        (("value", "--markdown", "--csv"), "give one"),
        (("value", "--fixtures", "/nowhere"), "/nowhere"),
    ],
)
def test_wrong_input_is_a_line(words: tuple[str, ...], named: str) -> None:
    with pytest.raises(CabError, match=named):
        call(*words)
