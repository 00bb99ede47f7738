"""What stands in one side of a test file's diff, language by language: assertions, expected values, tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from scorers.diff import FileDiff, Hunk, Line
from scorers.paths import is_test
from scorers.rules import calls, rust, tables
from scorers.rules.assertions import Assertion, python_assertions
from scorers.rules.lexer import Language, Token, language_of, tokens, values

LOOK_BACK = 10  # lines in which the annotations of a method are looked for
_NAME = r"([A-Za-z_$][\w$]*)"
_MODIFIERS = "static|extern|inline|const|unsigned|public|private|protected|final|synchronized"
_C_TYPE = rf"(?:(?:{_MODIFIERS})\s+)*(?!return\b|else\b|new\b)[\w<>\[\]]+[\s*]+"

# How a test begins. Group 1 is its name.
_HEADS: dict[Language, re.Pattern[str]] = {
    "python": re.compile(r"\s*(?:async )?def (test\w*)\("),
    "go": re.compile(r"func (?:\([^)]*\) )?((?:Test|Fuzz|Example)\w*)\("),
    "java": re.compile(rf"\s*{_C_TYPE}(test\w*|\w+Test)\s*\([^;]*$"),
    "javascript": re.compile(
        r"\s*(?:await |void )?(?:\w+\.)?(?:[xf]?(?:it|test)|specify)(?:\.\w+)*\(\s*((?P<q>[\"'`]).*?(?P=q))"
        r"|\s*(?:async )?function (test\w*)\("
    ),
    "c": re.compile(
        rf"(?:{_C_TYPE})?(test\w*|\w+_tests?)\s*\([^;]*$"
        r"|\s*(?:TEST|TEST_F|TEST_P|TEST_CASE|Test|START_TEST|MU_TEST|CTEST|UTEST)\s*\(\s*([^)]*?)\s*\)\s*\{?\s*$"
    ),
}
# What may be a test without saying so: a function that is still there, and no longer collected.
_DEFINITIONS: dict[Language, re.Pattern[str]] = {
    "python": re.compile(rf"\s*(?:async )?(?:def|class) {_NAME}"),
    "rust": re.compile(rf"\s*(?:pub(?:\([^)]*\))? )?(?:async |const |unsafe )*fn {_NAME}"),
    "go": re.compile(rf"func (?:\([^)]*\) )?{_NAME}"),
    "java": re.compile(rf"\s*{_C_TYPE}{_NAME}\s*\([^;]*$"),
    "javascript": re.compile(
        rf"\s*(?:export )?(?:(?:async )?function\*? |(?:const|let) (?=\w+ = .*=>)){_NAME}"
    ),
    "c": re.compile(rf"(?:{_C_TYPE})?{_NAME}\s*\([^;]*$"),
}
_JAVA_MARK = re.compile(
    r"@(?:\w+\.)*(?:Test|ParameterizedTest|RepeatedTest|TestFactory|TestTemplate|Property)\b"
)
_CALLED_BY_NAME: set[Language] = {"c", "java", "javascript"}  # a test may be run by a line that names it
_TEST_WORD = re.compile(r"[tT]est(?:_|[A-Z0-9])\w*|\w+_test")
_PYTHON_VALUE = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\b\d[\w.]*|\b(?:True|False|None)\b")


@dataclass(frozen=True)
class Test:
    """One test function on one side of a diff."""

    __test__ = False  # pytest would otherwise try to collect it

    name: str
    path: str
    line: int
    body: tuple[str, ...]


def in_tests(file: FileDiff, hunk: Hunk) -> bool:
    """Whether a hunk stands in tests as a whole, by the file's name or git's heading."""
    return not file.path.endswith(".rs") or is_test(file.path) or "mod tests" in hunk.heading


def assertions(file: FileDiff, hunk: Hunk, lines: list[Line]) -> list[Assertion]:
    """The assertions of one side of a hunk."""
    language = language_of(file.path)
    if language is None:
        return []
    if language == "rust":
        return rust.assertions(lines, in_tests(file, hunk))
    return python_assertions(lines) if language == "python" else calls.assertions(lines, language)


def expected_values(file: FileDiff, hunk: Hunk, lines: list[Line]) -> list[Assertion]:
    """Expected values outside assertions; of a source with tests inside, only where it is tests that show."""
    language = language_of(file.path)
    return tables.assertions(lines, language) if language and in_tests(file, hunk) else []


def tests(path: str, lines: list[Line]) -> Iterator[Test]:
    """The tests that begin on one side of a hunk."""
    for index, name in heads(path, lines):
        yield Test(name, path, lines[index].number, tuple(_body(lines, index)))


def heads(path: str, lines: list[Line]) -> Iterator[tuple[int, str]]:
    """Index and name of each line on which a test begins."""
    language = language_of(path)
    if language == "rust":
        marked = {line: name for name, line, _ in rust.marked_tests(lines)}
        yield from ((i, marked[line.number]) for i, line in enumerate(lines) if line.number in marked)
    elif language is not None:
        for index, line in enumerate(lines):
            match = _HEADS[language].match(line.text)
            if match is None and language == "java":
                match = _DEFINITIONS[language].match(line.text) if _marked(lines, index) else None
            if match is not None:
                yield index, next(name for name in match.groups() if name)


def definitions(path: str, lines: list[Line]) -> Iterator[str]:
    """The names of the functions that begin on one side of a hunk."""
    language = language_of(path)
    if language is not None:
        found = (_DEFINITIONS[language].match(line.text) for line in lines)
        yield from (match[1] for match in found if match)


def name_before(path: str, text: str) -> str | None:
    """The name of the test or function that a line begins."""
    language = language_of(path)
    patterns = (_HEADS, _DEFINITIONS)
    found = (of[language].match(text) for of in patterns if language in of) if language else ()
    return next((name for match in found if match for name in match.groups() if name), None)


def mentions(path: str, lines: list[Line]) -> Iterator[str]:
    """Tests that are named where they are not defined: by whatever runs them."""
    language = language_of(path)
    if language not in _CALLED_BY_NAME:
        return
    defining = {line.number for line in lines if _defines(language, line.text)}
    stream = tokens(lines, language)
    for at, token in enumerate(stream):
        if token.line not in defining and _TEST_WORD.fullmatch(token.text) and _runs(stream, at):
            yield token.text


def _runs(stream: list[Token], at: int) -> bool:
    """Whether a name stands as what is run: `f();`, `failures += f()`, `RUN(f)`, `{"f", f}`, one of a list.

    A helper whose result is kept, and a counter, are none.
    """
    before = [token.text for token in stream[max(0, at - 2) : at]]
    after = [token.text for token in stream[at + 1 : at + 3]]
    if after == ["(", ")"]:
        return before[-1:] != ["="] or before[0] in {"+", "|", "&"}
    alone = before[-1:] == ["("] and after[:1] == [")"]
    entry = before[-1:] in (["{"], [","], ["&"]) and after[:1] == ["}"]
    return alone or entry or (stream[at].first and after[:1] in ([","], ["}"]))


def _defines(language: Language, text: str) -> bool:
    prototype = language == "c" and text.rstrip().endswith(");") and re.match(rf"{_C_TYPE}\w+\s*\(", text)
    return bool(prototype) or _DEFINITIONS[language].match(text) is not None


def _marked(lines: list[Line], index: int) -> bool:
    for line in reversed(lines[max(0, index - LOOK_BACK) : index]):
        text = line.text.strip()
        if _JAVA_MARK.match(text):
            return True
        if text and not text.startswith(("@", "//", "*", "/*")):
            return False
    return _JAVA_MARK.match(lines[index].text.strip()) is not None


def _body(lines: list[Line], head: int) -> Iterator[str]:
    indent = _indent(lines[head].text)
    for line in lines[head + 1 :]:
        text = line.text.strip()
        if text and _indent(line.text) <= indent and text != "{":
            return
        if text and not text.startswith(("#", "//")):
            yield text


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def added_values(file: FileDiff) -> set[str]:
    """The literals on the added lines of a file, of Python also as the interpreter would print them."""
    language = language_of(file.path)
    if language is None:
        return set()
    found = set(values(tokens(file.added(), language)))
    return found | set(_python_values(file.added())) if language == "python" else found


def _python_values(lines: list[Line]) -> Iterator[str]:
    for line in lines:
        for match in _PYTHON_VALUE.finditer(line.text):
            try:
                yield repr(ast.literal_eval(match[0]))
            except (SyntaxError, ValueError):
                continue
