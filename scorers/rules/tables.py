"""Expected values that stand outside an assertion: in a table of cases, or under a name such as `want`.

A row of a table counts by its last value, a name by what it is set to. Both are read as if they were an
assertion of equality, so that one changed value is found where a test is nothing but a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from scorers.diff import Line
from scorers.rules.assertions import Assertion
from scorers.rules.demands import Stream, made
from scorers.rules.lexer import VALUES, Language, Token, partners, split, text_of, tokens

MAX_ROW = 200  # tokens
_EXPECTED = re.compile(r"(?:want|wanted|expect|expected|exp)(?:_?[A-Z]\w*|_\w+|\d*)?", re.ASCII)
_SETS = {":=", "=", ":"}
_ROW_OPENS = {"python": "([", "javascript": "[{", "rust": "("}
_WORDS = re.compile(r"want|expect|exp|^\s*[\[({]", re.I)


def assertions(lines: list[Line], language: Language) -> list[Assertion]:
    """The expected values of one side of a hunk of a test file."""
    if not any(_WORDS.search(line.text) for line in lines):
        return []
    stream = tokens(lines, language)
    pair = partners(stream)
    opens = _ROW_OPENS.get(language, "{")
    found: list[Assertion] = []
    skip_to = 0
    for at, token in enumerate(stream):
        if at < skip_to:
            continue
        if token.first and token.text in opens and at in pair:
            row = list(_row(stream, at, pair[at]))
            found += row
            skip_to = pair[at] if row else 0
        elif token.kind == "word" and _EXPECTED.fullmatch(token.text.lstrip(".")):
            found += _named(stream, at)
    return found


def _row(stream: Stream, at: int, end: int) -> Iterator[Assertion]:
    """One line of a table: a bracket that begins a line and is an element of something larger."""
    inner = stream[at + 1 : end]
    parts = split(inner, ",")
    element = end + 1 < len(stream) and stream[end + 1].text in {",", "]", "}", ")"}
    keyed = any(len(part) > 1 and part[1].text in {":", "="} for part in parts)
    one_line = stream[end].line == stream[at].line
    if not (element and one_line and len(parts) > 1 and len(inner) <= MAX_ROW):
        return
    if keyed:
        for index in range(at, end):
            if stream[index].kind == "word" and _EXPECTED.fullmatch(stream[index].text):
                yield from _named(stream, index)
    elif any(token.kind in VALUES for token in parts[-1]):
        *inputs, expected = parts
        yield _only(expected, [token for part in inputs for token in part], stream[at : end + 1])


def _named(stream: Stream, at: int) -> Iterator[Assertion]:
    """`want := 3`, `.expected = 3`, `want: 3,`: the value up to the end of the statement or element."""
    if at + 2 >= len(stream) or stream[at + 1].text not in _SETS:
        return
    value: Stream = []
    depth = 0
    for token in stream[at + 2 : at + MAX_ROW]:
        depth += (token.text in {"(", "[", "{"}) - (token.text in {")", "]", "}"})
        if depth < 0 or (depth == 0 and token.text in {";", ","}) or (token.first and depth == 0 and value):
            break
        value.append(token)
    typed = split(value, "=")
    if any(token.kind in VALUES for token in value):
        yield _only(typed[-1] if typed else value, [stream[at]], [*stream[at : at + 2], *value])


def _only(expected: Stream, subject: list[Token], whole: Stream) -> Assertion:
    """Equality that stands on the expected value alone: a case may get another name or input."""
    value = made("eq", [expected], whole)
    return replace(value, sides=(text_of(subject), *value.sides))
