"""JUnit XML: one test case a cell, for whatever shows test reports.

A suite holds cells of one sweep, one claim and one methodology version, and says so in its name and its
properties, so that a check of the pipeline is never read as a result. Cells that did not run are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import fsum
from xml.sax.saxutils import escape, quoteattr

from orchestrator.export.cells import Cell, Seen, cells_of
from orchestrator.run.outcome import TABLE, with_cause
from orchestrator.store.cells import CellStore
from orchestrator.store.preflight import incompatible_cells
from orchestrator.store.record import SkippedCell, SweepRecord

TESTS_NAMED = 20
"""Failed hidden tests that a case names."""

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Problem:
    """Why a case is no pass: `kind` is JUnit's element, `about` its type, `message` one line."""

    kind: str
    about: str
    message: str
    text: str = ""


@dataclass(frozen=True)
class Case:
    """One cell as a test. `seconds` is None of one that did not run."""

    classname: str
    name: str
    seconds: float | None = None
    problem: Problem | None = None
    properties: Sequence[tuple[str, str]] = ()


@dataclass
class Suite:
    name: str
    timestamp: str
    properties: Sequence[tuple[str, str]]
    cases: list[Case] = field(default_factory=list)

    def number_of(self, kind: str) -> int:
        return sum(case.problem is not None and case.problem.kind == kind for case in self.cases)


class Written(Seen):
    """Counts the finished cells of a report, and those in it that did not run."""

    not_run = 0

    def __str__(self) -> str:
        return f"{super().__str__()}; {self.not_run} not run" if self.not_run else super().__str__()


def junit(stores: Sequence[CellStore], written: Written) -> Iterator[bytes]:
    """The report of chosen sweeps, piece by piece. One sweep's cases are in memory at a time."""
    yield from document(suite for store in stores for suite in _of_store(store, written))


def _of_store(store: CellStore, written: Written) -> list[Suite]:
    sweep, before = store.sweep(), written.cells
    skipped = (*sweep.skipped, *incompatible_cells(store))
    suites = suites_of(sweep, written.through(cells_of([store])), skipped)
    written.not_run += sum(len(suite.cases) for suite in suites) - (written.cells - before)
    return suites


def document(suites: Iterable[Suite]) -> Iterator[bytes]:
    """Suites as a file, piece by piece."""
    yield b'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="cab">\n'
    for suite in suites:
        yield from _suite(suite)
    yield b"</testsuites>\n"


def suites_of(sweep: SweepRecord, cells: Iterable[Cell], skipped: Iterable[SkippedCell]) -> list[Suite]:
    """The suites of one sweep: by claim and methodology version; cells that did not run come last."""
    suites: dict[tuple[str, str], Suite] = {}
    left = dict.fromkeys(sweep.order, "not finished")
    left |= {one.cell_id: one.reason for one in skipped}
    for cell in cells:
        claim, version = cell.entry.claim, cell.entry.methodology_version
        properties = [("sweep_id", sweep.sweep_id), ("claim", claim), ("methodology_version", version)]
        suite = Suite(f"{sweep.sweep_id} ({claim}, methodology {version})", _second(sweep), properties)
        suites.setdefault((claim, version), suite).cases.append(case_of(cell))
        left.pop(cell.entry.cell_id, None)
    found = [suites[key] for key in sorted(suites)]
    if left:
        rest = Suite(f"{sweep.sweep_id} (not run)", _second(sweep), [("sweep_id", sweep.sweep_id)])
        rest.cases = [
            Case("not run", cell_id.partition("/")[2], problem=Problem("skipped", "not_run", reason))
            for cell_id, reason in left.items()
        ]
        found.append(rest)
    return found


def _second(sweep: SweepRecord) -> str:
    return sweep.started_at.isoformat(timespec="seconds").removesuffix("+00:00")


def case_of(cell: Cell) -> Case:
    """A finished cell as a test: its duration is the agent's stage and set-up, where that was measured."""
    entry = cell.entry
    wall = entry.wall_clock_ms
    task = entry.cell_id.removeprefix(f"{entry.sweep_id}/{entry.cli}/{entry.model}/")
    named = ("outcome", "claim", "methodology_version", "image_digest", "task_content_hash")
    values = [(name, getattr(entry, name)) for name in named]
    return Case(
        classname=f"{entry.cli}.{entry.model}",
        name=task,
        seconds=entry.duration_s if wall is None else wall / 1000,
        problem=_problem(cell),
        properties=[("cell_id", entry.cell_id), *((name, str(it)) for name, it in values if it is not None)],
    )


def _problem(cell: Cell) -> Problem | None:
    entry, rule = cell.entry, TABLE[cell.entry.outcome]
    if entry.passed == 1 and rule.counted:
        return None
    outcome = with_cause(entry.outcome, entry.cause)
    detail = cell.record.outcome.detail or rule.meaning
    if not rule.counted:
        return Problem("error" if rule.ran else "skipped", entry.outcome, f"{outcome}: {detail}")
    result = cell.record.scores.get("pass_rate", {})
    if entry.passed is None:
        reasons = result.get("reasons")
        why = reasons.get("pass") if isinstance(reasons, dict) else None
        return Problem("error", "not_measured", f"{outcome}: pass was not measured: {why or 'no reason'}")
    tests = result.get("tests")
    failed = [
        str(test.get("name"))
        for test in (tests if isinstance(tests, list) else [])
        if isinstance(test, dict) and test.get("status") not in ("passed", "skipped")
    ]
    more = [f"and {len(failed) - TESTS_NAMED} more"] if len(failed) > TESTS_NAMED else []
    about = str(result.get("reason") or "failed")
    text = "\n".join([*failed[:TESTS_NAMED], *more])
    return Problem("failure", about, f"{outcome}: {about}", text)


def _suite(suite: Suite) -> Iterator[bytes]:
    seconds = fsum(case.seconds or 0 for case in suite.cases)
    head = {
        "name": suite.name,
        "tests": str(len(suite.cases)),
        "failures": str(suite.number_of("failure")),
        "errors": str(suite.number_of("error")),
        "skipped": str(suite.number_of("skipped")),
        "time": f"{seconds:.3f}",
        "timestamp": suite.timestamp,
    }
    yield f" <testsuite{_attributes(head)}>\n{_properties(suite.properties, '  ')}".encode()
    for case in suite.cases:
        yield _case(case).encode()
    yield b" </testsuite>\n"


def _case(case: Case) -> str:
    of_case = {"classname": case.classname, "name": case.name, "time": f"{case.seconds or 0:.3f}"}
    body = _properties(case.properties, "   ")
    if case.problem is not None:
        problem = case.problem
        about = _attributes({"type": problem.about, "message": " ".join(problem.message.split())})
        body += f"   <{problem.kind}{about}>{escape(_xml(problem.text))}</{problem.kind}>\n"
    return f"  <testcase{_attributes(of_case)}>\n{body}  </testcase>\n"


def _properties(pairs: Sequence[tuple[str, str]], indent: str) -> str:
    if not pairs:
        return ""
    lines = (f"{indent} <property{_attributes({'name': name, 'value': value})}/>\n" for name, value in pairs)
    return f"{indent}<properties>\n{''.join(lines)}{indent}</properties>\n"


def _attributes(pairs: dict[str, str]) -> str:
    return "".join(f" {name}={quoteattr(_xml(value))}" for name, value in pairs.items())


def _xml(text: str) -> str:
    """A text that XML can say: control characters and half surrogate pairs become U+FFFD."""
    return _NOT_XML.sub("\ufffd", text)
