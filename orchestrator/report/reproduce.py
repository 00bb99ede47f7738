"""The command that runs one cell again in a single container, as people read it."""

from __future__ import annotations

from orchestrator.paths import IMAGES_LOCK
from orchestrator.report.called import as_called
from orchestrator.report.text import safe_line
from orchestrator.store.record import CellRecord, Reproduce
from orchestrator.store.reproduce import as_pushed

MAX_COMMAND = 8_000


def reproduced(record: CellRecord) -> Reproduce | None:
    """A record's command as of now: an image may have been pushed since. None where it has none."""
    return as_pushed(record.reproduce, IMAGES_LOCK) if record.reproduce else None


def one_container(record: CellRecord) -> str | None:
    """The command with what introduces it; None where the record has nothing to say of it."""
    found = reproduced(record)
    if found is None:
        return None
    if found.command is None:
        return f"run it in one container: {as_called(str(found.note))}"
    note = f" ({found.note})" if found.note else ""
    return f"run it in one container, without cab{note}:\n  {safe_line(found.command, MAX_COMMAND)}"
