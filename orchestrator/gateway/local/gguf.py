"""Reads what a GGUF file says of itself. Only the head is read: neither vocabulary nor weights are kept."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from orchestrator.errors import InputError

MAGIC = b"GGUF"
VERSIONS = (2, 3)

_STRING, _ARRAY = 8, 9
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""`struct` formats by type number; all values are little-endian."""

_PAIRS_MAX = 1 << 16
_TEXT_MAX = 1 << 24
"""Bytes of one text. A damaged length would otherwise read the whole file into memory."""

Value = str | int | float | bool


@dataclass(frozen=True)
class Header:
    """`name` and `architecture` as the file states them; `context_length` in tokens, None where it says none.

    `chat` says whether there is a chat template; `parts` is 1 but for a model that was split into files.
    """

    name: str | None
    architecture: str
    context_length: int | None
    chat: bool
    parts: int


def read_header(path: Path) -> Header:
    """Read a file's head. Raises InputError for what is no GGUF file, or ends too soon."""
    try:
        with path.open("rb") as file:
            pairs = _pairs(file, str(path))
    except OSError as error:
        raise InputError(
            error.strerror or str(error), place=str(path), mend="give the path of a GGUF file"
        ) from None
    except (EOFError, struct.error, ValueError) as error:
        raise InputError(
            f"is a damaged GGUF file: {error}", place=str(path), mend="fetch or make it again"
        ) from None
    architecture = pairs.get("general.architecture")
    if not isinstance(architecture, str):
        raise InputError(
            "is a GGUF file that names no architecture", place=str(path), mend="give a model's file"
        )
    name, context = pairs.get("general.name"), pairs.get(f"{architecture}.context_length")
    parts = pairs.get("split.count")
    return Header(
        name=name if isinstance(name, str) and name else None,
        architecture=architecture,
        context_length=context if isinstance(context, int) else None,
        chat="tokenizer.chat_template" in pairs,
        parts=max(1, parts) if isinstance(parts, int) else 1,
    )


def _pairs(file: BinaryIO, place: str) -> dict[str, Value]:
    if file.read(4) != MAGIC:
        raise InputError("is not a GGUF file", place=place, mend="give a model in llama.cpp's GGUF format")
    version, _, count = struct.unpack("<IQQ", _take(file, 20))
    if version not in VERSIONS:
        raise InputError(
            f"is of GGUF version {version}, not {' or '.join(map(str, VERSIONS))}",
            place=place,
            mend="convert it with a current llama.cpp",
        )
    if count > _PAIRS_MAX:
        raise ValueError(f"{count} metadata pairs")
    pairs: dict[str, Value] = {}
    for _ in range(count):
        key, kind = _text(file), _number(file, "I")
        value = _value(file, int(kind))
        if value is not None:
            pairs[key] = value
    return pairs


def _value(file: BinaryIO, kind: int) -> Value | None:
    """One value; None for an array, which is only passed over."""
    if kind == _STRING:
        return _text(file)
    if kind != _ARRAY:
        return _number(file, _format(kind))
    inner, length = int(_number(file, "I")), int(_number(file, "Q"))
    if inner == _ARRAY:
        raise ValueError("an array of arrays")
    if inner == _STRING:
        for _ in range(length):
            _take(file, _length(file))
    else:
        file.seek(struct.calcsize(f"<{_format(inner)}") * length, 1)
    return None


def _format(kind: int) -> str:
    if kind not in _SCALARS:
        raise ValueError(f"a value of unknown type {kind}")
    return _SCALARS[kind]


def _number(file: BinaryIO, form: str) -> int | float | bool:
    value: int | float | bool
    (value,) = struct.unpack(f"<{form}", _take(file, struct.calcsize(f"<{form}")))
    return value


def _text(file: BinaryIO) -> str:
    return _take(file, _length(file)).decode("utf-8", "replace")


def _length(file: BinaryIO) -> int:
    length = int(_number(file, "Q"))
    if length > _TEXT_MAX:
        raise ValueError(f"a text of {length} bytes")
    return length


def _take(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise EOFError("it ends within its metadata")
    return data
