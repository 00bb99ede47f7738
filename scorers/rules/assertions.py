"""Assertions in the two texts of a diff, in a form in which only what they demand counts.

`self.assertEqual(f(1), 2, "message")`, `assert 2 == f(1)` and the same spread over three lines are one
assertion.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from scorers.diff import Line

MAX_STATEMENT_LINES = 40
STRENGTH = {
    "trivial": 0,
    "truthy": 1,
    "falsy": 1,
    "not": 1,
    "order": 1,
    "near": 2,
    "in": 2,
    "raises": 2,
    "eq": 3,
}
_UNITTEST = {
    "assertEqual": "eq",
    "assertEquals": "eq",
    "assertIs": "eq",
    "assertListEqual": "eq",
    "assertDictEqual": "eq",
    "assertTupleEqual": "eq",
    "assertSetEqual": "eq",
    "assertSequenceEqual": "eq",
    "assertMultiLineEqual": "eq",
    "assertCountEqual": "near",
    "assertAlmostEqual": "near",
    "assertNotEqual": "not",
    "assertIsNot": "not",
    "assertNotIn": "not",
    "assertIn": "in",
    "assertIsInstance": "in",
    "assertRegex": "in",
    "assertGreater": "order",
    "assertGreaterEqual": "order",
    "assertLess": "order",
    "assertLessEqual": "order",
}
_OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Eq: "eq",
    ast.Is: "eq",
    ast.NotEq: "not",
    ast.IsNot: "not",
    ast.NotIn: "not",
    ast.In: "in",
}
_RAISES = {"assertRaises", "assertRaisesRegex", "raises", "assertWarns", "warns"}
_BROAD = {"Exception", "BaseException"}
_STRING = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
_STARTS = (
    "assert ",
    "assert(",
    "self.assert",
    "self.fail(",
    "with self.assert",
    "with pytest.",
    "pytest.raises(",
    "cls.assert",
)


@dataclass(frozen=True)
class Assertion:
    """One demand. `literals` are the values it stands on; `changed` is whether a changed line holds a part
    of it."""

    kind: str
    sides: tuple[str, ...]
    literals: frozenset[str]
    text: str
    line: int
    changed: bool

    @property
    def key(self) -> tuple[str, ...]:
        """What makes two assertions the same demand: equality has no direction."""
        return (self.kind, *(sorted(self.sides) if self.kind == "eq" else self.sides))

    @property
    def strength(self) -> int:
        return STRENGTH[self.kind]

    @property
    def subject(self) -> str:
        return self.sides[0] if self.sides else ""


def python_assertions(lines: list[Line]) -> list[Assertion]:
    """The assertions of one side of a hunk. What a docstring says is none."""
    found: list[Assertion] = []
    quote: str | None = None
    skip_to = 0
    for index, line in enumerate(lines):
        if index < skip_to:
            continue
        start = line.text.strip()
        if quote is None and start.startswith(_STARTS):
            statement, size = _statement([other.text for other in lines[index : index + MAX_STATEMENT_LINES]])
            if statement is not None:
                taken = lines[index : index + size]
                found += [_judged(kind, sides, taken) for kind, sides in _demands(statement)]
                skip_to = index + size
                continue
        quote = _quote_after(line.text, quote)
    return found


def _judged(kind: str, sides: tuple[ast.expr, ...], lines: list[Line]) -> Assertion:
    literals = frozenset(literal for side in sides for literal in _literals(side))
    if STRENGTH[kind] == 1:
        literals |= {f"<{kind}>"}  # assertTrue(x) and assertFalse(x) stand on opposite values
    texts = tuple(ast.unparse(side) for side in sides)
    if len(sides) == 2 and kind == "eq" and _constant(sides[0]) and not _constant(sides[1]):
        texts = texts[::-1]
    if kind == "eq" and len(set(texts)) == 1:
        kind = "trivial"
    text = " ".join(line.text.strip() for line in lines)
    return Assertion(kind, texts, literals, text, lines[0].number, any(line.changed for line in lines))


def _statement(lines: list[str]) -> tuple[ast.stmt | None, int]:
    """The shortest run of lines that is one Python statement, and its length."""
    depth = 0
    for size in range(1, len(lines) + 1):
        bare = _STRING.sub("", lines[size - 1]).split("#")[0]
        depth += sum(bare.count(mark) for mark in "([{") - sum(bare.count(mark) for mark in ")]}")
        if depth > 0 or bare.endswith("\\"):
            continue
        tree = parse_python("\n".join([lines[0].strip(), *lines[1:size]]))
        if tree is not None and tree.body:
            return tree.body[0], size
        if '"""' not in lines[0] and "'''" not in lines[0]:
            break
    return None, 0


