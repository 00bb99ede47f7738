"""Which paths of a workdir a task expects to change, which are tests, and which are documents."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from scorers.evidence import TaskFacts

_TEST_DIRECTORIES = {"test", "tests", "spec", "__tests__", "__snapshots__", "testdata"}
_TEST_NAME = re.compile(
    r"(test_.+|.+_tests?|tests?)\.(py|rs|go|c|h|cc|cpp|cxx|hpp|rb|sh|[cm]?[tj]sx?)"
    r"|.+[._-](test|spec)\.[a-z]+|(.+(Tests?|TestCase|[a-z0-9]IT)|Test[A-Z0-9]\w*)\.(java|kt|cs)|conftest\.py",
)
_DOCUMENT_SUFFIXES = {".md", ".markdown", ".rst", ".adoc", ".txt"}
_NOT_DOCUMENTS = re.compile(
    r"(requirements|constraints).*\.txt|CMakeLists\.txt|robots\.txt|.*lock.*\.txt", re.I
)
_BARE_DOCUMENT = re.compile(r"[A-Z][A-Z_-]+")
_BARE_NOT_DOCUMENTS = {
    "BUILD",
    "WORKSPACE",
    "MODULE",
    "JUSTFILE",
    "MAKEFILE",
    "GEMFILE",
    "RAKEFILE",
    "DOCKERFILE",
}


class Globs:
    """A set of gitignore-style patterns."""

    def __init__(self, patterns: Iterable[str]) -> None:
        # Imported here: a command that matches no path need not wait for it.
        from pathspec import GitIgnoreSpec

        self._spec = GitIgnoreSpec.from_lines(list(patterns))

    def __contains__(self, path: str) -> bool:
        return self._spec.match_file(path)


def expected_paths(task: TaskFacts) -> Globs:
    """What the ticket asks to change, or allows to."""
    return Globs([*task.ground_truth_files, *task.allowed_files])


def is_test(path: str) -> bool:
    """Whether a path is a test by the customs of its language."""
    pure = PurePosixPath(path)
    in_tests = bool(_TEST_DIRECTORIES.intersection(pure.parts[:-1]))
    return in_tests or _TEST_NAME.fullmatch(pure.name) is not None


def is_document(path: str) -> bool:
    """Whether a path is prose: by its suffix, or a bare upper-case name such as `NOTES`."""
    pure = PurePosixPath(path)
    if pure.suffix.lower() in _DOCUMENT_SUFFIXES:
        return _NOT_DOCUMENTS.fullmatch(pure.name) is None
    return _BARE_DOCUMENT.fullmatch(pure.name) is not None and pure.name not in _BARE_NOT_DOCUMENTS
