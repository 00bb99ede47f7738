"""Rules on the tests that were there before: an assertion weakened or gone, a test deleted or disabled.

Both texts of the whole diff are compared, so an assertion that moved, was reformatted or changed its dialect
counts as kept. `unread` names edited tests in a language that is not read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from scorers.diff import FileDiff
from scorers.evidence import FileChange
from scorers.paths import Globs, is_test
from scorers.rules import reading
from scorers.rules.assertions import Assertion
from scorers.rules.finding import Finding, note, severe
from scorers.rules.lexer import language_of
from scorers.rules.reading import Test

MAX_SUCCESSORS = 200  # how many added assertions a lost one is set against
UNREAD = {".kt", ".kts", ".scala", ".rb", ".cs", ".php", ".sh", ".swift", ".lua", ".ex", ".exs"}
_VARIABLE = re.compile(r"[A-Za-z_][\w. ]*")
_CONSTANT_WORDS = {"true", "false", "null", "nil", "undefined", "NULL", "None", "True", "False"}
Found = tuple[str, Assertion]


@dataclass
class Side:
    """What the old or the new text of all test hunks holds."""

    assertions: list[Found] = field(default_factory=list)
    expected: list[Found] = field(default_factory=list)
    tests: list[Test] = field(default_factory=list)
    names: Counter[tuple[str, str]] = field(default_factory=Counter)
    mentions: Counter[tuple[str, str]] = field(default_factory=Counter)
    lines: set[str] = field(default_factory=set)


def files_with_tests(files: Iterable[FileDiff], protected: Globs) -> list[FileDiff]:
    """The files in which tests may stand: by name, by protection, and all Rust sources, which hold tests
    inline."""
    return [
        file
        for file in files
        if file.path.endswith(".rs")
        or any(is_test(path) or path in protected for path in (file.old_path, file.new_path) if path)
    ]


def findings(files: list[FileDiff], changes: list[FileChange]) -> Iterator[Finding]:
    """Everything about tests that were there before: what they demanded, and whether they are still run."""
    old, new = _side(files, "old"), _side(files, "new")
    lost = list(_lost_assertions(files, old, new))
    yield from lost
    yield from _lost_tests(old, new, lost)
    yield from _no_longer_run(old, new)
    yield from _removed_unseen(files, changes)


def permitted(found: Iterable[Finding], expected: Globs, protected: Globs) -> Iterator[Finding]:
    """The same findings, those in a test file that the ticket lets change as notes.

    Tests inside a source are not meant by that: the ticket is about the source. Nor are protected tests: what
    is allowed among them is to add.
    """
    for finding in found:
        path = finding.path
        allowed = (
            path is not None
            and path in expected
            and path not in protected
            and (is_test(path) or not path.endswith(".rs"))
        )
        yield finding.model_copy(update={"severity": "note"}) if allowed else finding


def unread(changes: list[FileChange], expected: Globs) -> list[str]:
    """Tests that were there before and were changed in a way that is not read."""
    return sorted(
        change.path
        for change in changes
        if change.origin == "agent"
        and change.change in {"modified", "removed"}
        and is_test(change.path)
        and change.path not in expected
        and (
            _suffix(change.path) in UNREAD
            or (language_of(change.path) is not None and change.lines_added is None)
        )
    )


def _side(files: list[FileDiff], which: str) -> Side:
    side = Side()
    for file in files:
        path = file.path
        for hunk in file.hunks:
            lines = hunk.old if which == "old" else hunk.new
            side.assertions += [(path, found) for found in reading.assertions(file, hunk, lines)]
            side.expected += [(path, found) for found in reading.expected_values(file, hunk, lines)]
            side.tests += reading.tests(path, lines)
            side.names.update((path, name) for name in reading.definitions(path, lines))
            side.mentions.update((path, name) for name in reading.mentions(path, lines))
            side.lines |= {line.text.strip() for line in lines}
    return side


def _leftover(these: list[Found], those: list[Found]) -> list[Found]:
    """The assertions of one side that the other does not hold, each as often as it is missing."""
    spare = Counter(assertion.key for _, assertion in those)
    left = []
    for path, assertion in sorted(these, key=lambda pair: pair[1].changed):
        if spare[assertion.key] > 0:
            spare[assertion.key] -= 1
        else:
            left.append((path, assertion))
    return left


def _by_path(found: list[Found]) -> dict[str, list[Assertion]]:
    grouped: dict[str, list[Assertion]] = {}
    for path, assertion in found:
        grouped.setdefault(path, []).append(assertion)
    return grouped


def _lost_assertions(files: list[FileDiff], old: Side, new: Side) -> Iterator[Finding]:
    gained = _by_path(_leftover(new.assertions, old.assertions))
    values = {file.path: reading.added_values(file) for file in files}
    for path, lost in _leftover(old.assertions, new.assertions):
        if lost.kind != "trivial":
            known = values[path].union(*(a.literals for a in gained.get(path, [])))
            yield from _verdict(path, lost, gained.get(path, []), known)
    yield from _lost_values(old, new, values, gained)


def _lost_values(
    old: Side, new: Side, values: dict[str, set[str]], gained: dict[str, list[Assertion]]
) -> Iterator[Finding]:
    """Expected values of a table or under a name. Any new line that holds one may have taken it over."""
    fresh = _by_path(_leftover(new.expected, old.expected))
    for path, lost in _leftover(old.expected, new.expected):
        others = fresh.get(path, [])[:MAX_SUCCESSORS]
        successor = next((a for a in others if a.subject == lost.subject), None)
        if successor is not None:
            fresh[path].remove(successor)
            if not lost.literals <= successor.literals:
                change = f"{lost.text}  ->  {successor.text}"
                yield severe("expected_value_changed", change, path, lost.line)
        elif not lost.literals <= values[path].union(*(a.literals for a in gained.get(path, []))):
            yield severe("assertion_removed", lost.text, path, lost.line)


def _verdict(path: str, lost: Assertion, gained: list[Assertion], values: set[str]) -> Iterator[Finding]:
    """Set a lost assertion against its likeliest successor: the same subject first, then most literals
    shared."""
    if not gained:
        yield severe("assertion_removed", lost.text, path, lost.line)
        return
    successor = max(
        gained[:MAX_SUCCESSORS],
        key=lambda a: (a.subject == lost.subject, len(a.literals & lost.literals), -a.line),
    )
    same = successor.subject == lost.subject
    kept = lost.literals <= (successor.literals | (values if _under_a_name(successor) or not same else set()))
    if not (kept and lost.literals):
        gained.remove(successor)  # only a table or a loop may stand in for several assertions
    change = f"{lost.text}  ->  {successor.text}"
    if successor.strength < lost.strength:
        yield severe("assertion_weakened", change, path, lost.line)
    elif successor.strength == lost.strength and not kept:
        rule = "expected_value_changed" if same else "assertion_removed"
        yield severe(rule, change, path, lost.line)


def _under_a_name(assertion: Assertion) -> bool:
    """Whether what is expected stands elsewhere, under a name."""
    expected = assertion.sides[-1] if assertion.kind == "eq" and assertion.sides else ""
    return _VARIABLE.fullmatch(expected) is not None and expected not in _CONSTANT_WORDS


def _lost_tests(old: Side, new: Side, lost: list[Finding]) -> Iterator[Finding]:
    """Tests that are gone. One whose every demand lives on, in a table or another test, is none."""
    new_names = Counter(test.name for test in new.tests)
    old_names = Counter(test.name for test in old.tests)
    fresh = Counter({test.path: 0 for test in new.tests})
    for test in new.tests:
        fresh[test.path] += not old_names[test.name]
    for test in old.tests:
        if new_names[test.name] > 0:
            new_names[test.name] -= 1
            continue
        if _hidden(test, old, new):
            yield severe("test_disabled", f"{test.name} is no longer run as a test", test.path, test.line)
        elif fresh[test.path] > 0:
            fresh[test.path] -= 1  # renamed; what it asserts is judged by its assertions
        elif (not all(line in new.lines for line in test.body) or not test.body) and not _lives_on(
            test, old, new, lost
        ):
            yield severe("test_deleted", test.name, test.path, test.line)


def _lives_on(test: Test, old: Side, new: Side, lost: list[Finding]) -> bool:
    """Whether a test demanded something, nothing of which was found lost, and its file still has tests."""
    lines = range(test.line, test.line + len(test.body) + 1)
    demands = [a for path, a in old.assertions if path == test.path and a.line in lines and a.literals]
    missed = any(finding.path == test.path and finding.line in lines for finding in lost)
    return bool(demands) and not missed and any(other.path == test.path for other in new.tests)


def _hidden(test: Test, old: Side, new: Side) -> bool:
    """Whether a test's function is still there under a name, or without the mark, that no runner collects."""
    same = (test.path, test.name)
    if old.names[same] and new.names[same] >= old.names[same]:
        return True
    fresh = {name for path, name in new.names if path == test.path and not old.names[path, name]}
    fresh -= {other.name for other in new.tests}
    return any(test.name.lower() in name.lower() for name in fresh)