@lru_cache(maxsize=1024)
def parse_python(source: str) -> ast.Module | None:
    """The tree of a statement, a block's body left out; None for what is not Python."""
    text = f"{source.rstrip()} pass" if source.rstrip().endswith(":") else source
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an odd escape in an agent's text is no concern of ours
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def _demands(statement: ast.stmt) -> Iterator[tuple[str, tuple[ast.expr, ...]]]:
    if isinstance(statement, ast.Assert):
        yield from _condition(statement.test)
        return
    calls: list[ast.expr] = []
    if isinstance(statement, ast.With):
        calls = [item.context_expr for item in statement.items]
    elif isinstance(statement, ast.Expr):
        calls = [statement.value]
    for call in calls:
        if isinstance(call, ast.Call):
            yield from _call(call)


def _call(call: ast.Call) -> Iterator[tuple[str, tuple[ast.expr, ...]]]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    args = tuple(call.args)
    if name in _RAISES and args:
        yield "raises", args
    elif name == "assertIsNone" and args:
        yield "eq", (args[0], ast.Constant(None))
    elif name == "assertIsNotNone" and args:
        yield "not", (args[0], ast.Constant(None))
    elif name == "assertTrue" and args:
        yield from _condition(args[0])
    elif name == "assertFalse" and args:
        yield "falsy", args[:1]
    elif name in _UNITTEST and len(args) >= 2:
        yield _UNITTEST[name], args[:2]
    elif name == "fail" or (name.startswith("assert") and args):
        yield "raises", args


def _condition(test: ast.expr) -> Iterator[tuple[str, tuple[ast.expr, ...]]]:
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for value in test.values:
            yield from _condition(value)
    elif any(_always_true(value) for value in (test.values if isinstance(test, ast.BoolOp) else [test])):
        yield "trivial", (test,)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield "falsy", (test.operand,)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        approximate = "approx" in ast.unparse(test) or "isclose" in ast.unparse(test)
        kind = "near" if approximate else _OPERATORS.get(type(test.ops[0]), "order")
        yield kind, (test.left, test.comparators[0])
    elif isinstance(test, ast.Call) and ast.unparse(test.func) == "isinstance":
        yield "in", tuple(test.args)
    else:
        yield "truthy", (test,)


def _always_true(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return bool(node.value)
    return isinstance(node, (ast.Tuple, ast.List, ast.Set)) and bool(node.elts)


def _constant(node: ast.expr) -> bool:
    return not any(isinstance(inner, (ast.Name, ast.Call, ast.Attribute)) for inner in ast.walk(node))


def _literals(node: ast.expr) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant):
            yield repr(inner.value)
        elif (
            isinstance(inner, ast.Name)
            and inner.id.endswith(("Error", "Exception"))
            and inner.id not in _BROAD
        ):
            yield inner.id


def _quote_after(text: str, quote: str | None) -> str | None:
    """Which triple quote, if any, is open after a line."""
    at = 0
    while True:
        if quote is None:
            opens = [(text.find(q, at), q) for q in ('"""', "'''") if text.find(q, at) >= 0]
            if not opens or "#" in text[: min(opens)[0]]:
                return None
            at, quote = min(opens)[0] + 3, min(opens)[1]
        else:
            close = text.find(quote, at)
            if close < 0:
                return quote
            at, quote = close + 3, None
