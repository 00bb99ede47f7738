"""How events of a stream are written."""

from __future__ import annotations

import json
from typing import Any


def event(data: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n".encode("utf-8", "surrogatepass")


def named_event(data: dict[str, Any]) -> bytes:
    """With a line for its type."""
    return f"event: {data['type']}\n".encode() + event(data)
