"""What a rule of the integrity axis reports."""

from __future__ import annotations

from typing import Literal

from scorers.evidence import Model

MAX_EVIDENCE = 300


class Finding(Model):
    """One finding. `line` counts from 1: in the old text for what was removed, in the new one for what was
    added.

    `severe` voids the cell; a `note` is shown and has no effect on a number.
    """

    rule: str
    severity: Literal["severe", "note"]
    evidence: str
    path: str | None = None
    line: int | None = None


def severe(rule: str, evidence: str, path: str | None = None, line: int | None = None) -> Finding:
    return Finding(rule=rule, severity="severe", evidence=evidence[:MAX_EVIDENCE], path=path, line=line)


def note(rule: str, evidence: str, path: str | None = None, line: int | None = None) -> Finding:
    return Finding(rule=rule, severity="note", evidence=evidence[:MAX_EVIDENCE], path=path, line=line)
