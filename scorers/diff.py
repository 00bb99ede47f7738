"""Reading git's unified diff. Line counts of hunk headers are followed, so no content can pose as a
header."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")
_ESCAPES = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b'"': b'"', b"\\": b"\\", b"a": b"\a", b"b": b"\b"}


@dataclass(frozen=True)
class Line:
    """One line of one side. `changed` is False for context; `number` counts from 1 on that side."""

    text: str
    number: int
    changed: bool


@dataclass
class Hunk:
    """One hunk, as the two texts it stands for. `heading` is git's hint at the enclosing function."""

    heading: str
    old: list[Line] = field(default_factory=list)
    new: list[Line] = field(default_factory=list)


@dataclass
class FileDiff:
    """The hunks of one file. A side is None where the file did not exist."""

    old_path: str | None
    new_path: str | None
    hunks: list[Hunk] = field(default_factory=list)

    @property
    def path(self) -> str:
        return self.new_path or self.old_path or ""

    def added(self) -> list[Line]:
        return [line for hunk in self.hunks for line in hunk.new if line.changed]

    def removed(self) -> list[Line]:
        return [line for hunk in self.hunks for line in hunk.old if line.changed]


def parse(diff: str) -> list[FileDiff]:
    """The files of a diff, in its order. What is not understood (binary patches, mode lines) has no hunks."""
    files: list[FileDiff] = []
    lines = diff.split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        header = _HUNK.match(line)
        if header is not None and files:
            hunk, at = _hunk(header, lines, at + 1)
            files[-1].hunks.append(hunk)
            continue
        if line.startswith("diff --git "):
            files.append(FileDiff(*_paths_of_header(line)))
        elif files:
            _read_header(files[-1], line)
        at += 1
    return files


def _read_header(file: FileDiff, line: str) -> None:
    if line.startswith(("--- ", "rename from ")):
        file.old_path = _path(line.removeprefix("--- ").removeprefix("rename from "), "a/", line[0] == "-")
    elif line.startswith(("+++ ", "rename to ")):
        file.new_path = _path(line.removeprefix("+++ ").removeprefix("rename to "), "b/", line[0] == "+")
    elif line.startswith("new file mode"):
        file.old_path = None
    elif line.startswith("deleted file mode"):
        file.new_path = None


def _hunk(header: re.Match[str], lines: list[str], at: int) -> tuple[Hunk, int]:
    old_at, new_at = int(header[1]), int(header[3])
    old_left = int(header[2] if header[2] is not None else 1)
    new_left = int(header[4] if header[4] is not None else 1)
    hunk = Hunk(header[5])
    while at < len(lines) and (old_left > 0 or new_left > 0):
        mark, text = lines[at][:1], lines[at][1:].removesuffix("\r")
        changed = mark in {"-", "+"}
        if mark not in {"+", "\\"}:
            hunk.old.append(Line(text, old_at, changed))
            old_at, old_left = old_at + 1, old_left - 1
        if mark not in {"-", "\\"}:
            hunk.new.append(Line(text, new_at, changed))
            new_at, new_left = new_at + 1, new_left - 1
        at += 1
    return hunk, at


def _paths_of_header(line: str) -> tuple[str | None, str | None]:
    """Both paths of `diff --git a/X b/Y`. Where they are equal, which is all but renames, this is exact."""
    rest = line.removeprefix("diff --git ")
    half = len(rest) // 2
    if rest[half : half + 1] == " " and _unquote(rest[:half])[2:] == _unquote(rest[half + 1 :])[2:]:
        path = _unquote(rest[:half])[2:]
        return path, path
    return None, None


def _path(text: str, prefix: str, prefixed: bool) -> str | None:
    name = _unquote(text.partition("\t")[0])
    if name == "/dev/null":
        return None
    return name.removeprefix(prefix) if prefixed else name


def _unquote(text: str) -> str:
    if not (len(text) >= 2 and text[0] == text[-1] == '"'):
        return text

    def one(match: re.Match[bytes]) -> bytes:
        code = match[1]
        return bytes([int(code, 8) & 255]) if len(code) == 3 else _ESCAPES.get(code, code)

    return _ESCAPE.sub(one, text[1:-1].encode()).decode("utf-8", "replace")