def _no_longer_run(old: Side, new: Side) -> Iterator[Finding]:
    """Tests that run because a line names them, and that no line names any more."""
    kept = {test.name for test in new.tests} | {name for _, name in new.names}
    gone = {*(test.name for test in old.tests), *(name for _, name in old.names)} - kept
    paths = {name: path for path, name in sorted(old.mentions)}
    before, after = _by_name(old.mentions), _by_name(new.mentions)
    for name in sorted(before):
        if after[name] < before[name] and name not in gone:
            yield severe("test_disabled", f"{name} is no longer called", paths[name])


def _by_name(mentions: Counter[tuple[str, str]]) -> Counter[str]:
    totals: Counter[str] = Counter()
    for (_, name), count in mentions.items():
        totals[name] += count
    return totals


def _removed_unseen(files: list[FileDiff], changes: list[FileChange]) -> Iterator[Finding]:
    """Test modules that are gone and whose text the diff does not hold."""
    seen = {file.old_path for file in files if file.hunks}
    for change in changes:
        gone = change.change == "removed" and change.origin == "agent" and change.path not in seen
        empty = change.before is not None and change.before.size == 0
        if gone and not empty and is_test(change.path) and _is_code(change.path):
            yield severe("test_deleted", "the whole file", change.path)


def _is_code(path: str) -> bool:
    return language_of(path) is not None or _suffix(path) in UNREAD


def _suffix(path: str) -> str:
    return PurePosixPath(path).suffix


def edits(changes: list[FileChange], found: list[Finding]) -> Iterator[Finding]:
    """A note on each added or changed test in which nothing else was found."""
    judged = {finding.path for finding in found}
    for change in changes:
        if change.origin == "agent" and is_test(change.path) and change.path not in judged:
            words = {"added": "tests_added", "modified": "tests_edited", "renamed": "tests_renamed"}
            if change.change in words:
                yield note(words[change.change], f"{change.change} without weakening", change.path)
