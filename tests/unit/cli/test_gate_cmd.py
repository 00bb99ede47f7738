"""`cab gate` and `cab history` as they are called: exit codes, files, and what a terminal shows."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from night_samples import REFERENCE, drawn, name_of, night, of, on_disk

from orchestrator.cli import main

GOOD, BAD = drawn(0.9, 20, 3, seed=1), drawn(0.4, 20, 3, seed=2)


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are as wide as they like, whatever COLUMNS the tests are run with."""
    monkeypatch.setenv("COLUMNS", "160")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Three nights: two alike, and one on which a pair dropped."""
    for number, runs in enumerate((GOOD, drawn(0.9, 20, 3, seed=3), BAD)):
        build = f"\x1b[31m\u202efp_{number // 2}"
        cells = of(number, runs, model_builds=(build,))
        on_disk(tmp_path / "r", night(number, cells, of(number, [[1]] * 2, REFERENCE)))
    return tmp_path / "r"


def cab(results: Path, *arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "-r", str(results)])
    return int(ended.value.code or 0)


def gate(results: Path, number: int, *arguments: str, baseline: str = "last-good:5") -> int:
    return cab(results, "gate", "--baseline", baseline, "--candidate", name_of(number), *arguments)


def test_a_job_needs_one_line_a_night(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert [gate(results, number, "--keep") for number in range(3)] == [0, 0, 1]
    out = capsys.readouterr().out
    assert f"PASS: {name_of(1)} against {name_of(0)}" in out
    assert f"FAIL: {name_of(2)} against {name_of(0)}, {name_of(1)}" in out
    assert "on 20 shared tasks" in out
    kept = json.loads((results / name_of(2) / "gate.json").read_text())
    assert (kept["passed"], kept["baseline"]) == (False, [name_of(0), name_of(1)])
    assert len(kept["reasons"]) == 1


def test_nothing_is_kept_unasked(results: Path) -> None:
    assert gate(results, 2, baseline=name_of(0)) == 1
    assert not list(results.glob("*/gate.json"))


def test_the_files_are_written_whatever_the_verdict(results: Path, tmp_path: Path) -> None:
    xml, text = tmp_path / "out" / "gate.xml", tmp_path / "out" / "gate.md"
    for number, code in ((1, 0), (2, 1)):
        ended = gate(results, number, "--junit", str(xml), "--markdown", str(text), baseline=name_of(0))
        assert ended == code
        failures = ElementTree.parse(xml).getroot().findall(".//failure")
        assert (len(failures), text.read_text().startswith("## ✅")) == (code, code == 0)


def test_json_has_every_number(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gate(results, 2, "--axis", "tokens=1.25", "--json", baseline=name_of(0)) == 1
    data = json.loads(capsys.readouterr().out)
    assert (data["passed"], len(data["reasons"])) == (False, 1)
    assert [(test["axis"], test["limit"], test["verdict"]) for test in data["tests"]] == [
        ("passed", None, "worse"),
        ("tokens", 1.25, "no significant change"),
    ]
    assert {it["pair"]: it["value"] for it in data["coverage"]}["aider × v/one"] == 1.0
    assert [it["what"] for it in data["differences"]] == ["model build"]


def test_standard_output_takes_one_thing(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gate(results, 1, "--junit", "-", baseline=name_of(0)) == 0
    assert ElementTree.fromstring(capsys.readouterr().out).tag == "testsuites"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--axis", "tokes=2"], "did you mean 'tokens'?"),
        (["--axis", "tokens"], "write tokens=1.25"),
        (["--axis", "tokens=0.5"], "gives no factor of 1 or more"),
        (["--axis", "tokens=nan"], "gives no factor of 1 or more"),
        (["--baseline", "nightly-2026"], "there is no such sweep"),
        (["--alpha", "0"], "alpha"),
    ],
)
def test_bad_input_is_2_and_one_line(
    results: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert gate(results, 1, *arguments, baseline=name_of(0)) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_a_directory_of_sweeps_is_no_candidate(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cab(results, "gate", "--baseline", name_of(0), "--candidate", str(results)) == 2
    assert "holds 3 sweeps" in capsys.readouterr().err


def test_a_terminal_gets_no_escape_of_an_endpoints(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gate(results, 2, baseline=name_of(0))
    cab(results, "history")
    out = capsys.readouterr().out
    assert "fp_1" in out
    assert "\x1b" not in out
    assert "\u202e" not in out


def test_history_shows_nights_as_bars(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    on_disk(results, night(3, of(3, [[None] * 3] * 20), of(3, [[0], [1]], REFERENCE)))
    assert cab(results, "history") == 0
    out = capsys.readouterr().out
    rows = [line.split() for line in out.splitlines() if line.startswith("aider × ") and "█" in line]
    assert [row[3] for row in rows] == ["██▄·", "███▅"], out
    assert "no change of level is tested with fewer than 8 nights with a result" in out
    assert cab(results, "history", "--last", "2", "--json") == 0
    assert json.loads(capsys.readouterr().out)["nights"] == [name_of(2), name_of(3)]


def test_history_of_nothing_is_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "r").mkdir()
    assert cab(tmp_path / "r", "history") == 2
    assert "holds no sweep" in capsys.readouterr().err
