"""Shell commands of a session: which files they write, and what a failure of them means."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$|^\*\*\* Move to: (.+)$", re.M)
_LOOKS = frozenset(
    ("grep", "egrep", "rg", "ag", "diff", "cmp", "test", "[", "[[", "ls", "cat", "find", "which", "command")
)
"""Commands whose exit status answers a question: a 1 of theirs is no failure."""
_AHEAD = re.compile(r"\A(?:[\s(]+|cd [^;&|]+(?:&&|;)|\w+=\S*\s|(?:sudo|time)\s)+")
_NOT_FILES = re.compile(r"&?\d+|-|/dev/.*")


def patched(text: str) -> list[str]:
    """The files that a patch in codex's own form names, in order."""
    return list(dict.fromkeys(one.strip() for pair in _PATCHED.findall(text) for one in pair if one))


def written(command: str) -> list[str]:
    """The files that a command plainly writes: redirections, `tee`, `sed -i` and patches. Others are not
    seen: a program writes what it likes.
    """
    found = patched(command)
    for line in _without_heredocs(command):
        found.extend(_of_words(_words(line)))
    return [path for path in dict.fromkeys(found) if not _NOT_FILES.fullmatch(path)]


def only_looks(command: str) -> bool:
    """Whether the command's first word is one that looks, so that its failing is an answer."""
    # What merely goes ahead of it is passed over: a shell around it, another directory, variables.
    plain = _AHEAD.sub("", command)
    return plain.split(maxsplit=1)[0].strip("()") in _LOOKS if plain.split() else False


def _without_heredocs(command: str) -> Iterator[str]:
    """The lines, joined where a quote runs on, without the texts of here-documents."""
    lines = iter(command.splitlines())
    held = ""
    for line in lines:
        held = f"{held}\n{line}" if held else line
        if found := _HEREDOC.search(held):
            end = found[2]
            for body in lines:
                if body.strip() == end:
                    break
            held = held.replace(found[0], "", 1)
        if _words(held) or not held.strip():
            yield held
            held = ""
    if held:
        yield held


def _words(line: str) -> list[str]:
    """The words and operators of a shell line; none where a quote in it stays open."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="();<>|&")
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:
        return []


def _of_words(words: list[str]) -> Iterator[str]:
    for number, word in enumerate(words[:-1]):
        after = words[number + 1]
        if word in (">", ">>", ">|"):
            yield after
        elif word == "tee":
            yield words[number + 2] if after == "-a" and number + 2 < len(words) else after
        elif word == "sed" and any(one.startswith(("-i", "--in-place")) for one in words[number + 1 :]):
            stop = next(
                (at for at in range(number, len(words)) if words[at] in ("|", ";", "&&", "||", ")")), None
            )
            *_, last = words[number:stop]
            yield last
