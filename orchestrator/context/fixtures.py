"""Fixtures of the continuation eval: an interrupted session, the task after it, and what has to survive.

An expectation says how it is recognised in a text: a pattern that any honest packaging of the session leaves
standing, as it is made of the session's own words. None may ask for what the session never said.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orchestrator.context.events import Event, History
from orchestrator.errors import InputError
from orchestrator.paths import EXTERNAL
from orchestrator.store.files import store_errors

Measure = Literal[
    "constraints",
    "active_failures",
    "resolved_failures",
    "risky",
    "decisions",
    "procedures",
    "files",
    "goals",
    "facts",
    "warnings",
    "superseded",
]
"""What is expected of a text: `risky` must be absent, `resolved_failures` not read as open, `superseded` not
as in force, all others must be there.
"""

MEASURES: tuple[Measure, ...] = get_args(Measure)
FIXTURES = EXTERNAL / "continuation"
HELD_OUT = FIXTURES / "held-out"
"""Fixtures that no rule of packaging was changed by; read when they are named alone."""


class Expectation(BaseModel):
    """`match` recognises it in a text whose white space is single spaces, whatever the case.

    `by`, of what is superseded alone, recognises what took its place.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    what: str = Field(min_length=1)
    match: re.Pattern[str]
    by: re.Pattern[str] | None = None


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str = Field(min_length=1)
    about: str = Field(min_length=1)
    task: str = Field(min_length=1)
    expect: dict[Measure, tuple[Expectation, ...]]
    events: list[Any]


@dataclass(frozen=True)
class Fixture:
    """One interrupted session. `task` is what the next session is asked, `expect` by measure, none empty."""

    name: str
    title: str
    about: str
    task: str
    history: History
    expect: Mapping[Measure, tuple[Expectation, ...]]


def load_fixtures(directory: Path = FIXTURES) -> tuple[Fixture, ...]:
    """All fixtures of a directory, by name. Raises InputError where there is none or one is wrong."""
    with store_errors(directory):
        paths = sorted(path for path in directory.iterdir() if path.suffix == ".json")
    if not paths:
        raise InputError("no fixture is there", place=str(directory), mend="name a directory of .json files")
    return tuple(load_fixture(path) for path in paths)


def load_fixture(path: Path) -> Fixture:
    """One fixture. Raises InputError that names file and field, StoreError where it cannot be read."""
    with store_errors(path):
        raw = path.read_bytes()
    try:
        found = _File.model_validate(json.loads(raw))
    except ValidationError as error:
        first = error.errors()[0]
        place = f"{path}: {'.'.join(map(str, first['loc']))}".removesuffix(": ")
        raise InputError(first["msg"], place=place, mend="see docs/external.md, Continuation eval") from None
    except ValueError as error:
        raise InputError(f"is no JSON: {error}", place=str(path), mend="mend the file") from None
    history = History.of(found.events, f"{path}: events")
    _supported(found.expect, history, path)
    expect = {measure: found.expect[measure] for measure in MEASURES if found.expect.get(measure)}
    return Fixture(path.stem, found.title, found.about, found.task, history, expect)


def _supported(expect: Mapping[Measure, tuple[Expectation, ...]], history: History, path: Path) -> None:
    """Every pattern has an event to be found in: else the expectation could not be met, or not be missed."""
    said = [one_line(_words(event)) for event in history]
    for measure, wanted in expect.items():
        for number, one in enumerate(wanted):
            place = f"{path}: expect.{measure}.{number}"
            if one.by is not None and measure != "superseded":
                raise InputError("only what is superseded has a `by`", place=place, mend="leave it out")
            for pattern in filter(None, (one.match, one.by)):
                if not any(re.search(pattern.pattern, text, re.IGNORECASE) for text in said):
                    raise InputError(
                        f"no event holds {pattern.pattern!r}", place=place, mend="mend the pattern"
                    )


def _words(event: Event) -> str:
    return " ".join((event.key, event.text, *event.files))


def one_line(text: str) -> str:
    """A text with single spaces as its only white space."""
    return " ".join(text.split())
