"""Plain data of Python, as JSON and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def pack(value: Any, number_of: Callable[[object], int]) -> object:
    """JSON that keeps Python's types apart. What is no plain data goes as the number that it is kept by."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind in (list, tuple, set, frozenset):
        return {kind.__name__: [pack(item, number_of) for item in value]}
    if kind is dict:
        return {"dict": [[pack(part, number_of) for part in item] for item in value.items()]}
    if kind in (bytes, float):
        return {kind.__name__: value.hex()}
    return {"object": number_of(value)}


def unpack(said: Any, object_of: Callable[[int], object]) -> Any:
    """The value that `pack` made `said` of."""
    if not isinstance(said, dict):
        return said
    [(kind, parts)] = said.items()
    if kind == "object":
        return object_of(parts)
    if kind in ("bytes", "float"):
        return bytes.fromhex(parts) if kind == "bytes" else float.fromhex(parts)
    if kind == "dict":
        return {unpack(key, object_of): unpack(value, object_of) for key, value in parts}
    items = [unpack(part, object_of) for part in parts]
    return {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}[kind](items)
