"""Rules on tests that are still there and no longer run: skipped, expected to fail, left by an early return.

A test that is itself new may skip as it likes; one that was there before may not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from scorers.diff import FileDiff, Hunk, Line
from scorers.rules import reading, rust
from scorers.rules.finding import Finding, severe
from scorers.rules.lexer import Language, language_of

LOOK_AHEAD = 20  # lines in which what a decorator stands on is looked for
LOOK_BACK = 400  # lines in which an enclosing function is looked for
# A mark that stands on a test, before it.
_MARKS: dict[Language, re.Pattern[str]] = {
    "python": re.compile(r"@.*\b(?:skip|skipif|skipIf|skipUnless|xfail|expectedFailure)\b"),
    "java": re.compile(
        r"@(?:\w+\.)*(?:Disabled|Ignore|Enabled(?:If|On|For))\w*|@Test\(.*\benabled\s*=\s*false"
    ),
}
# A statement that leaves a test, or the whole module.
_STATEMENTS: dict[Language, re.Pattern[str]] = {
    "python": re.compile(
        r"(?:self\.skipTest|pytest\.skip|pytest\.xfail)\(|raise (?:unittest\.)?SkipTest\b"
        r"|pytestmark\s*=.*\b(?:skip|skipif|xfail)\b|__test__\s*=\s*False"
    ),
    "go": re.compile(r"(?:\w+\.)*\w+\.Skip(?:f|Now)?\("),
    "java": re.compile(
        r"(?:Assum(?:e|ptions)\.)?(?:assumeTrue|assumeFalse|assumeThat|assumingThat)\(|(?:Assumptions\.)?abort\("
        r"|throw new (?:TestAborted|AssumptionViolated|Skip|TestSkipped)\w*Exception"
    ),
    "javascript": re.compile(
        r"(?:\w+\.)?(?:t|ctx|this|context)\.(?:skip|todo)\(|return \w+\.(?:skip|todo)\("
    ),
    "c": re.compile(r"(?:GTEST_SKIP|TEST_IGNORE\w*|skip|SKIP|cr_skip\w*|munit_skip)\("),
}
# One line that names a test and keeps it from running; group 1 is its name.
_NAMED: dict[Language, re.Pattern[str]] = {
    "javascript": re.compile(
        r"(?:(?:it|test|describe|suite|specify|context)\.(?:skip|todo|failing|fails|fixme)|x(?:it|test|describe))"
        r"(?:\.each)?\(\s*((?P<q>[\"'`]).*?(?P=q))"
        r"|(?:it|test|describe|suite)\(\s*((?P<p>[\"'`]).*?(?P=p)),\s*\{[^}]*\b(?:skip|todo):\s*(?!false)"
    ),
}
_ONLY = re.compile(
    r"(?:it|test|describe|suite|specify)\.only\b|\bf(?:it|describe)\(|,\s*\{[^}]*\bonly:\s*true"
)
_JS_TITLE = re.compile(
    r"(?:\w+\.)*(?:[xf]?(?:it|test|describe)|suite|specify|context)(?:\.\w+)*\(\s*((?P<q>[\"'`]).*?(?P=q))"
)
_OTHER_PLATFORM = re.compile(
    r"""win32|["']nt["']|[dD]arwin|[wW]indows|WINDOWS|cygwin|OS\.MAC|GOOS|testing\.Short\(\)"""
)
_BUILD_TAG = re.compile(r"//\s*(?:go:build|\+build)\s+(.+)")
_TAGS_THAT_HOLD = re.compile(r"linux|unix|amd64|arm64|cgo|gc|go1\.\d+|![\w.]+")
_RETURNS = {
    "return",
    "return;",
    "return None",
    "return 0;",
    "return null;",
    "return true;",
    "return EXIT_SUCCESS;",
}
_CLASS = re.compile(r"\s*(?:\w+ )*class (\w+)")
_RUST_CFG = re.compile(r"\s*#(!?)\[cfg\((?!test\))")


def findings(files: list[FileDiff]) -> Iterator[Finding]:
    """Every added skip of something that was there before, in test files."""
    for file in files:
        language = language_of(file.path)
        if file.old_path is None or language is None:
            continue
        gone = {line.text.strip() for line in file.removed()}
        before = _names_before(file)
        for hunk in file.hunks:
            if language == "rust":
                yield from _rust(file.path, hunk)
                continue
            for index, line in enumerate(hunk.new):
                text = line.text.strip()
                if line.changed and text not in gone and _skips(file.path, language, hunk, index, before):
                    yield severe("test_skipped", text, file.path, line.number)


