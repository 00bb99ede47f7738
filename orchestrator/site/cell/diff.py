"""A unified diff with the colours of its languages: classes in escaped text, no style of its own.

The line counts of hunk headers are followed, so that no content can pose as a header. What is coloured is
bounded in lines and characters; the rest is in the patch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from orchestrator.site.cell.bounded import MAX_LINE, line

if TYPE_CHECKING:
    from pygments.lexer import Lexer
    from pygments.token import _TokenType

MAX_LINES = 400
MAX_COLOURED = 16_000
"""Characters of one diff whose language is read; what follows is coloured as added or removed alone."""

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_LANGUAGES = {
    **{".py": "python", ".pyi": "python", ".rs": "rust", ".go": "go", ".java": "java"},
    **{".c": "c", ".h": "c", ".cc": "cpp", ".cpp": "cpp", ".hpp": "cpp"},
    **{".js": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".jsx": "javascript"},
    **{".ts": "typescript", ".tsx": "typescript", ".mts": "typescript"},
    **{".json": "json", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml", ".sh": "bash"},
}
"""By suffix. A fixed table: a lexer is never chosen by what an agent wrote."""
_SIGNS = {"+": "add", "-": "del", " ": "same", "\\": "meta"}


@dataclass(frozen=True)
class Diff:
    """`html` is escaped text in which each line is an element with a class for what it is: meta, hunk, add,
    del or same; and in those, elements of the classes k, s, c, m and f for keywords, strings, comments,
    numbers and names of functions and types. `left_out` lines more are in the patch.
    """

    html: str
    left_out: int
    added: int
    removed: int


@dataclass(frozen=True)
class _Line:
    kind: str
    text: str
    hunk: int
    path: str


def diff(raw: str) -> Diff | None:
    """A diff to show; None where it is empty."""
    if not raw.strip():
        return None
    lines = raw.rstrip("\n").split("\n")
    read = list(_read(lines))
    shown = read[:MAX_LINES]
    html = "\n".join(_marked(shown))
    counts = [sum(one.kind == kind for one in read) for kind in ("add", "del")]
    return Diff(html, len(read) - len(shown), *counts)


def _read(lines: Sequence[str]) -> Iterator[_Line]:
    """Each line with what it is. Inside a hunk that is said by its first character alone."""
    old = new = hunk = 0
    path = ""
    for raw in lines:
        if old > 0 or new > 0 or raw.startswith("\\"):
            sign = raw[:1] or " "
            kind = _SIGNS.get(sign, "same")
            old -= sign in " -"
            new -= sign in " +"
            yield _Line(kind, raw, hunk, path)
            continue
        if found := _HUNK.match(raw):
            old, new = (int(count or 1) for count in found.groups())
            hunk += 1
            yield _Line("hunk", raw, 0, path)
            continue
        if raw.startswith("+++ "):
            path = raw[4:].strip('"').removeprefix("b/")
        yield _Line("meta", raw, 0, path)


def _marked(lines: Sequence[_Line]) -> Iterator[str]:
    """Each line as an element. Those of a hunk are read as one text of its language."""
    at, left = 0, MAX_COLOURED
    while at < len(lines):
        one = lines[at]
        end = at + 1
        while one.hunk and end < len(lines) and lines[end].hunk == one.hunk:
            end += 1
        block = lines[at:end]
        texts = [line(_expanded(each.text), MAX_LINE) for each in block]
        left -= sum(map(len, texts))
        coloured = _coloured(tuple(texts), PurePosixPath(one.path).suffix) if one.hunk and left >= 0 else None
        for each, text, inner in zip(block, texts, coloured or map(escape, texts), strict=True):
            yield f'<span class="{each.kind}">{inner or escape(text)}</span>'
        at = end


def _expanded(text: str) -> str:
    """Tabs as spaces, from the column after the sign on."""
    return text[:1] + text[1 : MAX_LINE + 1].expandtabs(4) + text[MAX_LINE + 1 :]


@lru_cache(maxsize=1024)
def _coloured(texts: tuple[str, ...], suffix: str) -> list[str] | None:
    """The lines of a hunk with elements around what its language has names for; None where that is unknown.

    Kept for the next cell: the right fix of a small task is often the same one.
    """
    lexer = _lexer(suffix)
    if lexer is None:
        return None
    done: list[list[str]] = [[]]
    for token, value in lexer.get_tokens("\n".join(text[1:] for text in texts)):
        name = _class(token)
        for number, part in enumerate(value.split("\n")):
            if number:
                done.append([])
            if part:
                done[-1].append(f'<i class="{name}">{escape(part)}</i>' if name else escape(part))
    if len(done) != len(texts):
        return None
    return [escape(text[:1]) + "".join(parts) for text, parts in zip(texts, done, strict=True)]


@lru_cache(maxsize=64)
def _lexer(suffix: str) -> Lexer | None:
    """The lexer of a suffix, which leaves every line end as it is."""
    from pygments.lexers import get_lexer_by_name

    name = _LANGUAGES.get(suffix)
    return None if name is None else get_lexer_by_name(name, stripnl=False, ensurenl=False)


@lru_cache(maxsize=1024)
def _class(token: _TokenType) -> str:
    from pygments.token import Comment, Keyword, Name, Number, String, is_token_subtype

    for kind, name in (
        (Comment, "c"),
        (String, "s"),
        (Number, "m"),
        (Keyword, "k"),
        (Name.Function, "f"),
        (Name.Class, "f"),
    ):
        if is_token_subtype(token, kind):
            return name
    return ""
