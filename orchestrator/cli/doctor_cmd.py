"""`cab doctor`: what this machine has, what it lacks, and how to mend that."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from orchestrator.cli.options import json_option
from orchestrator.report.text import print_json

if TYPE_CHECKING:
    from orchestrator.sandbox.doctor import Check

_MARKS = {"ok": "ok", "note": "note", "missing": "MISSING"}
CANNOT_RUN = 2


@click.command()
@json_option
def doctor(as_json: bool) -> None:
    """Say what is there, what is missing and how to mend it.

    Ends with 0 when `cab sweep run` would work here, else with 2. A note marks what works, but less well.
    """
    from dataclasses import asdict

    from orchestrator.sandbox.doctor import Machine, examine

    checks = examine(Machine())
    if as_json:
        print_json([asdict(check) for check in checks], indent=2)
    else:
        for check in checks:
            click.echo(line(check))
    sys.exit(CANNOT_RUN if any(check.state == "missing" for check in checks) else 0)


def line(check: Check) -> str:
    """One check as a line of text."""
    from orchestrator.report.called import as_called

    text = f"{_MARKS[check.state]:8}{check.name:12}{check.found}"
    return f"{text} ({as_called(check.mend)})" if check.mend else text
