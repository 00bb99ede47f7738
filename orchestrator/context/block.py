"""The state as a model sees it: a heading for each group, a line or a quote for each item."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from orchestrator.context.state import GROUPS, Group, Item
from orchestrator.context.texts import clipped, one_line, plain, quoted

HEADINGS: Mapping[Group, str] = MappingProxyType(
    {
        "constraints": "Constraints",
        "active_goals": "Goals",
        "open_failures": "Open failures",
        "resolved_failure_notes": "Failures already resolved",
        "decisions": "Decisions made",
        "procedures": "Procedures",
        "touched_files": "Files touched",
        "tool_evidence": "Tool output",
        "safety_notes": "Safety notes",
        "risks": "Risks",
        "generic_facts": "Facts",
        "episodes": "Earlier stretches of work",
    }
)

_WHOLE: frozenset[Group] = frozenset(("constraints", "safety_notes"))
"""Groups whose texts are never cut."""


def heading(group: Group) -> str:
    """The line above the items of a group."""
    return f"### {HEADINGS[group]}"


def lines_of(item: Item, longest: int | None) -> str:
    """An item as its group lists it; a text of more than `longest` characters is cut in its middle."""
    text = plain(item.text)
    if longest is not None and item.group not in _WHOLE:
        text = clipped(text, longest)
    key = one_line(item.key)
    others = [name for file in item.files if (name := one_line(file)) not in text and name != key]
    head = "[hard] " if item.hard else ""
    head += f"{key}: " if key and not re.search(rf"(?<!\w){re.escape(key)}(?!\w)", text) else ""
    tail = f" ({', '.join(others)})" if others else ""
    first, *rest = text.split("\n")
    return "\n".join((f"- {head}{first}{tail}", *([quoted("\n".join(rest), "  > ")] if rest else [])))


def block_of(items: Iterable[Item], longest: int | None) -> str:
    """All items by group, in the order of groups and, in each, of what happened; "" without any."""
    by_group: dict[Group, list[Item]] = {}
    for item in items:
        by_group.setdefault(item.group, []).append(item)
    parts = (
        "\n".join((heading(group), *(lines_of(item, longest) for item in by_group[group])))
        for group in GROUPS
        if group in by_group
    )
    return "\n\n".join(parts)
