"""What happened before: the typed events of an earlier session, in order.

A history is the one source of what every condition packages; nothing else of the earlier work reaches a
prompt. Reading is strict, and events are never changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from orchestrator.errors import InputError
from orchestrator.nearest import nearest
from orchestrator.store.files import store_errors

Kind = Literal[
    "goal",
    "goal_done",
    "constraint",
    "constraint_lifted",
    "decision",
    "procedure",
    "file_touched",
    "tool_output",
    "test_failed",
    "test_passed",
    "failure",
    "failure_resolved",
    "safety_note",
    "risk",
    "risk_closed",
    "fact",
    "fact_retracted",
    "message",
    "episode",
]
"""What an event can be. `message` is what user or agent said, `episode` a stretch of work told as one."""

KINDS: tuple[Kind, ...] = get_args(Kind)

Source = Literal["user", "agent", "tool", "harness"]
"""Who an event comes from: trust is decided by it."""

_NEEDS_KEY: tuple[Kind, ...] = (
    *("test_failed", "test_passed", "failure_resolved", "constraint_lifted", "goal_done", "fact_retracted"),
    "risk_closed",
)


class Event(BaseModel):
    """One thing that happened.

    `key` names what it is about over time (a test's id, the key of a constraint, a decision, a path): a later
    event of the same key takes the place of an earlier one, or ends it. `hard` is a constraint that may not
    be broken. `files` are paths in the repository. `at` is a time as in ISO 8601, or "" where none is known:
    order is that of the list.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(min_length=1, max_length=80, pattern=r"^[A-Za-z0-9._:-]+$")
    kind: Kind
    text: str = Field(min_length=1)
    key: str = ""
    source: Source = "agent"
    hard: bool = False
    files: tuple[str, ...] = ()
    at: str = ""

    @model_validator(mode="after")
    def _has_key(self) -> Self:
        if self.kind in _NEEDS_KEY and not self.key:
            raise ValueError(f"an event of kind {self.kind} needs the key of what it is about")
        if self.hard and self.kind != "constraint":
            raise ValueError("only a constraint is hard")
        return self


@dataclass(frozen=True)
class History:
    """The events of earlier work, in order; ids are distinct."""

    events: tuple[Event, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.events)

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    @classmethod
    def of(cls, raw: object, place: str) -> History:
        """A history from decoded JSON: a list of events. Raises InputError that names event and field."""
        if not isinstance(raw, list):
            raise InputError(
                f"is {_word(raw)} and no list of events", place=place, mend="see docs/external.md"
            )
        events = [_event(one, f"{place}[{number}]") for number, one in enumerate(raw)]
        seen: set[str] = set()
        for number, event in enumerate(events):
            if event.id in seen:
                raise InputError(
                    f"the id {event.id!r} stands twice", place=f"{place}[{number}]", mend="give each its own"
                )
            seen.add(event.id)
        return cls(tuple(events))

    @classmethod
    def load(cls, path: Path) -> History:
        """Read a history from a JSON file. Raises InputError for what is none, StoreError where it cannot."""
        with store_errors(path):
            raw = path.read_bytes()
        try:
            found = json.loads(raw)
        except ValueError as error:
            raise InputError(f"is no JSON: {error}", place=str(path), mend="mend the file") from None
        return cls.of(found, str(path))

    def as_json(self) -> list[dict[str, Any]]:
        """The inverse of `of`."""
        return [event.model_dump(mode="json", exclude_defaults=True) for event in self.events]


def _event(raw: object, place: str) -> Event:
    if isinstance(raw, dict) and (kind := raw.get("kind")) not in KINDS:
        raise InputError(f"{kind!r} is no kind of event", place=place, mend=nearest(str(kind), KINDS))
    try:
        return Event.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        said = first["msg"].removeprefix("Value error, ")
        raise InputError(said, place=f"{place}{'.' + field if field else ''}", mend="") from None


def _word(raw: object) -> str:
    return {dict: "an object", str: "a text", type(None): "null"}.get(type(raw), "a number")
