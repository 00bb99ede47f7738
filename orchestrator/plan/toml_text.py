"""Values as TOML text, for the settings files of CLIs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


def dump_toml(values: Mapping[str, Any]) -> str:
    """TOML that reads back as `values`: tables, arrays, texts, numbers and truth values."""
    return "\n".join(_lines(values, ())) + "\n"


def _lines(table: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[str]:
    tables = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    plain = {key: value for key, value in table.items() if key not in tables}
    if above and (plain or not tables):
        yield f"[{'.'.join(map(_text, above))}]"
    # Before the tables: a key after a header would be the header's.
    yield from (f"{_text(key)} = {_value(value)}" for key, value in plain.items())
    for key, value in tables.items():
        yield from _lines(value, (*above, key))


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_text(key)} = {_value(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, bool | int | float):
        # As JSON writes them, but for the infinities and NaN, which TOML names in small letters.
        return json.dumps(value).replace("Infinity", "inf").replace("NaN", "nan")
    raise TypeError(f"{type(value).__name__} is no value of a settings file")


def _text(text: str) -> str:
    """A basic string: JSON's, which escapes all that TOML wants escaped but DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
