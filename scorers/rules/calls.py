"""Assertions of Go, Java, JavaScript, TypeScript and C, in the forms that their tests use.

A call (`assertEquals(3, f())`, `CHECK(f() == 3)`), a chain (`expect(f()).not.toBe(3)`), a statement
(`assert f() == 3;`), and a report under a condition (`if got != want { t.Errorf(…) }`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from scorers.diff import Line
from scorers.rules.assertions import Assertion
from scorers.rules.demands import Stream, compares, condition, made
from scorers.rules.demands import negation as holds_when_silent
from scorers.rules.lexer import Language, Token, partners, split, text_of, tokens

_NAMESPACES = {"assert", "assertions", "require", "check", "expect", "chai"}
_HELPER = re.compile(
    r"(?:ck_|g_|cr_|munit_|cl_|TEST_|mu_)?(?:assert|ASSERT|expect|EXPECT|check|CHECK|ensure|ENSURE|verify|REQUIRE|must)"
    r"(?P<verb>(?:[A-Z_0-9]\w*)?)"
)
# Names that node:assert exports, for tests that import them one by one.
_IMPORTED = re.compile(
    r"(?:not)?(?:[dD]eep)?(?:[sS]trict)?[eE]qual|throws|rejects|doesNotThrow|doesNotReject"
)
_FAIL = "fail"
MAX_LINKS = 50  # of a chain
MAX_TOKENS = 2000  # of a condition with its body
_CHAINS = {"expect", "assertThat", "assertThatThrownBy", "expectTypeOf"}
_CHAIN_WORDS = re.compile(
    r"(?i:to|be|been|is|has|have|that|with|and|at|of|resolves|rejects|deep|does)+(?=[A-Z]|$)"
)
_BEFORE_STATEMENT = {"{", "}", ";", ")", "=>", "else", "await", "return", "do", ":"}

# The first that matches the verb, lower case without underscores, says what kind of demand it is.
_VERBS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("throws", re.compile(r"(?:is)?(?:throw|panic|raise|reject|fails|died?|error(?!s?eq)).*")),
    ("silent", re.compile(r"(?:no|not|doesnot|donot)(?:throw|error|panic|reject|raise).*|success|notfails")),
    ("non-null", re.compile(r"(?:not|non|isnot|exists?)(?:null|nil|none|undefined|empty)?|defined|present")),
    (
        "not",
        re.compile(
            r"(?:is)?not?(?:deep|strict|loose)*(?:equal|same|eq|be|contain|match|in|instance).*|ne|.*ne"
        ),
    ),
    ("near", re.compile(r".*(?:almost|delta|closeto|close|near|within|epsilon).*|elementsmatch|jsoneq")),
    (
        "order",
        re.compile(
            r".*(?:greater|less|above|below|atleast|atmost).*|[gl][te]|(?:int|uint|str|float)[gl][te]"
        ),
    ),
    (
        "in",
        re.compile(r".*(?:contain|match|regex|instance|include|property|subset|haskey|substr|startswith).*"),
    ),
    (
        "eq",
        re.compile(
            r"(?:.*(?:equal|eq|same|identical|length|size|sizeof|len|code|count).*|is|be"
            r"|(?:u?int|str|string|long|double|float|char|bool|ptr|mem|array|list|value|result|output)(?:\d+|s)?)"
        ),
    ),
    ("truthy", re.compile(r"(?:true|truthy|ok|that|cond|condition|msg|message|invariant|)")),
    ("falsy", re.compile(r"false|falsy")),
    ("null", re.compile(r"(?:ptr)?(?:null|nil|undefined|none|nan|empty)")),
)
_INVERTED = {
    "eq": "not",
    "not": "eq",
    "truthy": "falsy",
    "falsy": "truthy",
    "throws": "silent",
    "silent": "throws",
}
_INVERTED |= {"null": "non-null", "non-null": "null", "in": "not", "near": "not"}

# What reports a failure: the tokens of a body, one space apart.
_REPORTS: dict[Language, re.Pattern[str]] = {
    "go": re.compile(
        r"\b\w+ \. (?:Errorf?|Fatalf?|Fail|FailNow) \(|\bpanic \(|\bos \. Exit \( [1-9]|\blog \. Fatal"
    ),
    "java": re.compile(
        r"\bthrow new \w*(?:Error|Exception)\b|\b[fF]ail\w* \(|\bSystem \. exit \( [^0\s]"
        r"|\b\w*(?:fail|Fail|error)\w* (?:\+ \+|\+ =)|\+ \+ \w*fail"
    ),
    "javascript": re.compile(
        r"\bthrow\b|\bprocess \. exit \( [^0\s]|\bexitCode = [^0\s]"
        r"|\b[fF]ail\w* \(|\b\w*fail\w* (?:\+ \+|\+ =)"
    ),
    "c": re.compile(
        r"\breturn (?:- ?)?(?:[1-9]\w*|EXIT_FAILURE|false)\b|\babort \(|\b_?exit \( [^0\s]"
        r"|\b\w*[fF]ail\w* \("
        r"|\b\w*(?:fail|error)\w* (?:\+ \+|\+ =)|\+ \+ \w*(?:fail|error)|\bFAIL \("
    ),
}
_MENTIONS = re.compile(
    r"assert|expect|check|ensure|verify|require|must|equal|throws|rejects|fail|\bif\b", re.I
)


@dataclass(frozen=True)
class _Text:
    """One side of a hunk as tokens, with the partner of each bracket."""

    language: Language
    stream: Stream
    pair: dict[int, int]

    def inside(self, at: int) -> Stream | None:
        """What stands in the bracket at `at`; None when there is no bracket, or its end is not shown."""
        end = self.pair.get(at)
        return None if end is None else self.stream[at + 1 : end]

    def text(self, at: int) -> str:
        return self.stream[at].text if 0 <= at < len(self.stream) else ""


def assertions(lines: list[Line], language: Language) -> list[Assertion]:
    """The assertions of one side of a hunk of a test file."""
    if not any(_MENTIONS.search(line.text) for line in lines):
        return []
    stream = tokens(lines, language)
    text = _Text(language, stream, partners(stream))
    found: list[Assertion] = []
    skip_to = 0
    for at, token in enumerate(stream):
        if token.kind != "word" or at < skip_to:
            continue
        if token.text == "if":
            found += _under_condition(text, at)
        elif token.text == "assert" and language == "java" and text.text(at + 1) != ".":
            found += _statement(text, at)
        elif _begins_statement(text, at):
            made_here, skip_to = _call(text, at)
            found += made_here
    return found


def _begins_statement(text: _Text, at: int) -> bool:
    return text.stream[at].first or text.text(at - 1) in _BEFORE_STATEMENT


def _statement(text: _Text, at: int) -> Iterator[Assertion]:
    """Java's `assert condition : message;`."""
    end = next((i for i in range(at, min(len(text.stream), at + 400)) if text.text(i) == ";"), None)
    if end is not None and end > at + 1:
        yield from condition(split(text.stream[at + 1 : end], ":")[0], text.stream[at:end])


