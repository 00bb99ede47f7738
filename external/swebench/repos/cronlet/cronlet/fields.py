"""The five fields of an expression, each parsed into the set of numbers that it stands for."""

from __future__ import annotations

from dataclasses import dataclass

from cronlet.errors import CronError

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


@dataclass(frozen=True)
class Kind:
    """What a field may hold: numbers from `low` to `high`, and names for the first ones."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()


KINDS = (
    Kind("minute", 0, 59),
    Kind("hour", 0, 23),
    Kind("day of month", 1, 31),
    Kind("month", 1, 12, MONTHS),
    Kind("day of week", 0, 6, DAYS),
)


@dataclass(frozen=True)
class Field:
    """A parsed field. `restricted` is False for `*` alone, which asks nothing."""

    kind: Kind
    text: str
    values: frozenset[int]

    @property
    def restricted(self) -> bool:
        return self.text != "*"

    def __contains__(self, number: int) -> bool:
        return number in self.values


def parse_field(text: str, kind: Kind) -> Field:
    """A field from its text, such as `1-5`, `*/15` or `mon,wed`. Raises CronError."""
    values: set[int] = set()
    for part in text.split(","):
        values.update(_part(part, kind))
    return Field(kind, text, frozenset(values))


def _part(text: str, kind: Kind) -> range:
    body, slash, step_text = text.partition("/")
    step = _step(step_text, kind) if slash else 1
    if body == "*":
        return range(kind.low, kind.high + 1, step)
    first, dash, last = body.partition("-")
    low = _number(first, kind)
    if dash:
        high = _number(last, kind)
    else:
        high = kind.high if slash else low
    if high < low:
        raise CronError(f"{kind.name}: {body!r} runs backwards")
    return range(low, high + 1, step)


def _step(text: str, kind: Kind) -> int:
    if not text.isdigit() or int(text) == 0:
        raise CronError(f"{kind.name}: {text!r} is no step")
    return int(text)


def _number(text: str, kind: Kind) -> int:
    name = text.lower()
    if name in kind.names:
        return kind.names.index(name) + kind.low
    if not text.isdigit():
        raise CronError(f"{kind.name}: {text!r} is no number")
    number = int(text)
    if not kind.low <= number <= kind.high:
        raise CronError(f"{kind.name}: {number} is not from {kind.low} to {kind.high}")
    return number
