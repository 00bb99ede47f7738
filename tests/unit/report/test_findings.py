"""Findings of integrity in a terminal: rule, place and evidence, and nothing of an agent's raw."""

from orchestrator.report.findings import MAX_FINDINGS, print_findings
from orchestrator.report.text import console


def shown(findings, capsys):
    print_findings({"findings": findings}, console())
    return capsys.readouterr().out


def finding(**given):
    fields = {
        "rule": "test_weakened",
        "severity": "severe",
        "evidence": "assert True",
        "path": "t.py",
        "line": 7,
    }
    return fields | given


def test_each_has_its_rule_its_place_and_what_speaks_for_it(capsys):
    lines = shown([finding(), finding(severity="note", path=None, line=None, evidence="rm -rf .git")], capsys)
    assert "integrity: 2 findings" in lines
    rows = [" ".join(line.split()) for line in lines.splitlines()]
    assert "severe test weakened t.py:7 assert True" in rows
    assert "note test weakened rm -rf .git" in rows


def test_no_finding_is_no_line(capsys):
    assert shown([], capsys) == ""
    print_findings({}, console())
    assert capsys.readouterr().out == ""


def test_what_an_agent_wrote_is_harmless_and_bounded(capsys):
    hostile = finding(path="a\x1b[2J\u202eb", evidence="x\n" + "y" * 5000)
    lines = shown([hostile] * (MAX_FINDINGS + 3), capsys)
    assert "\x1b" not in lines
    assert "\u202e" not in lines
    assert "… 3 findings more in cell.json" in lines
    assert max(map(len, lines.splitlines())) < 400
