"""`endpoints.jsonl` of a sweep: what came of its endpoints' windows, a line for each in each run of it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from orchestrator.errors import StoreError
from orchestrator.gateway.contract import WindowReport
from orchestrator.store.files import store_errors

ENDPOINTS = "endpoints.jsonl"


def note_windows(sweep_dir: Path, reports: Iterable[WindowReport]) -> None:
    """Add what came of one run. Raises StoreError."""
    path = sweep_dir / ENDPOINTS
    lines = "".join(report.model_dump_json() + "\n" for report in reports)
    if lines:
        with store_errors(path), path.open("a", encoding="utf-8") as file:
            file.write(lines)


def read_windows(sweep_dir: Path) -> list[WindowReport]:
    """By endpoint, over all runs of the sweep: sums, and the window at the end of the last.

    A last line that was cut is left out. Raises StoreError where another cannot be read.
    """
    path = sweep_dir / ENDPOINTS
    if not path.exists():
        return []
    with store_errors(path):
        lines = path.read_bytes().split(b"\n")[:-1]
    found: dict[str, WindowReport] = {}
    for number, line in enumerate(lines, 1):
        try:
            new = WindowReport.model_validate_json(line)
        except ValidationError as error:
            mend = "remove the file: only waits are told in it"
            raise StoreError("is no report of an endpoint", place=f"{path}:{number}", mend=mend) from error
        old = found.get(new.endpoint)
        found[new.endpoint] = new if old is None else old.then(new)
    return list(found.values())
