"""Reading Rust in the two texts of a diff: tokens, assertions and tests, without comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from scorers.diff import Line
from scorers.rules.assertions import Assertion

_TOKEN = re.compile(
    r"(?P<skip>\s+|//[^\n]*|/\*.*?(?:\*/|\Z))"
    r'|(?P<string>b?r(?P<hashes>#*)".*?(?:"(?P=hashes)|\Z)|b?"(?:\\.|[^"\\])*")'
    r"|(?P<char>b?'(?:\\.[^']*|[^'\\])')"
    r"|(?P<number>\d[\w]*(?:\.\d[\w]*)?)"
    r"|(?P<word>'?[A-Za-z_]\w*)"
    r"|(?P<mark>==|!=|<=|>=|&&|\|\||::|->|=>|.)",
    re.DOTALL,
)
_OPEN, _CLOSE = "([{", ")]}"


@dataclass(frozen=True)
class Token:
    text: str
    kind: str
    line: int
    changed: bool


def tokens(lines: list[Line]) -> list[Token]:
    """The tokens of one side of a hunk."""
    text = "\n".join(line.text for line in lines)
    found: list[Token] = []
    row = 0
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "mark"
        if match["skip"] is None:
            kind = next(k for k in ("string", "char", "number", "word", "mark") if match[k] is not None)
            found.append(Token(match[0], kind, lines[row].number, lines[row].changed))
        row += match[0].count("\n")
    return found


def assertions(lines: list[Line], in_tests: bool) -> list[Assertion]:
    """The assertion macros of one side, from the first test on where the file is no test file as a whole."""
    if not any("assert" in line.text or "should_panic" in line.text for line in lines):
        return []
    stream = tokens(lines)
    start = 0 if in_tests else _tests_begin(stream)
    found: list[Assertion] = []
    for at in range(start, len(stream) - 2):
        name = stream[at].text.removeprefix("debug_")
        if name in {"assert", "assert_eq", "assert_ne"} and stream[at + 1].text == "!":
            body = _group(stream, at + 2)
            if body:
                found.append(_assertion(name, body, stream[at : at + len(body) + 4]))
        elif name == "should_panic" and stream[at - 1].text == "[":
            found.append(_made("raises", [[stream[at]]], [stream[at]]))
    return found


def _assertion(name: str, body: list[Token], whole: list[Token]) -> Assertion:
    args = _split(body, ",")
    if name != "assert" and len(args) >= 2:
        return _made("eq" if name == "assert_eq" else "not", args[:2], whole)
    condition = args[0]
    for mark, kind in (("==", "eq"), ("!=", "not")):
        sides = _split(condition, mark)
        if len(sides) == 2 and len(_split(condition, "&&")) == 1 and len(_split(condition, "||")) == 1:
            return _made(kind, sides, whole)
    alternatives = _split(condition, "||")
    if any(_text(side) == "true" for side in alternatives):
        return _made("trivial", [condition], whole)
    if condition[0].text == "!":
        return _made("falsy", [condition[1:]], whole)
    return _made("in" if condition[0].text == "matches" else "truthy", [condition], whole)


def _made(kind: str, sides: list[list[Token]], whole: list[Token]) -> Assertion:
    texts = [_text(side) for side in sides]
    if len(texts) == 2 and kind == "eq" and _constant(sides[0]) and not _constant(sides[1]):
        texts.reverse()
    if kind == "eq" and len(set(texts)) == 1:
        kind = "trivial"
    literals = {t.text for side in sides for t in side if t.kind in {"string", "char", "number"}}
    literals |= {
        t.text for side in sides for t in side if t.text in {"true", "false", "None", "Some", "Ok", "Err"}
    }
    if kind in {"truthy", "falsy", "not"}:
        literals.add(f"<{kind}>")
    changed = any(token.changed for token in whole)
    return Assertion(kind, tuple(texts), frozenset(literals), _text(whole), whole[0].line, changed)


def _text(stream: list[Token]) -> str:
    return " ".join(token.text for token in stream)


def _constant(stream: list[Token]) -> bool:
    wrappers = {"Some", "None", "Ok", "Err", "true", "false", "vec"}
    return all(token.kind != "word" or token.text in wrappers for token in stream)


def _group(stream: list[Token], at: int) -> list[Token]:
    """What stands between the bracket at `at` and its partner; nothing when the partner is not there."""
    depth = 0
    for end in range(at, len(stream)):
        depth += (stream[end].text in _OPEN) - (stream[end].text in _CLOSE)
        if depth == 0:
            return stream[at + 1 : end]
    return []


def _split(stream: list[Token], mark: str) -> list[list[Token]]:
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in stream:
        depth += (token.text in _OPEN) - (token.text in _CLOSE)
        if token.text == mark and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def _tests_begin(stream: list[Token]) -> int:
    for at in range(len(stream) - 2):
        attribute = stream[at].text == "#" and _text(stream[at + 1 : at + 4]) in {"[ test ]", "[ cfg ("}
        if attribute and "test" in {token.text for token in stream[at : at + 6]}:
            return at
        if stream[at].text == "mod" and stream[at + 1].text in {"tests", "test"}:
            return at
    return len(stream)


def marked_tests(lines: list[Line]) -> Iterator[tuple[str, int, bool, frozenset[str]]]:
    """Functions marked as tests: name, line, whether a changed line holds the name, and their attributes."""
    stream = tokens(lines) if any("test" in line.text for line in lines) else []
    attributes: set[str] = set()
    at = 0
    while at < len(stream):
        token = stream[at]
        if token.text == "#" and at + 1 < len(stream) and stream[at + 1].text == "[":
            body = _group(stream, at + 1)
            attributes.add(_text(body))
            at += len(body) + 3
            continue
        if token.text == "fn" and at + 1 < len(stream):
            if any(name.split(" ")[-1] == "test" or name == "test" for name in _heads(attributes)):
                yield stream[at + 1].text, stream[at + 1].line, stream[at + 1].changed, frozenset(attributes)
            attributes = set()
        elif token.text in {"{", "}", ";"}:
            attributes = set()
        at += 1


def _heads(attributes: set[str]) -> Iterator[str]:
    """The path of each attribute, without its arguments: `test`, `tokio :: test`."""
    for attribute in attributes:
        yield attribute.split(" (")[0].strip()
