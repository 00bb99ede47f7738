"""Session logs of coding agents on this machine, read as histories.

What is read is what the log says, by fixed rules and without a model: the same log gives the same history.
A line of a type that is not known is counted, never guessed at.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from orchestrator.context.importers.claude_code import ClaudeCode
from orchestrator.context.importers.codex import Codex
from orchestrator.context.importers.session import Imported, Session
from orchestrator.errors import InputError
from orchestrator.nearest import nearest
from orchestrator.store.files import store_errors

__all__ = ["IMPORTERS", "Imported", "import_log"]


class Importer(Protocol):
    """Takes the lines of one log, in order, into the session that it was made with."""

    def __init__(self, session: Session) -> None: ...

    def line(self, line: dict[str, Any]) -> None: ...


IMPORTERS: Mapping[str, type[Importer]] = {"codex": Codex, "claude-code": ClaudeCode}
"""By the name of the CLI."""


def import_log(cli: str, path: Path) -> Imported:
    """The session of a log file. Raises InputError where the CLI is not known or the file is no log of it."""
    if cli not in IMPORTERS:
        raise InputError(f"no session logs of {cli!r} can be read", place="", mend=nearest(cli, IMPORTERS))
    with store_errors(path):
        raw = path.read_bytes()
    session = Session()
    importer = IMPORTERS[cli](session)
    for text in raw.decode("utf-8", "replace").split("\n"):
        if not text.strip():
            continue
        session.lines += 1
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            line = None
        if isinstance(line, dict):
            importer.line(line)
        else:
            session.broken += 1
    found = session.imported()
    if not found.history:
        raise InputError(
            f"holds no session of {cli}: {found.lines} lines, of which {found.broken} are no JSON object and "
            f"{sum(found.unknown.values())} of a type that is not known",
            place=str(path),
            mend="give the .jsonl file of one session",
        )
    return found
