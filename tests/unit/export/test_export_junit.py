"""JUnit XML: what a reader of test reports sees of each kind of cell."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from export_samples import BROKEN, FAILED, HOSTILE, INCOMPATIBLE, SKIPPED, SOLVED, SWEEP, UNFINISHED

from orchestrator.export.junit import Written, junit
from orchestrator.store.chosen import chosen_sweeps


@pytest.fixture(scope="module")
def report(made):
    return ET.fromstring(b"".join(junit(chosen_sweeps([str(made)], made), Written())))


def case(report, key):
    [found] = [
        case
        for case in report.iter("testcase")
        for value in case.iter("property")
        if value.get("value") == key.cell_id(SWEEP)
    ]
    return found


def test_a_solved_cell_is_a_pass_with_its_time(report):
    solved = case(report, SOLVED)
    assert [child.tag for child in solved] == ["properties"]
    assert (solved.get("classname"), solved.get("name")) == ("opencode.acme/large", "polyglot/t0#run1")
    assert solved.get("time") == "5.000"


def test_a_failed_cell_names_its_tests_and_an_infra_error_is_no_failure(report):
    failure = case(report, FAILED).find("failure")
    assert failure is not None
    assert (failure.get("type"), failure.text) == ("tests_missing", HOSTILE[8])
    error = case(report, BROKEN).find("error")
    assert error is not None
    assert (error.get("type"), error.get("message")) == (
        "infra_error",
        "infra_error (rate_limited): =HYPERLINK(1)",
    )


def test_what_did_not_run_is_skipped_with_the_reason(report):
    [suite] = [suite for suite in report if suite.get("name") == f"{SWEEP} (not run)"]
    reasons = {case.get("name"): case.find("skipped").get("message") for case in suite.iter("testcase")}
    assert reasons == {
        SKIPPED.matrix_id(): HOSTILE[8],
        UNFINISHED.matrix_id(): "not finished",
        INCOMPATIBLE.matrix_id(): "incompatible (no_edit): it edits nothing",
    }


def test_claims_and_methodology_versions_are_suites_of_their_own(report):
    names = [suite.get("name") for suite in report]
    assert f"{SWEEP} (pipeline_only, methodology 1)" in names
    assert f"{SWEEP} (provisional, methodology 1)" in names
    assert sum("(imported, methodology published-0.1)" in name for name in names) == 3
    for suite in report:
        claims = {
            value.get("value")
            for case in suite.iter("testcase")
            for value in case.iter("property")
            if value.get("name") == "claim"
        }
        assert len(claims) <= 1


def test_the_counts_are_those_of_the_cases(report):
    for suite in report:
        cases = suite.findall("testcase")
        assert suite.get("tests") == str(len(cases))
        for kind, name in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            assert suite.get(name) == str(sum(case.find(kind) is not None for case in cases))
