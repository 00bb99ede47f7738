"""Files of rows: a JSON list, or JSON lines. What is wrong is told by file, row and instance."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from orchestrator.errors import InputError


def read_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each row with its place: `FILE[3] ID` of a list (from 0), `FILE:3 ID` of lines (from 1).

    Raises InputError where the file cannot be read, or a row is no object.
    """
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {error}", place=str(path), mend="it must be UTF-8 text") from None
    if not text.strip():
        raise InputError("is empty", place=str(path), mend="a JSON list of rows, or a row a line")
    for place, raw in _whole(text, path) if text.lstrip().startswith("[") else _lines(text, path):
        if not isinstance(raw, dict):
            raise InputError("is no object", place=place, mend="a row is a JSON object")
        yield place_of(place, raw), raw


def place_of(place: str, row: dict[str, Any]) -> str:
    """A row's place with its instance, where it names one."""
    name = row.get("instance_id")
    return f"{place} {name}" if isinstance(name, str) and name and name.isprintable() else place


def _whole(text: str, path: Path) -> Iterator[tuple[str, object]]:
    for number, row in enumerate(_decoded(text, str(path))):
        yield f"{path}[{number}]", row


def _lines(text: str, path: Path) -> Iterator[tuple[str, object]]:
    # Not splitlines(): JSON may hold other ends of lines in its strings.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield f"{path}:{number}", _decoded(line, f"{path}:{number}")


def _decoded(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise InputError("is nested too deep", place=place, mend="a row is flat") from None
    except ValueError as error:
        raise InputError(
            f"is no JSON: {error}", place=place, mend="a JSON list of rows, or a row a line"
        ) from None
