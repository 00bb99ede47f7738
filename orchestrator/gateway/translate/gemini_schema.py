"""Gemini's own form of schemas as JSON schema."""

from __future__ import annotations

from typing import Any

_COUNTS = ("minItems", "maxItems", "minProperties", "maxProperties", "minLength", "maxLength")
"""Written as texts on this wire, since they are 64-bit numbers."""

_OWN = ("propertyOrdering", "property_ordering", "nullable", "example")


def json_schema(schema: Any) -> Any:
    """Types are in upper case there, `nullable` is a member, counts are texts."""
    if not isinstance(schema, dict):
        return schema
    made: dict[str, Any] = {}
    for name, value in schema.items():
        if name in _OWN:
            continue
        if name == "type" and isinstance(value, str):
            made["type"] = value.lower()
        elif name == "properties" and isinstance(value, dict):
            made["properties"] = {key: json_schema(inner) for key, inner in value.items()}
        elif name == "items":
            made["items"] = json_schema(value)
        elif name in ("anyOf", "any_of") and isinstance(value, list):
            made["anyOf"] = [json_schema(inner) for inner in value]
        elif name in _COUNTS and isinstance(value, str) and value.isdecimal():
            made[name] = int(value)
        else:
            made[name] = value
    if schema.get("nullable") is True and isinstance(made.get("type"), str):
        made["type"] = [made["type"], "null"]
    return made
