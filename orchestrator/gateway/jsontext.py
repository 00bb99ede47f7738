"""JSON as text: find and replace single members of an object and leave every other byte as it was."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

DEPTH_MAX = 100

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\n\r]*")


@dataclass(frozen=True)
class Member:
    """One member of the outermost object: `start` is where its key begins, `value_start`..`end` is its
    value.
    """

    key: str
    value: Any
    start: int
    value_start: int
    end: int


def members(text: str) -> list[Member]:
    """The members of the JSON object `text`, in order, with where they stand.

    Raises ValueError when `text` is not exactly one JSON object.
    """
    found: list[Member] = []
    at = _expect(text, _skip(text, 0), "{")
    at = _skip(text, at)
    if text[at : at + 1] == "}":
        _expect_end(text, at + 1)
        return found
    while True:
        member = _member(text, _skip(text, at))
        found.append(member)
        at = _skip(text, member.end)
        if text[at : at + 1] == "}":
            _expect_end(text, at + 1)
            return found
        at = _expect(text, at, ",")


def set_members(text: str, found: list[Member], values: dict[str, Any]) -> str:
    """`text` with the given members set: in place where they exist, else added at the end."""
    missing = dict(values)
    parts: list[str] = []
    at = 0
    for member in found:
        if member.key in values:
            parts += [text[at : member.value_start], json.dumps(values[member.key])]
            at = member.end
            missing.pop(member.key, None)
    close = text.rindex("}")
    parts.append(text[at:close])
    if missing:
        added = ",".join(f"{json.dumps(key)}:{json.dumps(value)}" for key, value in missing.items())
        parts.append(f",{added}" if found else added)
    parts.append(text[close:])
    return "".join(parts)


def drop_member(text: str, found: list[Member], key: str) -> str:
    """`text` without the members named `key`, nor the comma that belonged to them."""
    parts: list[str] = []
    at, kept_end = 0, None
    for member, following in zip(found, [*found[1:], None], strict=True):
        if member.key != key:
            kept_end = member.end
        elif kept_end is not None:
            parts.append(text[at:kept_end])
            at = member.end
        else:
            parts.append(text[at : member.start])
            at = following.start if following else member.end
    return "".join([*parts, text[at:]])


def canonical(value: Any) -> str:
    """One text for equal JSON values: sorted keys, no spaces, ASCII only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def deep(value: Any) -> bool:
    """Whether lists and objects stand in each other more than DEPTH_MAX times. Readers of JSON differ in how
    deep they can go, so what is deeper is not stored as JSON.
    """
    level = [value]
    for _ in range(DEPTH_MAX + 1):
        level = [inner for outer in level for inner in _inside(outer) if isinstance(inner, (dict, list))]
        if not level:
            return False
    return True


def storable(value: Any) -> Any:
    """A JSON value as every reader of JSON takes it: halves of characters, which JSON can write but no text
    can hold, are joined where they meet, else replaced.
    """
    if isinstance(value, str):
        return (
            value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        )
    if isinstance(value, list):
        return [storable(inner) for inner in value]
    if isinstance(value, dict):
        return {storable(name): storable(inner) for name, inner in value.items()}
    return value


def utf8(value: Any) -> bytes:
    """JSON as UTF-8. Where it holds half a character, which UTF-8 cannot, all of it is written in ASCII."""
    try:
        return json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(value).encode()


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _member(text: str, start: int) -> Member:
    key, at = _decode(text, start)
    if not isinstance(key, str):
        raise ValueError(f"no key at {start}")
    value_start = _skip(text, _expect(text, _skip(text, at), ":"))
    value, end = _decode(text, value_start)
    return Member(key, value, start, value_start, end)


def _decode(text: str, at: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _expect(text: str, at: int, char: str) -> int:
    if text[at : at + 1] != char:
        raise ValueError(f"expected {char!r} at {at}")
    return at + 1


def _expect_end(text: str, at: int) -> None:
    if _skip(text, at) != len(text):
        raise ValueError(f"more text after the object at {at}")
