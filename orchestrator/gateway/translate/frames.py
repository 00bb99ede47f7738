"""How events of a stream are written."""

from __future__ import annotations

from typing import Any

from orchestrator.gateway.jsontext import utf8


def event(data: dict[str, Any]) -> bytes:
    return b"data: " + utf8(data) + b"\n\n"


def named_event(data: dict[str, Any]) -> bytes:
    """With a line for its type."""
    return f"event: {data['type']}\n".encode() + event(data)