def _names_before(file: FileDiff) -> set[str]:
    lines = [line.text for hunk in file.hunks for line in hunk.old] + [hunk.heading for hunk in file.hunks]
    names = {name for text in lines if (name := _begins(file.path, text))}
    return names | {match[1] for text in lines if (match := _JS_TITLE.match(text.strip()))}


def _skips(path: str, language: Language, hunk: Hunk, index: int, before: set[str]) -> bool:
    """Whether an added line keeps something from running that was there before."""
    text = hunk.new[index].text.strip()
    if language == "go" and _BUILD_TAG.match(text):
        return not _builds_here(text)
    if _OTHER_PLATFORM.search(text):
        return False
    if language == "javascript" and _ONLY.search(text):
        return True
    if language in _MARKS and _MARKS[language].match(text):
        return _marked(path, hunk.new[index : index + LOOK_AHEAD]) in before
    if language in _NAMED and (named := _NAMED[language].match(text)):
        return (named[1] or named[3]) in before
    if language == "c" and re.match(r"#\s*if\s+(?:0|false|FALSE)\b", text):
        return _opens_what_was(hunk.new[index + 1 : index + LOOK_AHEAD])
    leaves = _STATEMENTS[language].match(text) or _returns_at_once(path, hunk.new, index)
    return (
        bool(leaves)
        and not _on_other_platform(hunk, index)
        and _enclosing(path, hunk, index) in {*before, None}
    )


def _builds_here(text: str) -> bool:
    """Whether a build constraint holds where tests are run."""
    terms = re.sub(r"[()\s]", "", text.split(None, 1)[-1].removeprefix("+build"))
    return any(
        all(_TAGS_THAT_HOLD.fullmatch(tag) for tag in option.split("&&")) for option in terms.split("||")
    )


def _on_other_platform(hunk: Hunk, index: int) -> bool:
    """Whether the line before asks for a platform, or for a short run."""
    return index > 0 and _OTHER_PLATFORM.search(hunk.new[index - 1].text) is not None


def _opens_what_was(rest: list[Line]) -> bool:
    return next((not line.changed for line in rest if line.text.strip()), False)


def _marked(path: str, lines: list[Line]) -> str | None:
    """The function or class that a mark stands on."""
    return next((name for line in lines if (name := _begins(path, line.text))), None)


def _begins(path: str, text: str) -> str | None:
    return reading.name_before(path, text) or (match[1] if (match := _CLASS.match(text)) else None)


def _enclosing(path: str, hunk: Hunk, index: int) -> str | None:
    """The function or class around a line; None at module level and where the hunk does not show it."""
    indent = len(hunk.new[index].text) - len(hunk.new[index].text.lstrip())
    if indent == 0:
        return None
    for line in reversed(hunk.new[max(0, index - LOOK_BACK) : index]):
        name = _begins(path, line.text)
        if name and len(line.text) - len(line.text.lstrip()) < indent:
            return name
    return _begins(path, hunk.heading)


def _returns_at_once(path: str, lines: list[Line], index: int) -> bool:
    if lines[index].text.strip() not in _RETURNS:
        return False
    for at in range(index - 1, max(0, index - LOOK_BACK) - 1, -1):
        text = lines[at].text.strip()
        if text and text != "{":
            if path.endswith(".rs"):
                return re.match(r"(?:async )?fn \w+\(\)", text) is not None
            begun = lines[max(0, at - reading.LOOK_BACK) : at + 1]
            return any(found == len(begun) - 1 for found, _ in reading.heads(path, begun))
    return False


def _rust(path: str, hunk: Hunk) -> Iterator[Finding]:
    before = {name: attributes for name, _, attributes in rust.marked_tests(hunk.old)}
    for name, number, attributes in rust.marked_tests(hunk.new):
        fresh = attributes - before.get(name, attributes)
        added = sorted(text for text in fresh if re.match(r"ignore\b|cfg(_attr)?\b", text))
        if added:
            yield severe("test_skipped", f"{name}: #[{added[0]}]", path, number)
    heads = {number: name for name, number, _ in rust.marked_tests(hunk.new)}
    for index, line in enumerate(hunk.new):
        if not line.changed:
            continue
        cfg = _RUST_CFG.match(line.text)
        compiled_out = cfg is not None and (cfg[1] or _opens_tests(hunk.new[index + 1 : index + LOOK_AHEAD]))
        leaves = _returns_at_once(path, hunk.new, index) and heads.get(hunk.new[index - 1].number) in before
        if compiled_out or leaves:
            yield severe("test_skipped", line.text.strip(), path, line.number)


def _opens_tests(rest: list[Line]) -> bool:
    for line in rest:
        text = line.text.strip()
        if text and not text.startswith("#["):
            return not line.changed and re.match(r"(?:pub )?mod tests?\b", text) is not None
    return False
