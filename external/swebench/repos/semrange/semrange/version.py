"""One version, and how two compare."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field

_NUMBER = r"(0|[1-9]\d*)"
_IDENTIFIERS = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_VERSION = re.compile(
    rf"v?{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-({_IDENTIFIERS}))?(?:\+({_IDENTIFIERS}))?", re.ASCII
)


class VersionError(ValueError):
    """A text is no version."""


@functools.total_ordering
@dataclass(frozen=True, eq=False)
class Version:
    """`major.minor.patch`, with identifiers of a prerelease and of a build, which does not count."""

    major: int
    minor: int
    patch: int
    prerelease: tuple[str, ...] = ()
    build: tuple[str, ...] = field(default=())

    @classmethod
    def parse(cls, text: str) -> Version:
        """A version from text such as `1.4.0-rc.1+5c2`; a leading `v` is dropped. Raises VersionError."""
        match = _VERSION.fullmatch(text.strip())
        if match is None:
            raise VersionError(f"{text!r} is no version (major.minor.patch)")
        major, minor, patch, prerelease, build = match.groups()
        return cls(int(major), int(minor), int(patch), _split(prerelease), _split(build))

    @property
    def release(self) -> tuple[int, int, int]:
        return self.major, self.minor, self.patch

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Version):
            return NotImplemented
        return (self.release, self.prerelease) == (other.release, other.prerelease)

    def __hash__(self) -> int:
        return hash((self.release, self.prerelease))

    def __lt__(self, other: Version) -> bool:
        if self.release != other.release:
            return self.release < other.release
        if not self.prerelease or not other.prerelease:
            return bool(self.prerelease) and not other.prerelease
        return self.prerelease < other.prerelease

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self.prerelease:
            text += f"-{'.'.join(self.prerelease)}"
        return f"{text}+{'.'.join(self.build)}" if self.build else text

    def bump(self, part: str) -> Version:
        """The next release: `major`, `minor` or `patch` goes up and what is below it back to 0."""
        if part == "major":
            return Version(self.major + 1, 0, 0)
        if part == "minor":
            return Version(self.major, self.minor + 1, 0)
        if part == "patch":
            return Version(self.major, self.minor, self.patch + 1)
        raise ValueError(f"{part!r} is none of major, minor, patch")


def _split(text: str | None) -> tuple[str, ...]:
    return tuple(text.split(".")) if text else ()
