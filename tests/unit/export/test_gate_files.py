"""The gate's JUnit XML and Markdown: what readers of either count on, and text that would break out of it."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from night_samples import REFERENCE, drawn, name_of, night, of

from orchestrator.analysis.gate import Gate, Rules, gate
from orchestrator.export.gate_files import gate_junit, gate_markdown

STARTED = "2026-11-02T22:17:00"
GOOD, BAD = drawn(0.9, 30, 3, seed=1), drawn(0.4, 30, 3, seed=2)
LOST = [[None] * 3] * 4
HOSTILE = (
    "\x1b[31m\x00\u202e]]></failure><img src=x onerror=alert(1)> | `x` *x* [a](http://e.example) @team\n# no"
)


def failed(**given: str) -> Gate:
    """With a drop, a lost scripted cell, too little coverage, a pair of too few tasks and drift."""
    before = night(
        0,
        *(of(0, GOOD, model) for model in ("v/drops", "v/lost")),
        of(0, [[1]] * 3, "v/small"),
        of(0, [[1]] * 5, REFERENCE),
    )
    tonight = night(
        1,
        of(1, BAD, "v/drops", model_builds=(given.get("build", "v/drops fp_2"),)),
        of(1, LOST + GOOD[4:], "v/lost"),
        of(1, [[1]] * 3, "v/small"),
        of(1, [[1]] * 4 + [[0]], REFERENCE),
        pins={"aider": "sha256:" + "b" * 64},
    )
    return gate(tonight, [before], Rules())


def suites(found: Gate) -> dict[str, ElementTree.Element]:
    root = ElementTree.fromstring(b"".join(gate_junit(found, STARTED)))
    assert root.tag == "testsuites"
    return {suite.attrib["name"]: suite for suite in root}


def test_each_check_is_a_case_and_the_counts_are_those_of_the_cases() -> None:
    found = suites(failed())
    counts = {
        name: tuple(int(suite.attrib[key]) for key in ("tests", "failures", "errors", "skipped"))
        for name, suite in found.items()
    }
    assert counts == {
        "pairs of models": (3, 1, 0, 1),
        "scripted cells": (5, 1, 0, 0),
        "coverage": (4, 1, 0, 0),
    }
    for suite in found.values():
        cases = suite.findall("testcase")
        assert len(cases) == int(suite.attrib["tests"])
        for kind, key in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            assert len(suite.findall(f"testcase/{kind}")) == int(suite.attrib[key])
        assert len({(case.attrib["classname"], case.attrib["name"]) for case in cases}) == len(cases)
        assert suite.attrib["timestamp"] == STARTED


def test_a_failure_says_what_and_where() -> None:
    found = suites(failed())
    [drop] = found["pairs of models"].iterfind("testcase/failure")
    assert "pass rate" in drop.attrib["message"]
    assert "on 30 shared tasks" in drop.attrib["message"]
    assert "polyglot/t" in (drop.text or "")
    [lost] = found["scripted cells"].iterfind("testcase/failure/..")
    assert lost.attrib["name"] == "aider/embedded/reference/polyglot/t5#run1"
    [thin] = found["coverage"].iterfind("testcase/failure")
    assert "78 of 90 cells, 12 lost to infrastructure errors" in thin.attrib["message"]


def test_what_was_compared_and_what_else_differs_stands_in_the_file() -> None:
    properties = {
        it.attrib["name"]: it.attrib["value"]
        for it in suites(failed())["pairs of models"].find("properties") or ()
    }
    assert (properties["candidate"], properties["baseline"]) == (name_of(1), name_of(0))
    assert "b" * 64 in properties["image aider"]


def test_a_passed_gate_has_no_failure_in_either() -> None:
    found = gate(night(1, of(1, GOOD)), [night(0, of(0, GOOD))], Rules())
    assert all(suite.find("testcase/failure") is None for suite in suites(found).values())
    text = gate_markdown(found)
    assert text.startswith("## ✅ PASS")
    assert "❌" not in text


def test_hostile_text_stays_text_in_xml() -> None:
    before = night(0, of(0, GOOD, "v/drops", model_builds=("fp_1",)))
    found = gate(night(1, of(1, BAD, "v/drops", model_builds=(HOSTILE,))), [before], Rules())
    raw = b"".join(gate_junit(found, STARTED))
    root = ElementTree.fromstring(raw)
    assert {it.tag for it in root.iter()} == {
        *("testsuites", "testsuite", "testcase", "properties", "property", "failure"),
    }
    values = [
        it.attrib["value"] for it in root.iter("property") if it.attrib["name"] == "model build v/drops"
    ]
    assert any("<img src=x onerror=alert(1)>" in value for value in values)
    assert b"\x1b" not in raw


def test_hostile_text_stays_text_in_markdown() -> None:
    before = night(0, of(0, GOOD, "v/drops", model_builds=("fp_1",)))
    tonight = night(1, of(1, BAD, "v/drops", model_builds=(HOSTILE,)))
    text = gate_markdown(gate(tonight, [before], Rules()))
    [row] = [line for line in text.splitlines() if "onerror" in line]
    # What Markdown would take for its own is escaped: cells are split at bars that are not.
    assert len(re.split(r"(?<!\\)\|", row)) == 6
    assert "<" not in text
    for special in ("`", "*", "[", "]", "@", "#"):
        assert re.search(rf"(?<!\\){re.escape(special)}", row) is None
    assert not any(char in text for char in "\x1b\x00\u202e")


def test_the_summary_has_each_reason_and_the_worst_first() -> None:
    text = gate_markdown(failed())
    assert text.startswith("## ❌ FAIL")
    for said in (
        "v/drops",
        "1 scripted cell lost",
        "12 lost to infrastructure errors",
        "image",
        "too few tasks",
    ):
        assert said in text
    rows = [line for line in text.splitlines() if line.startswith("| aider × v/")]
    assert [row.split(" | ")[-1] for row in rows] == [
        "worse |",
        "no significant change |",
        "too few tasks |",
    ]


def test_a_long_table_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.export.gate_files.MOST", 3)
    models = [f"v/m{number}" for number in range(10)]
    nights = [
        night(at, *(of(at, [[1]] * 5, model) for model in models), of(at, [[1]], REFERENCE)) for at in (0, 1)
    ]
    text = gate_markdown(gate(nights[1], nights[:1], Rules()))
    assert text.count("| aider ×") == 3
    assert "and 7 more rows" in text
