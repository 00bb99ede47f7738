"""Small GGUF files: a head without weights."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

CHAT: dict[str, Any] = {
    "general.architecture": "qwen2",
    "tokenizer.ggml.tokens": ["a", "bc", ""],
    "tokenizer.ggml.scores": [1.0, 2.0],
    "general.name": "Tiny Coder 0.5B",
    "qwen2.context_length": 32768,
    "some.flag": True,
    "tokenizer.chat_template": "{{ messages }}",
}


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def typed(value: Any) -> bytes:
    match value:
        case bool():
            return struct.pack("<I?", 7, value)
        case int():
            return struct.pack("<II", 4, value)
        case float():
            return struct.pack("<If", 6, value)
        case str():
            return struct.pack("<I", 8) + text(value)
        case list():
            items = [typed(item) for item in value]
            return (
                struct.pack("<I", 9)
                + items[0][:4]
                + struct.pack("<Q", len(items))
                + b"".join(item[4:] for item in items)
            )
    raise TypeError(value)


def head(pairs: dict[str, Any], *, version: int = 3) -> bytes:
    packed = b"".join(text(key) + typed(value) for key, value in pairs.items())
    return b"GGUF" + struct.pack("<IQQ", version, 0, len(pairs)) + packed


def gguf(path: Path, *, weights: bytes = b"weights", **changes: Any) -> Path:
    """A file whose head is CHAT with `changes` (keys with '.' written '__'; None takes one out)."""
    pairs = CHAT | {key.replace("__", "."): value for key, value in changes.items()}
    path.write_bytes(head({key: value for key, value in pairs.items() if value is not None}) + weights)
    return path
