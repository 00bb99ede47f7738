"""Assertions made from tokens: what a condition demands, and what its negation does."""

from __future__ import annotations

import re
from collections.abc import Iterator

from scorers.rules.assertions import Assertion
from scorers.rules.lexer import Token, split, text_of, values

Stream = list[Token]
_CONSTANTS = {
    "true",
    "false",
    "null",
    "nil",
    "NULL",
    "nullptr",
    "undefined",
    "None",
    "Some",
    "Ok",
    "Err",
    "NaN",
}
_BUILDERS = {
    "vec",
    "new",
    "List",
    "Set",
    "Map",
    "Arrays",
    "asList",
    "of",
    "map",
    "int",
    "string",
    "String",
    "byte",
}
_BROAD = {"Error", "Exception", "Throwable", "RuntimeException"}
_NAMED_ERROR = re.compile(r"\w+(?:Error|Exception)|Err[A-Z]\w*")
_COMPARISONS = {"==": "eq", "===": "eq", "!=": "not", "!==": "not"}
_ORDERS = ("<", ">", "<=", ">=")
_TRUE = {"true", "1"}
_EQUALITY_CALL = re.compile(r"(?:deep|Deep)?[eE]quals?")
MAX_TOKENS = 1000  # of a condition that is taken apart
_COMPARING_CALL = re.compile(r"(?:str|strn|mem|wcs)(?:case)?cmp|Compare|compare(?:To)?")
_NEGATED = {"eq": "not", "not": "eq", "truthy": "falsy", "falsy": "truthy", "trivial": "falsy"}


def made(kind: str, sides: list[Stream], whole: Stream) -> Assertion:
    """One assertion. Of two equal sides the constant one is what is expected, and stands second."""
    texts = [text_of(side) for side in sides]
    if len(texts) == 2 and kind == "eq" and _constant(sides[0]) and not _constant(sides[1]):
        texts.reverse()
    if kind == "eq" and len(texts) == 2 and len(set(texts)) == 1:
        kind = "trivial"
    literals = {value for side in sides for value in values(side)}
    literals |= {t.text for side in sides for t in side if t.text in _CONSTANTS or _names_error(t.text)}
    if kind in {"truthy", "falsy", "not"}:
        literals.add(f"<{kind}>")
    changed = any(token.changed for token in whole)
    return Assertion(kind, tuple(texts), frozenset(literals), text_of(whole), whole[0].line, changed)


def condition(stream: Stream, whole: Stream) -> Iterator[Assertion]:
    """What has to hold for a condition to be true."""
    stream = _bare(stream[:MAX_TOKENS])
    both = split(stream, "&&")
    if len(both) > 1:
        for part in both:
            yield from condition(part, whole)
    elif any(text_of(side) in _TRUE for side in split(stream, "||")):
        yield made("trivial", [stream], whole)
    else:
        yield made(*_judged(stream), whole)


def negation(stream: Stream, whole: Stream) -> Iterator[Assertion]:
    """What has to hold for a condition to be false: for `if got != want` to report nothing."""
    stream = _bare(stream[:MAX_TOKENS])
    either = split(stream, "||")
    if len(either) > 1:
        for part in either:
            yield from negation(part, whole)
    elif text_of(stream) in {"false", "0"}:
        yield made("trivial", [stream], whole)
    else:
        kind, sides = _judged(stream)
        yield made(_NEGATED.get(kind, kind), sides, whole)


def compares(stream: Stream) -> bool:
    """Whether a condition says more than that something is true."""
    return len(split(stream, "&&", "||")) > 1 or _judged(_bare(stream[:MAX_TOKENS]))[0] != "truthy"


def _judged(stream: Stream) -> tuple[str, list[Stream]]:
    if len(split(stream, "&&", "||")) == 1:
        for mark, kind in _COMPARISONS.items():
            sides = split(stream, mark)
            if len(sides) == 2:
                compared = next((args for side in sides if (args := _call_of(_COMPARING_CALL, side))), [])
                zero = any(text_of(side) == "0" for side in sides)
                return kind, compared if len(compared) >= 2 and zero else sides
    if stream and stream[0].text == "!":
        marks, rest = 0, stream
        while rest and rest[0].text == "!":
            marks, rest = marks + 1, _bare(rest[1:])
        kind, sides = _judged(rest)
        return (_NEGATED.get(kind, kind) if marks % 2 else kind), sides
    sides = _equality_call(stream)
    if len(sides) == 2:
        return "eq", sides
    sides = _call_of(_COMPARING_CALL, stream)
    if len(sides) >= 2:
        return "not", sides
    sides = split(stream, *_ORDERS)
    if len(sides) == 2:
        return "order", sides
    if stream and stream[0].text == "matches":
        return "in", [stream]
    return "truthy", [stream]


def _equality_call(stream: Stream) -> list[Stream]:
    """The sides of `reflect.DeepEqual(a, b)` and of `a.equals(b)`."""
    args = _call_of(_EQUALITY_CALL, stream)
    receiver = stream[: _opening(stream) - 2]
    return [receiver, *args] if len(args) == 1 and receiver else args


def _call_of(name: re.Pattern[str], stream: Stream) -> list[Stream]:
    """The arguments of a condition that is nothing but a call of such a name."""
    opening = _opening(stream)
    called = opening > 0 and stream[-1].text == ")" and name.fullmatch(stream[opening - 1].text)
    return split(stream[opening + 1 : -1], ",") if called else []


def _opening(stream: Stream) -> int:
    """Where the bracket opens that the last token closes."""
    depth = 0
    for at in range(len(stream) - 1, -1, -1):
        depth += (stream[at].text == ")") - (stream[at].text == "(")
        if depth <= 0:
            return at
    return 0


def _bare(stream: Stream) -> Stream:
    """A condition without brackets around the whole of it."""
    while len(stream) > 2 and stream[0].text == "(" and stream[-1].text == ")":
        depth = 0
        for token in stream[:-1]:
            depth += (token.text == "(") - (token.text == ")")
            if depth == 0:
                return stream
        stream = stream[1:-1]
    return stream


def _constant(stream: Stream) -> bool:
    return all(token.kind != "word" or token.text in _CONSTANTS | _BUILDERS for token in stream)


def _names_error(text: str) -> bool:
    return text not in _BROAD and _NAMED_ERROR.fullmatch(text) is not None
