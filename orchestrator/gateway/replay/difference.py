"""Where two requests differ: JSON paths and the two values, short enough to be read."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from orchestrator.gateway.contract import ValueDifference
from orchestrator.gateway.jsontext import canonical

SHOWN_MAX = 20
"""Places that are shown; of more, their number is told."""

VALUE_MAX = 600
"""Characters of a value that are shown, from where it begins to differ."""

_LEAD = 40
_ABSENT = object()

Place = tuple[str, Any, Any]


def differences(recorded: Any, sent: Any) -> tuple[tuple[ValueDifference, ...], int]:
    """The first SHOWN_MAX places in which two values differ, and how many more there are."""
    places = _places(recorded, sent, "$")
    shown = tuple(_shown(*place) for place in islice(places, SHOWN_MAX))
    return shown, sum(1 for _ in places)


def distance(recorded: Any, sent: Any) -> int:
    """How unlike two values are: the characters of what differs, of texts those of the lines that do."""
    return sum(_unlike(old, new) for _, old, new in _places(recorded, sent, "$"))


def _unlike(old: Any, new: Any) -> int:
    if isinstance(old, str) and isinstance(new, str):
        # At least 1: a line's end alone is a difference too.
        return max(1, sum(map(len, _cut(old, new))))
    return _size(old) + _size(new)


def _size(value: Any) -> int:
    return 0 if value is _ABSENT else len(canonical(value))


def _places(recorded: Any, sent: Any, path: str) -> Iterator[Place]:
    if isinstance(recorded, dict) and isinstance(sent, dict):
        for name in [*recorded, *(name for name in sent if name not in recorded)]:
            yield from _places(recorded.get(name, _ABSENT), sent.get(name, _ABSENT), f"{path}.{name}")
    elif isinstance(recorded, list) and isinstance(sent, list):
        for index in range(max(len(recorded), len(sent))):
            old = recorded[index] if index < len(recorded) else _ABSENT
            new = sent[index] if index < len(sent) else _ABSENT
            yield from _places(old, new, f"{path}[{index}]")
    elif type(recorded) is not type(sent) or recorded != sent:
        yield path, recorded, sent


def _shown(path: str, recorded: Any, sent: Any) -> ValueDifference:
    if isinstance(recorded, str) and isinstance(sent, str):
        old, new = _differing_lines(recorded, sent)
        return ValueDifference(path=path, recorded=old, sent=new)
    return ValueDifference(path=path, recorded=_value(recorded), sent=_value(sent))


def _value(value: Any) -> str | None:
    if value is _ABSENT:
        return None
    text = value if isinstance(value, str) else canonical(value)
    return text if len(text) <= VALUE_MAX else f"{text[:VALUE_MAX]}…"


def _differing_lines(old: str, new: str) -> tuple[str, str]:
    """The lines of `_cut`, each from near where it begins to differ."""
    cut = _cut(old, new)
    same = next(
        (at for at, (one, other) in enumerate(zip(*cut, strict=False)) if one != other), min(map(len, cut))
    )
    start = same - _LEAD if same > 2 * _LEAD else 0
    shown = [f"{'…' if start else ''}{text[start : start + VALUE_MAX]}" for text in cut]
    return shown[0] + ("…" if len(cut[0]) > start + VALUE_MAX else ""), shown[1] + (
        "…" if len(cut[1]) > start + VALUE_MAX else ""
    )


def _cut(old: str, new: str) -> tuple[str, str]:
    """Of two texts the lines from the first that differs to the last."""
    before, after = old.split("\n"), new.split("\n")
    shorter = min(len(before), len(after))
    head = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    rest = shorter - head
    tail = next((at for at in range(rest) if before[-1 - at] != after[-1 - at]), rest)
    return "\n".join(before[head : len(before) - tail]), "\n".join(after[head : len(after) - tail])
