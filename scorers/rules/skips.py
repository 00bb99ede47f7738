"""Rules on tests that are still there and no longer run: skipped, expected to fail, left by an early return.

A test that is itself new may skip as it likes; one that was there before may not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from scorers.diff import FileDiff, Hunk, Line
from scorers.rules import rust
from scorers.rules.finding import Finding, severe

LOOK_AHEAD = 20  # lines in which what a decorator stands on is looked for
LOOK_BACK = 400  # lines in which an enclosing function is looked for
_DECORATOR = re.compile(r"@.*\b(?:skip|skipif|skipIf|skipUnless|xfail|expectedFailure)\b")
_STATEMENT = re.compile(
    r"(?:self\.skipTest|pytest\.skip|pytest\.xfail)\(|raise (?:unittest\.)?SkipTest\b"
    r"|pytestmark\s*=.*\b(?:skip|skipif|xfail)\b|__test__\s*=\s*False"
)
_OTHER_PLATFORM = re.compile(r"""win32|["']nt["']|darwin|Windows|cygwin""")
_PYTHON_DEF = re.compile(r"(\s*)(?:async )?(?:def|class) (\w+)")
_RUST_CFG = re.compile(r"\s*#(!?)\[cfg\((?!test\))")


def findings(files: list[FileDiff]) -> Iterator[Finding]:
    """Every added skip of something that was there before, in test files of Python and Rust."""
    for file in files:
        if file.old_path is None:
            continue
        gone = {line.text.strip() for line in file.removed()}
        before = _names_before(file)
        for hunk in file.hunks:
            if file.path.endswith(".rs"):
                yield from _rust(file.path, hunk)
            elif file.path.endswith(".py"):
                yield from _python(file.path, hunk, before, gone)


def _names_before(file: FileDiff) -> set[str]:
    lines = [line.text for hunk in file.hunks for line in hunk.old]
    headings = [hunk.heading for hunk in file.hunks]
    return {match[2] for text in (*lines, *headings) if (match := _PYTHON_DEF.match(text))}


def _python(path: str, hunk: Hunk, before: set[str], gone: set[str]) -> Iterator[Finding]:
    for index, line in enumerate(hunk.new):
        text = line.text.strip()
        if not line.changed or text in gone:
            continue
        if _DECORATOR.match(text) and not _OTHER_PLATFORM.search(text):
            if _decorated(hunk.new[index + 1 : index + LOOK_AHEAD]) in before:
                yield severe("test_skipped", text, path, line.number)
        elif (_STATEMENT.match(text) or _returns_at_once(hunk.new, index)) and _enclosing(hunk, index) in {
            *before,
            None,
        }:
            yield severe("test_skipped", text, path, line.number)


def _decorated(rest: list[Line]) -> str | None:
    """The function or class that a decorator stands on."""
    for line in rest:
        match = _PYTHON_DEF.match(line.text)
        if match:
            return match[2]
    return None


def _enclosing(hunk: Hunk, index: int) -> str | None:
    """The function or class around a line; None at module level and where the hunk does not show it."""
    indent = len(hunk.new[index].text) - len(hunk.new[index].text.lstrip())
    if indent == 0:
        return None
    for line in reversed(hunk.new[max(0, index - LOOK_BACK) : index]):
        match = _PYTHON_DEF.match(line.text)
        if match and len(match[1]) < indent:
            return match[2]
    match = _PYTHON_DEF.match(hunk.heading)
    return match[2] if match else None


def _returns_at_once(lines: list[Line], index: int) -> bool:
    if lines[index].text.strip() not in {"return", "return;", "return None"}:
        return False
    for line in reversed(lines[max(0, index - LOOK_BACK) : index]):
        if line.text.strip():
            return re.match(r"\s*(?:async )?def test|\s*(?:async )?fn \w+\(\)", line.text) is not None
    return False


def _rust(path: str, hunk: Hunk) -> Iterator[Finding]:
    before = {name: attributes for name, _, _, attributes in rust.marked_tests(hunk.old)}
    for name, number, _, attributes in rust.marked_tests(hunk.new):
        fresh = attributes - before.get(name, attributes)
        added = sorted(text for text in fresh if re.match(r"ignore\b|cfg(_attr)?\b", text))
        if added:
            yield severe("test_skipped", f"{name}: #[{added[0]}]", path, number)
    heads = {number: name for name, number, _, _ in rust.marked_tests(hunk.new)}
    for index, line in enumerate(hunk.new):
        if not line.changed:
            continue
        cfg = _RUST_CFG.match(line.text)
        compiled_out = cfg is not None and (cfg[1] or _opens_tests(hunk.new[index + 1 : index + LOOK_AHEAD]))
        leaves = _returns_at_once(hunk.new, index) and heads.get(hunk.new[index - 1].number) in before
        if compiled_out or leaves:
            yield severe("test_skipped", line.text.strip(), path, line.number)


def _opens_tests(rest: list[Line]) -> bool:
    for line in rest:
        text = line.text.strip()
        if text and not text.startswith("#["):
            return not line.changed and re.match(r"(?:pub )?mod tests?\b", text) is not None
    return False
