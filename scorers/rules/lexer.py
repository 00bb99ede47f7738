"""Tokens of code in the two texts of a diff: comments gone, literals whole, whatever the language.

A hunk is a fragment: a bracket that it does not close, or a comment that it does not open, is read as far as
it goes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from scorers.diff import Line

Language = Literal["python", "rust", "go", "java", "javascript", "c"]

_SUFFIXES: dict[Language, tuple[str, ...]] = {
    "python": (".py", ".pyi"),
    "rust": (".rs",),
    "go": (".go",),
    "java": (".java",),
    "javascript": (".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx"),
    "c": (".c", ".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp"),
}
_OF_SUFFIX: dict[str, Language] = {
    suffix: language for language, suffixes in _SUFFIXES.items() for suffix in suffixes
}
_QUOTED = r'"(?:\\.|[^"\\\n])*"'
_SINGLE = r"'(?:\\.|[^'\\\n])*'"
_TRIPLE = r'"""(?s:.*?)(?:"""|\Z)'
_TRIPLE_SINGLE = r"'''(?s:.*?)(?:'''|\Z)"
_STRINGS: dict[Language, str] = {
    "python": rf"[rbfuRBFU]{{0,2}}(?:{_TRIPLE}|{_TRIPLE_SINGLE}|{_QUOTED}|{_SINGLE})",
    "rust": r'b?r(?P<hashes>#*)"(?s:.*?)(?:"(?P=hashes)|\Z)|b?"(?:\\(?s:.)|[^"\\])*"',
    "go": rf"{_QUOTED}|`[^`]*(?:`|\Z)",
    "java": rf"{_TRIPLE}|{_QUOTED}",
    "javascript": rf"{_QUOTED}|{_SINGLE}|`(?:\\(?s:.)|[^`\\])*(?:`|\Z)",
    "c": rf"(?:u8|[LuU])?{_QUOTED}",
}
_CHAR = r"b?'(?:\\.[^'\n]*|[^'\\\n])'"
_SLASH_COMMENT = r"//[^\n]*|/\*(?s:.*?)(?:\*/|\Z)"
_MARK = r"===|!==|==|!=|<=|>=|&&|\|\||::|->|=>|:=|\?\?|(?s:.)"


def _pattern(language: Language) -> re.Pattern[str]:
    comment = r"\#[^\n]*" if language == "python" else _SLASH_COMMENT
    char = _CHAR if language in {"rust", "go", "java", "c"} else r"(?!)"
    word = r"'?[A-Za-z_]\w*" if language == "rust" else r"[A-Za-z_$][\w$]*"
    return re.compile(
        rf"(?P<skip>\s+|{comment})|(?P<string>{_STRINGS[language]})|(?P<char>{char})"
        rf"|(?P<number>\d\w*(?:\.\d\w*)?)|(?P<word>{word})|(?P<mark>{_MARK})"
    )


_PATTERNS = {language: _pattern(language) for language in _SUFFIXES}
_KINDS = ("string", "char", "number", "word", "mark")
_OPEN, _CLOSE = frozenset("([{"), frozenset(")]}")
VALUES = {"string", "char", "number"}
_OPERAND_ENDS = {")", "]"}  # what a minus sign after it subtracts from


@dataclass(frozen=True)
class Token:
    """`line` is that of its beginning; `first` is whether it is the first one on it."""

    text: str
    kind: str
    line: int
    changed: bool
    first: bool = False


def language_of(path: str) -> Language | None:
    """The language of a file that is read, by its suffix."""
    return _OF_SUFFIX.get(PurePosixPath(path).suffix)


def tokens(lines: list[Line], language: Language) -> list[Token]:
    """The tokens of one side of a hunk, without comments."""
    found: list[Token] = []
    row, last = 0, -1
    for match in _PATTERNS[language].finditer("\n".join(line.text for line in lines)):
        if match["skip"] is None:
            kind = next(kind for kind in _KINDS if match[kind] is not None)
            line = lines[row]
            text = _plain_quotes(match[0]) if kind == "string" else match[0]
            found.append(Token(text, kind, line.number, line.changed, row != last))
            last = row
        row += match[0].count("\n")
    return found


def _plain_quotes(text: str) -> str:
    """A string in double quotes where either kind would do: which one is a matter of formatting."""
    single = len(text) > 1 and text[0] == text[-1] == "'" and not text.startswith("'''")
    return f'"{text[1:-1]}"' if single and not {'"', "\\"}.intersection(text) else text


def text_of(stream: Iterable[Token]) -> str:
    return " ".join(token.text for token in stream)


def group(stream: list[Token], at: int) -> list[Token]:
    """What stands between the bracket at `at` and its partner; nothing when the partner is not there."""
    depth = 0
    for end in range(at, len(stream)):
        depth += (stream[end].text in _OPEN) - (stream[end].text in _CLOSE)
        if depth == 0:
            return stream[at + 1 : end]
    return []


def split(stream: list[Token], *marks: str) -> list[list[Token]]:
    """The parts between marks that stand in no bracket; empty parts are dropped."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in stream:
        depth += (token.text in _OPEN) - (token.text in _CLOSE)
        if token.text in marks and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def partners(stream: list[Token]) -> dict[int, int]:
    """Where each bracket that is closed is closed: its index -> that of its partner."""
    found: dict[int, int] = {}
    open_: list[int] = []
    for at, token in enumerate(stream):
        if token.text in _OPEN:
            open_.append(at)
        elif token.text in _CLOSE and open_:
            found[open_.pop()] = at
    return found


def values(stream: Iterable[Token]) -> Iterator[str]:
    """The literal values among some tokens, a minus sign with its number."""
    before: tuple[str, str] = ("", "")
    for token in stream:
        if token.kind in VALUES:
            negative = token.kind == "number" and before[1] == "-" and before[0] not in _OPERAND_ENDS
            yield f"-{token.text}" if negative else token.text
        end = ")" if token.kind != "mark" else token.text
        before = (before[1], end)
