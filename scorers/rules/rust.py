"""Reading Rust in the two texts of a diff: assertions and tests."""

from __future__ import annotations

from collections.abc import Iterator

from scorers.diff import Line
from scorers.rules.assertions import Assertion
from scorers.rules.demands import condition, made
from scorers.rules.lexer import Token, group, split, text_of, tokens


def assertions(lines: list[Line], in_tests: bool) -> list[Assertion]:
    """The assertion macros of one side, from the first test on where the file is no test file as a whole."""
    if not any("assert" in line.text or "should_panic" in line.text for line in lines):
        return []
    stream = tokens(lines, "rust")
    start = 0 if in_tests else _tests_begin(stream)
    found: list[Assertion] = []
    for at in range(start, len(stream) - 2):
        name = stream[at].text.removeprefix("debug_")
        if name in {"assert", "assert_eq", "assert_ne"} and stream[at + 1].text == "!":
            body = group(stream, at + 2)
            if body:
                found += _assertion(name, body, stream[at : at + len(body) + 4])
        elif name == "should_panic" and stream[at - 1].text == "[":
            found.append(made("raises", [[stream[at]]], [stream[at]]))
    return found


def _assertion(name: str, body: list[Token], whole: list[Token]) -> Iterator[Assertion]:
    args = split(body, ",")
    if name != "assert" and len(args) >= 2:
        yield made("eq" if name == "assert_eq" else "not", args[:2], whole)
    elif args:
        yield from condition(args[0], whole)


def _tests_begin(stream: list[Token]) -> int:
    for at in range(len(stream) - 2):
        attribute = stream[at].text == "#" and text_of(stream[at + 1 : at + 4]) in {"[ test ]", "[ cfg ("}
        if attribute and "test" in {token.text for token in stream[at : at + 6]}:
            return at
        if stream[at].text == "mod" and stream[at + 1].text in {"tests", "test"}:
            return at
    return len(stream)


def marked_tests(lines: list[Line]) -> Iterator[tuple[str, int, frozenset[str]]]:
    """Functions marked as tests: name, line, and their attributes."""
    stream = tokens(lines, "rust") if any("test" in line.text for line in lines) else []
    attributes: set[str] = set()
    at = 0
    while at < len(stream):
        token = stream[at]
        if token.text == "#" and at + 1 < len(stream) and stream[at + 1].text == "[":
            body = group(stream, at + 1)
            attributes.add(text_of(body))
            at += len(body) + 3
            continue
        if token.text == "fn" and at + 1 < len(stream):
            if any(name.split(" ")[-1] == "test" for name in _heads(attributes)):
                yield stream[at + 1].text, stream[at + 1].line, frozenset(attributes)
            attributes = set()
        elif token.text in {"{", "}", ";"}:
            attributes = set()
        at += 1


def _heads(attributes: set[str]) -> Iterator[str]:
    """The path of each attribute, without its arguments: `test`, `tokio :: test`."""
    for attribute in attributes:
        yield attribute.split(" (")[0].strip()
