"""What the harness says of itself as it runs, without the directories of this machine and without keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from orchestrator.context.redact import redact
from orchestrator.store.files import store_errors, write_durably

OUTPUT = "output.log"
"""What one call of the harness printed."""

_LOGS = (OUTPUT, "logs/run_evaluation/*/run.json", "logs/run_evaluation/*/*/*/run_instance.log")
"""What tells where it ran. What tests printed is a container's, and the rest is read as data."""


def clean(directory: Path, places: Mapping[str, Path]) -> None:
    """Write the logs of one call anew, with the names of `places` (such as `{out}`) instead of their paths.

    The harness must have ended. Raises StoreError.
    """
    names = dict(_by_length(places))
    for path in sorted(path for pattern in _LOGS for path in directory.glob(pattern)):
        with store_errors(path):
            raw = path.read_bytes()
            told = raw.decode("utf-8", "replace")
            for place, name in names.items():
                told = told.replace(place, name)
            if (cleaned := redact(told).encode()) != raw:
                write_durably(path, cleaned)


def _by_length(places: Mapping[str, Path]) -> Iterator[tuple[str, str]]:
    """Each path as it is given and as it is really, the longest first: one may lie inside another."""
    found = {str(form): name for name, path in places.items() for form in (path.resolve(), path.absolute())}
    # `/` as somebody's home is in every path.
    yield from sorted(
        ((path, name) for path, name in found.items() if path != "/"), key=lambda it: -len(it[0])
    )
