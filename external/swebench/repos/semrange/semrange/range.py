"""Ranges: sets of comparators, of which a version has to meet one whole set."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from semrange.version import Version, VersionError

_OPERATORS: dict[str, Callable[[Version, Version], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "=": operator.eq,
}
_TERM = re.compile(r"(>=|<=|>|<|=|\^|~)?\s*([^\s<>=^~]+)")
_TERMS = re.compile(rf"\s*(?:{_TERM.pattern}\s*)*")
_HYPHEN = re.compile(r"^\s*(\S+)\s+-\s+(\S+)\s*$")
_WILD = ("x", "X", "*")


class RangeError(ValueError):
    """A text is no range."""


@dataclass(frozen=True)
class Comparator:
    """An operator and the version on its right."""

    operator: str
    version: Version

    def allows(self, version: Version) -> bool:
        return _OPERATORS[self.operator](version, self.version)

    def __str__(self) -> str:
        return f"{self.operator}{self.version}"


@dataclass(frozen=True)
class Range:
    """Sets of comparators; an empty set allows every version."""

    sets: tuple[tuple[Comparator, ...], ...]

    @classmethod
    def parse(cls, text: str) -> Range:
        """A range from text such as `^1.2 || >=3.0 <4`. Raises RangeError."""
        return cls(tuple(_set(part) for part in text.split("||")))

    def __contains__(self, version: Version) -> bool:
        return any(all(one.allows(version) for one in comparators) for comparators in self.sets)

    def __str__(self) -> str:
        return " || ".join(" ".join(map(str, comparators)) or "*" for comparators in self.sets)


def _set(text: str) -> tuple[Comparator, ...]:
    if match := _HYPHEN.match(text):
        low, high = match.groups()
        return Comparator(">=", _lowest(low)), *_upto(high)
    if not _TERMS.fullmatch(text):
        raise RangeError(f"{text.strip()!r} is no set of comparators")
    found: list[Comparator] = []
    for sign, version in _TERM.findall(text):
        found.extend(_term(sign, version))
    return tuple(found)


def _term(sign: str, text: str) -> tuple[Comparator, ...]:
    known = _known(text)
    if sign == "^":
        return _between(text, _lowest(text).bump("major"))
    if sign == "~":
        return _between(text, _lowest(text).bump("minor" if len(known) > 1 else "major"))
    if sign in ("", "=") and len(known) < 3:
        return _between(text, _lowest(text).bump(("major", "minor")[len(known) - 1])) if known else ()
    if sign == "<=" and len(known) < 3:
        return _upto(text)
    return (Comparator(sign or "=", _lowest(text)),)


def _between(low: str, high: Version) -> tuple[Comparator, Comparator]:
    return Comparator(">=", _lowest(low)), Comparator("<", high)


def _upto(text: str) -> tuple[Comparator, ...]:
    """Up to and with a version that may leave parts out: `2.3` is all of 2.3."""
    return (Comparator("<=", _lowest(text)),)


def _known(text: str) -> tuple[str, ...]:
    """The parts of a version before the first wildcard or the end: `1.x` knows one."""
    parts = text.split("-", maxsplit=1)[0].split(".")
    for number, part in enumerate(parts):
        if part in _WILD:
            return tuple(parts[:number])
    return tuple(parts)


def _lowest(text: str) -> Version:
    """The lowest version of a text that may leave parts out: `1.2` is 1.2.0."""
    known = _known(text)
    try:
        return Version.parse(text if len(known) >= 3 else ".".join((*known, "0", "0", "0")[:3]))
    except VersionError as error:
        raise RangeError(f"{text!r} is no version in a range") from error
