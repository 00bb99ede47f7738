"""Kinds of fields that a sweep file has."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, PlainSerializer

from orchestrator.errors import InputError
from orchestrator.store.names import check_name

_UNITS = {
    "B": 1,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
}
_SIZE = re.compile(rf"([0-9]+(?:\.[0-9]+)?) ?({'|'.join(_UNITS)})")


def _bytes(size: object) -> object:
    if isinstance(size, str) and (match := _SIZE.fullmatch(size)):
        return int(float(match[1]) * _UNITS[match[2]])
    raise ValueError(f"{size!r} is no size; write a number with a unit, as 4GiB")


def matching(pattern: re.Pattern[str], what: str) -> AfterValidator:
    """A text of this pattern."""

    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(f"{text!r} is no {what}")
        return text

    return AfterValidator(check)


def named(what: str) -> AfterValidator:
    """A name of the matrix."""

    def check(name: str) -> str:
        try:
            return check_name(name, what)
        except InputError as error:
            raise ValueError(f"{error.thing}; {error.mend}") from None

    return AfterValidator(check)


def _condition(name: str) -> str:
    if "/" in name:
        raise ValueError(f"{name!r} holds a '/'; files are named by a condition")
    return name


Condition = Annotated[str, named("condition"), AfterValidator(_condition)]
"""Names a prompt that every task of the sweep has; without conditions a cell gets the task's instruction."""


def distinct(items: tuple[Any, ...]) -> tuple[Any, ...]:
    """No item twice, by its id where it has one."""
    seen = set()
    for item in items:
        name = getattr(item, "id", item)
        if name in seen:
            raise ValueError(f"{name!r} is there twice")
        seen.add(name)
    return items


Size = Annotated[int, BeforeValidator(_bytes), PlainSerializer(lambda size: f"{size}B", return_type=str)]
"""Bytes; in a file, and in a stored spec, a text with its unit."""


class Model(BaseModel):
    """A table of a sweep file: frozen, strict, and unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, defer_build=True)
