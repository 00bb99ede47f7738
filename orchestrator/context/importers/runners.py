"""What the output of common test runners says of single tests: pytest, unittest, cargo, go and jest.

A runner is known by its own lines, not by the command that started it, which may be a script or a make
target.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

MAX_REASON = 300
"""Characters kept of why a test failed."""


@dataclass
class TestRun:
    """What one output says: tests by id, a failed one with its reason (""), and whether the run `ended`: it
    said so itself and did not stop early, so that a test that is not among the failed did not fail.
    """

    __test__ = False

    failed: dict[str, str] = field(default_factory=dict)
    passed: set[str] = field(default_factory=set)
    ended: bool = False

    def __bool__(self) -> bool:
        return bool(self.failed or self.passed or self.ended)


_PYTEST_NAMED = re.compile(
    r"^(?P<how>PASSED|FAILED|ERROR|XPASS) (?P<id>\S+?\.py(?:::.+?)?)(?: - (?P<why>.*))?$", re.M
)
_PYTEST_VERBOSE = re.compile(r"^(?P<id>\S+\.py::.+?) (?P<how>PASSED|FAILED|ERROR)(?: +\[ *\d+%\])?$", re.M)
_PYTEST_END = re.compile(r"^(?:=+ )?(?:\d+ \w+, )*\d+ (?:passed|failed|errors?)\b.* in [\d.]+s\b.*$", re.M)
_PYTEST_EARLY = re.compile(r"^!+ .*(?:stopping after|Interrupted|KeyboardInterrupt).* !+$", re.M)

_UNITTEST_BAD = re.compile(r"^(?:FAIL|ERROR): (?P<name>\w+) \((?P<where>[\w.]+)\)", re.M)
_UNITTEST_VERBOSE = re.compile(r"^(?P<name>\w+) \((?P<where>[\w.]+)\)(?:\n.*)? \.\.\. ok$", re.M)
_UNITTEST_END = re.compile(r"^Ran \d+ tests? in [\d.]+s\n\n(?:OK|FAILED)\b", re.M)

_CARGO = re.compile(r"^test (?P<id>\S+)(?: - should panic)? \.\.\. (?P<how>ok|FAILED)$", re.M)
_CARGO_WHY = re.compile(r"^thread '(?P<id>[^']+)'(?: \(\d+\))? panicked at .*\n(?P<why>.*)$", re.M)
_CARGO_END = re.compile(r"^test result: (?:ok|FAILED)\.", re.M)

_GO = re.compile(r"^ *--- (?P<how>PASS|FAIL): (?P<id>\S+) \([\d.]+s\)$", re.M)
_GO_END = re.compile(r"^(?:ok|FAIL)\s+\S+\s+(?:[\d.]+s|\(cached\))", re.M)

_JEST_BAD = re.compile(r"^ *● (?P<id>.+ › .+|(?!Console$)\S.*)\n\n(?P<why>(?: .*\n)?)", re.M)
_JEST_MARK = re.compile(r"^ +(?P<how>[✓✕]) (?P<id>.+?)(?: \(\d+ m?s\))?$", re.M)
_JEST_END = re.compile(r"^Tests: +.*\d+ total$", re.M)


def results_in(output: str) -> TestRun:
    """What the output says of tests; nothing where it is of no known runner."""
    run = TestRun()
    for read in (_pytest, _unittest, _cargo, _go, _jest):
        read(output, run)
    # A test that passed and failed in one output (a second run in the same command) has failed.
    run.passed -= run.failed.keys()
    return run


def _pytest(output: str, run: TestRun) -> None:
    if not (end := _PYTEST_END.search(output)):
        return
    for found in (*_PYTEST_NAMED.finditer(output), *_PYTEST_VERBOSE.finditer(output)):
        groups = found.groupdict()
        if groups["how"] in ("PASSED", "XPASS"):
            run.passed.add(groups["id"])
        else:
            run.failed[groups["id"]] = run.failed.get(groups["id"]) or _short(groups.get("why"))
    # `--tb=no -q` and the like may leave the failed ones unnamed: then nothing is known of the rest.
    unnamed = "failed" in end[0] and not run.failed
    run.ended |= not _PYTEST_EARLY.search(output) and not unnamed


def _unittest(output: str, run: TestRun) -> None:
    if not _UNITTEST_END.search(output):
        return
    reasons = dict(_unittest_reasons(output))
    for found in _UNITTEST_BAD.finditer(output):
        test = _unittest_id(found["name"], found["where"])
        run.failed[test] = reasons.get(test, "")
    run.passed |= {_unittest_id(one["name"], one["where"]) for one in _UNITTEST_VERBOSE.finditer(output)}
    run.ended = True


def _unittest_reasons(output: str) -> Iterator[tuple[str, str]]:
    """The last line of each traceback: of a failed comparison only its first line is kept."""
    parts = re.split(r"^={70}$", output, flags=re.M)[1:]
    for part in parts:
        if found := _UNITTEST_BAD.search(part):
            lines = [
                line for line in part.splitlines() if re.match(r"\w[\w.]*(?:Error|Exception|Warning)\b", line)
            ]
            yield _unittest_id(found["name"], found["where"]), _short(lines[0] if lines else "")


def _unittest_id(name: str, where: str) -> str:
    """`module.Class.test`; before Python 3.11 the name does not stand in the brackets."""
    return where if where.endswith(f".{name}") else f"{where}.{name}"


def _cargo(output: str, run: TestRun) -> None:
    if not _CARGO_END.search(output):
        return
    reasons = {found["id"]: _short(found["why"]) for found in _CARGO_WHY.finditer(output)}
    for found in _CARGO.finditer(output):
        if found["how"] == "ok":
            run.passed.add(found["id"])
        else:
            run.failed[found["id"]] = reasons.get(found["id"], "")
    # After a test binary with a failure cargo runs none of the others.
    run.ended |= not run.failed


def _go(output: str, run: TestRun) -> None:
    for found in _GO.finditer(output):
        if found["how"] == "PASS":
            run.passed.add(found["id"])
        else:
            after = output[found.end() :].lstrip("\n").split("\n", 1)[0]
            run.failed[found["id"]] = _short(after) if after.startswith(" ") and "---" not in after else ""
    if _GO_END.search(output):
        # A package that does not build says FAIL without one test.
        run.ended |= bool(run.failed) or not re.search(r"^FAIL\b", output, re.M)


def _jest(output: str, run: TestRun) -> None:
    if not _JEST_END.search(output):
        return
    for found in _JEST_BAD.finditer(output):
        run.failed.setdefault(found["id"].strip(), _short(found["why"]))
    named = {test.rpartition(" › ")[2] for test in run.failed}
    for found in _JEST_MARK.finditer(output):
        if found["how"] == "✓":
            run.passed.add(found["id"])
        elif found["id"] not in named:
            run.failed[found["id"]] = ""
    run.ended = True


def _short(text: str | None) -> str:
    plain = " ".join((text or "").split())
    return plain if len(plain) <= MAX_REASON else f"{plain[: MAX_REASON - 1]}…"