def _under_condition(text: _Text, at: int) -> Iterator[Assertion]:
    """`if got != want { report }`: what holds when nothing is reported."""
    opening, test = _condition_of_if(text, at)
    if not test:
        return
    body = text.inside(opening) if text.text(opening) == "{" else None
    end = text.pair.get(opening, opening)
    if body is None and text.text(opening) != "{":
        end = next(
            (i for i in range(opening, min(len(text.stream), opening + 200)) if text.text(i) == ";"), opening
        )
        body = text.stream[opening:end]
    if body and end - at <= MAX_TOKENS and _REPORTS[text.language].search(text_of(_outermost(body))):
        yield from holds_when_silent(_with_start_in(test), text.stream[at : end + 1])


def _condition_of_if(text: _Text, at: int) -> tuple[int, Stream]:
    """Where the body of an `if` begins, and its condition."""
    if text.language != "go":
        test = text.inside(at + 1) if text.text(at + 1) == "(" else None
        return (text.pair[at + 1] + 1, test) if test else (at, [])
    opening = at + 1
    while opening < min(len(text.stream), at + 400) and text.text(opening) != "{":
        opening = text.pair.get(opening, opening) + 1
    return opening, text.stream[at + 1 : opening]


def _with_start_in(test: Stream) -> Stream:
    """`got := f(1); got != 2` as `f(1) != 2`: what was tried belongs to the demand."""
    parts = split(test, ";")
    if len(parts) != 2:
        return parts[-1] if parts else []
    name, start = parts[0][0].text, parts[0]
    if len(start) < 3 or start[1].text != ":=":
        return parts[1]
    return [inner for token in parts[1] for inner in (start[2:] if token.text == name else [token])]


def _outermost(body: Stream) -> Stream:
    """A body without the blocks inside it, whose reports are not its own."""
    kept, depth = [], 0
    for token in body:
        depth += token.text == "{"
        if not depth:
            kept.append(token)
        depth -= token.text == "}"
    return kept


