"""What the harness wrote of a run, read as verdicts. Its exit code says nothing: it is 0 after most faults.

The run report names each instance in one of its lists, and each graded instance has a report of its own. They
are held against each other; where the run report is missing (the harness was killed), what is graded counts
and the rest is incomplete.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.analysis.conditions import Outcome
from orchestrator.external.results import Verdict

REPORTS = "reports"
NOT_APPLIED = "the patch does not apply"
TIMED_OUT = "the tests timed out"

_LISTS: dict[str, Outcome] = {
    "resolved_ids": "resolved",
    "unresolved_ids": "unresolved",
    "error_ids": "error",
    "empty_patch_ids": "empty_patch",
    "incomplete_ids": "incomplete",
}
_APPLIED = re.compile(r">>>>> (Applied Patch|Patch Apply Failed)")
_TIMED_OUT = re.compile(r"^[\w.]*EvaluationError: .*Test timed out after \d+ seconds", re.MULTILINE)
_FAULT = re.compile(r"^[\w.]*(?:Error|Exception): (.*\S)", re.MULTILINE)


@dataclass(frozen=True)
class Ran:
    """Where one call of the harness ran: its working directory, the predictions' name, its run id."""

    directory: Path
    condition: str
    run_id: str

    @property
    def _name(self) -> str:
        return self.condition.replace("/", "__")

    def logs(self, instance_id: str) -> Path:
        """The directory of what the harness kept of an instance."""
        return self.directory / "logs" / "run_evaluation" / self.run_id / self._name / instance_id

    def report(self) -> dict[str, Any] | None:
        """The run report: 5.x writes it where it is told, 4.x into the working directory. None where there is
        none, or no whole one.
        """
        name = f"{self._name}.{self.run_id}.json"
        for path in (self.directory / REPORTS / name, self.directory / name):
            if isinstance(found := _json(path), dict) and all(
                isinstance(found.get(key), list) for key in _LISTS
            ):
                return found
        return None

    def is_graded(self, instance_id: str) -> bool:
        """Whether an instance has a report of its own already."""
        return (self.logs(instance_id) / "report.json").exists()

    def graded(self, instance_id: str) -> dict[str, Any] | None:
        """An instance's own report; None where it was not graded."""
        found = _json(self.logs(instance_id) / "report.json")
        own = found.get(instance_id) if isinstance(found, dict) else None
        return own if isinstance(own, dict) and isinstance(own.get("resolved"), bool) else None

    def verdicts(self, ids: Collection[str], unsaid: str) -> dict[str, Verdict]:
        """The verdict on each of `ids`; `unsaid` is the reason where the harness wrote nothing of one."""
        report = self.report()
        return {name: self._verdict(name, report, unsaid) for name in ids}

    def _verdict(self, name: str, report: dict[str, Any] | None, unsaid: str) -> Verdict:
        own = self.graded(name)
        if report is None:
            if own is None:
                return Verdict(outcome="incomplete", reason=unsaid)
            return _graded("resolved" if own["resolved"] else "unresolved", own, "")
        named = [outcome for key, outcome in _LISTS.items() if name in report[key]]
        if len(named) != 1:
            where = f"is in {' and '.join(named)}" if named else "is in no list"
            return Verdict(outcome="error", reason=f"the run report contradicts itself: it {where}")
        [outcome] = named
        if outcome in ("resolved", "unresolved"):
            if own is None or own["resolved"] is not (outcome == "resolved"):
                return Verdict(outcome="error", reason="the instance's own report says otherwise")
            return _graded(outcome, own, _told(report, name))
        if outcome == "error":
            return self._error(name, _told(report, name))
        return Verdict(outcome=outcome, reason=unsaid if outcome == "incomplete" else "")

    def _error(self, name: str, told: str) -> Verdict:
        """Why an instance ended without being graded, as its log tells."""
        log = _text(self.logs(name) / "run_instance.log")
        # The first such line is the harness's own; after it come the patch's words.
        match = _APPLIED.search(log)
        applied = None if match is None else match[1] == "Applied Patch"
        if applied is False:
            return Verdict(outcome="error", reason=NOT_APPLIED, applied=False)
        if _TIMED_OUT.search(log):
            return Verdict(outcome="error", reason=TIMED_OUT, applied=applied)
        faults = _FAULT.findall(log)
        reason = faults[0] if faults else told or f"see harness logs of {name}"
        return Verdict(outcome="error", reason=reason[:300], applied=applied)


def is_final(verdict: Verdict) -> bool:
    """Whether the same patch would be judged alike once more: not where a fault of the machine is likely."""
    if verdict.outcome == "error":
        return verdict.reason in (NOT_APPLIED, TIMED_OUT)
    return verdict.outcome != "incomplete"


def _graded(outcome: Outcome, own: dict[str, Any], reason: str) -> Verdict:
    return Verdict(
        outcome=outcome,
        reason=reason,
        applied=True,
        fail_to_pass=_tests(own, "FAIL_TO_PASS"),
        pass_to_pass=_tests(own, "PASS_TO_PASS"),
    )


def _tests(own: dict[str, Any], kind: str) -> tuple[tuple[str, bool], ...]:
    status = own.get("tests_status")
    told = status.get(kind) if isinstance(status, dict) else None
    if not isinstance(told, dict):
        return ()
    passed = [(str(name), True) for name in told.get("success") or ()]
    return (*passed, *((str(name), False) for name in told.get("failure") or ()))


def _told(report: dict[str, Any], name: str) -> str:
    """5.x's guess at a fault of the environment, as it names it."""
    reasons = report.get("failure_reasons")
    return str(reasons.get(name, "")) if isinstance(reasons, dict) else ""


def _json(path: Path) -> object:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""
