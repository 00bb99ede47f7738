"""What the harness writes, as verdicts: reports of real runs, and the same bent."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.external.harness_reports import NOT_APPLIED, TIMED_OUT, Ran, is_final
from orchestrator.external.results import Verdict

DATA = Path(__file__).parents[2] / "data" / "harness"
FIVE = ("swebench-5.0.2/t1-6a29e4a1", "mixed", "t1-6a29e4a1")
FOUR = ("swebench-4.1.0/t4-384197d8", "four", "t4-384197d8")
HANGS, GOOD, BREAKS, EMPTY, WRONG, STRANGE = (
    f"cab-swe__{name}"
    for name in ("cronlet-12", "cronlet-15", "ledgerline-31", "ledgerline-34", "semrange-7", "semrange-10")
)


@pytest.fixture
def ran(tmp_path: Path) -> Ran:
    shutil.copytree(DATA / FIVE[0], tmp_path / "run")
    return Ran(tmp_path / "run", *FIVE[1:])


def verdict(ran: Ran, name: str) -> Verdict:
    return ran.verdicts([name], "it says nothing")[name]


def bend(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    report = json.loads(path.read_text())
    change(report)
    path.write_text(json.dumps(report))


def run_report(ran: Ran) -> Path:
    return ran.directory / "reports" / "mixed.t1-6a29e4a1.json"


@pytest.mark.parametrize(
    ("name", "outcome", "reason", "applied", "fail_to_pass", "pass_to_pass"),
    [
        (HANGS, "error", TIMED_OUT, True, (0, 0), (0, 0)),
        (GOOD, "resolved", "", True, (4, 4), (13, 13)),
        (BREAKS, "unresolved", "", True, (3, 3), (8, 12)),
        (EMPTY, "empty_patch", "", None, (0, 0), (0, 0)),
        (WRONG, "unresolved", "", True, (1, 3), (21, 21)),
        (STRANGE, "error", NOT_APPLIED, False, (0, 0), (0, 0)),
        (
            "cab-swe__other-1",
            "error",
            "the run report contradicts itself: it is in no list",
            None,
            (0, 0),
            (0, 0),
        ),
    ],
)
def test_5_tells_outcomes_apart(
    ran: Ran,
    name: str,
    outcome: str,
    reason: str,
    applied: bool | None,
    fail_to_pass: tuple[int, int],
    pass_to_pass: tuple[int, int],
) -> None:
    found = verdict(ran, name)
    assert (found.outcome, found.reason, found.applied) == (outcome, reason, applied)
    for tests, (passed, of) in ((found.fail_to_pass, fail_to_pass), (found.pass_to_pass, pass_to_pass)):
        assert (sum(it for _, it in tests), len(tests)) == (passed, of)


def test_4_writes_its_report_elsewhere_and_is_told_apart_too() -> None:
    found = Ran(DATA / FOUR[0], *FOUR[1:]).verdicts([f"psf__requests-900{n}" for n in range(1, 6)], "")
    told = [(it.outcome, it.reason, it.applied) for it in found.values()]
    assert told == [
        ("resolved", "", True),
        ("unresolved", "", True),
        ("unresolved", "", True),
        ("empty_patch", "", None),
        ("error", NOT_APPLIED, False),
    ]


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"resolved_ids": {}}', "{"])
def test_without_a_whole_run_report_what_is_graded_counts_and_the_rest_is_incomplete(
    ran: Ran, text: str | None
) -> None:
    if text is None:
        run_report(ran).unlink()
    else:
        run_report(ran).write_text(text)
    assert verdict(ran, GOOD).outcome == "resolved"
    assert verdict(ran, WRONG).outcome == "unresolved"
    for name in (HANGS, EMPTY, STRANGE):
        assert verdict(ran, name) == Verdict(outcome="incomplete", reason="it says nothing")


def test_reports_that_say_otherwise_than_each_other_are_no_verdict(ran: Ran) -> None:
    bend(ran.logs(WRONG) / "report.json", lambda report: report[WRONG].update(resolved=True))
    (ran.logs(GOOD) / "report.json").write_text("{")
    for name in (WRONG, GOOD):
        found = verdict(ran, name)
        assert (found.outcome, found.reason) == ("error", "the instance's own report says otherwise")


def test_an_instance_in_two_lists_is_no_verdict(ran: Ran) -> None:
    bend(run_report(ran), lambda report: report["resolved_ids"].append(WRONG))
    assert verdict(ran, WRONG).reason == "the run report contradicts itself: it is in resolved and unresolved"


def test_a_fault_of_the_environment_that_the_harness_sees_is_passed_on(ran: Ran) -> None:
    bend(run_report(ran), lambda report: report["failure_reasons"].update({WRONG: "missing_module"}))
    found = verdict(ran, WRONG)
    assert (found.outcome, found.reason) == ("unresolved", "missing_module")


def test_words_of_a_patch_are_not_taken_for_the_harnesss(ran: Ran) -> None:
    log = ran.logs(HANGS) / "run_instance.log"
    text = log.read_text()
    forged = "+>>>>> Patch Apply Failed\n+EvaluationError: Test timed out after 1 seconds\n"
    log.write_text(text.replace("+++ b/cronlet/schedule.py", f"{forged}+++ b/cronlet/schedule.py"))
    assert verdict(ran, HANGS).reason == TIMED_OUT
    log.write_text(text.replace("Test timed out after 12 seconds", "the engine went away") + forged)
    found = verdict(ran, HANGS)
    assert found.reason == "Error in evaluation for cab-swe__cronlet-12: the engine went away."
    assert not is_final(found)


def test_an_error_without_a_log_says_where_to_look(ran: Ran) -> None:
    shutil.rmtree(ran.logs(STRANGE))
    assert STRANGE in verdict(ran, STRANGE).reason


@pytest.mark.parametrize(
    ("outcome", "reason", "final"),
    [
        ("resolved", "", True),
        ("unresolved", "", True),
        ("empty_patch", "", True),
        ("error", NOT_APPLIED, True),
        ("error", TIMED_OUT, True),
        ("error", "500 Server Error", False),
        ("incomplete", "", False),
    ],
)
def test_what_a_resume_asks_again(outcome: Any, reason: str, final: bool) -> None:
    assert is_final(Verdict(outcome=outcome, reason=reason)) is final