def _call(text: _Text, at: int) -> tuple[list[Assertion], int]:
    """The assertions of the call that begins at `at`, and where to read on."""
    last = at
    while (
        text.text(last + 1) in {".", "::"}
        and last + 2 < len(text.stream)
        and text.stream[last + 2].kind == "word"
    ):
        last += 2
    args = text.inside(last + 1) if text.text(last + 1) == "(" else None
    names = [token.text for token in text.stream[at : last + 1] if token.kind == "word"]
    end = text.pair.get(last + 1, last)
    if args is None or text.text(end + 1) == "{":  # a definition, not a call
        return [], last
    if names[-1] in _CHAINS and text.text(end + 1) == ".":
        return _chain(text, at, split(args, ","), end)
    verb = _verb(names, text.language)
    if verb is None:
        return [], last
    whole = text.stream[at : end + 1]
    return list(_demand(text.language, verb, split(args, ","), whole)), end


def _verb(names: list[str], language: Language) -> str | None:
    """What an assertion's name asks for, without the word that makes it one; None for any other call."""
    name = names[-1]
    if any(part.lower() in _NAMESPACES for part in names[:-1]):
        helper = _HELPER.fullmatch(name)
        return _plain(helper["verb"] if helper and helper["verb"] else name)
    helper = _HELPER.fullmatch(name)
    if helper is not None:
        return _plain(helper["verb"])
    if name in {"fail", "FAIL"}:
        return _FAIL
    return _plain(name) if language == "javascript" and _IMPORTED.fullmatch(name) else None


def _plain(verb: str) -> str:
    return verb.lower().replace("_", "")


def _kind(verb: str) -> str | None:
    return next((kind for kind, pattern in _VERBS if pattern.fullmatch(verb)), None)


def _demand(language: Language, verb: str, args: list[Stream], whole: Stream) -> Iterator[Assertion]:
    if language == "go" and args and text_of(args[0]) in {"t", "tb", "b"}:
        args = args[1:]
    kind = _kind(verb)
    if verb == _FAIL:
        yield made("raises", [whole[:1]], whole)
    elif kind == "truthy" and args:
        yield from _of_condition(verb, args, whole)
    elif kind is not None and args:
        yield _of_kind(kind, _without_message(kind, args), whole)
    else:
        yield made("raises", args, whole)


def _of_condition(verb: str, args: list[Stream], whole: Stream) -> Iterator[Assertion]:
    """`assert(x)`, `check(x, "message")`, and helpers like `check("adds", 3, add(1, 2))`."""
    told = [arg for arg in args if not _is_message(arg)] or args
    if len(told) == 3 and _is_string(told[0]):
        told = told[1:]
    test = next((arg for arg in told if compares(arg)), told[0])
    if verb not in {"", "that"} or len(told) == 1 or compares(test):
        yield from condition(test, whole)
    else:
        yield made("eq", told[:2], whole)


def _of_kind(kind: str, sides: list[Stream], whole: Stream) -> Assertion:
    nothing = [Token("null", "word", whole[0].line, whole[0].changed)]
    if kind in {"null", "non-null"}:
        return made("eq" if kind == "null" else "not", [*sides[:1], nothing], whole)
    if kind in {"throws", "silent"}:
        return made("raises", [*sides, whole[:1]] if kind == "silent" else sides, whole)
    return made(kind, sides, whole)


def _without_message(kind: str, args: list[Stream]) -> list[Stream]:
    """The arguments that are demands: one or two, with JUnit 4's message in front or a message behind."""
    if kind in {"truthy", "falsy", "null", "non-null"}:
        return ([arg for arg in args if not _is_string(arg)] or args)[:1]
    if kind == "throws":
        return [arg for arg in args if not _is_message(arg)] or args
    if len(args) == 3 and _is_string(args[0]) and not _is_string(args[2]):
        return args[1:]
    return args[:2]


def _is_string(arg: Stream) -> bool:
    return all(token.kind == "string" for token in arg)


def _is_message(arg: Stream) -> bool:
    """A string of several words, or one that is put together. A single word may be an expected value."""
    return arg[0].kind == "string" and (len(arg) > 1 or " " in arg[0].text)


def _chain(text: _Text, at: int, subject: list[Stream], end: int) -> tuple[list[Assertion], int]:
    """`expect(x).not.toBe(3)`, `assertThat(x).isEqualTo(3).isNotNull()`: each link may demand something."""
    found: list[Assertion] = []
    inverted = False
    while text.text(end + 1) in {".", "?"} and end + 2 < len(text.stream) and len(found) < MAX_LINKS:
        name = text.text(end + 2)
        args = text.inside(end + 3) if text.text(end + 3) == "(" else None
        word = end + 2
        end = text.pair[end + 3] if args is not None else word
        if name == "not":
            inverted = True
            continue
        verb = _plain(_CHAIN_WORDS.sub("", name, count=1) or "")
        if not verb and args is None:
            continue
        kind = _kind(verb or "is") or "in"
        kind = _INVERTED.get(kind, kind) if inverted else kind
        sides = [*subject[:1], *split(args or [], ",")]
        found.append(_of_kind(kind, sides or [[text.stream[word]]], text.stream[at : end + 1]))
    return found, end
