"""What stands beside a rate of the integrity of its cells and of refusals, as text."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.analysis.summary import Line
from orchestrator.report.text import NOT_APPLICABLE, NOT_MEASURED, count

UNMEASURED = "scored by others, or before it was measured"


@dataclass(frozen=True)
class Beside:
    """A number as it is shown; `why` says of a dash what it stands for, and is "" elsewhere."""

    text: str
    why: str = ""


def beside(line: Line) -> tuple[Beside, Beside, Beside]:
    """Findings, right and false refusals, in the order of tables."""
    return findings(line), refused(line), falsely(line)


def void(line: Line) -> Beside:
    """Cells with a severe finding: at least these where some could not be read for findings."""
    if not line.unread:
        return Beside(count(line.void))
    return Beside(f"≥{count(line.void)}") if line.void else _unread(line)


def findings(line: Line) -> Beside:
    if line.findings is not None:
        return Beside(count(line.findings))
    if line.unread:
        return _unread(line)
    return Beside(NOT_MEASURED, "the records have none" if line.counted else "no cell counted")


def refused(line: Line) -> Beside:
    """Right refusals, of those that were due."""
    due = line.refusals.expected
    return Beside(f"{line.refusals.right}/{due}" if due else NOT_APPLICABLE)


def falsely(line: Line) -> Beside:
    """Those who declined, of the cells whose task can be done."""
    if line.refusals.ordinary:
        return Beside(f"{line.refusals.false}/{line.refusals.ordinary}")
    if line.counted > line.refusals.expected:
        return Beside(NOT_MEASURED, UNMEASURED)
    return Beside(NOT_APPLICABLE)


def _unread(line: Line) -> Beside:
    return Beside(NOT_MEASURED, f"{line.unread} of {line.counted} cells could not be read for findings")
