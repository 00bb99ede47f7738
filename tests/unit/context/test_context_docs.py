"""docs/external.md: its tables are those of the code, and its examples work."""

from __future__ import annotations

import json
import re
from pathlib import Path

from orchestrator.context.conditions import parse_condition
from orchestrator.context.events import KINDS, History
from orchestrator.context.packaging import SUMMARY_EACH, SUMMARY_LONGEST
from orchestrator.context.quarantine import RULES
from orchestrator.context.select import FILES_WEIGHT, GROUP_WEIGHTS, POLICIES, RECENCY_WEIGHT, SHAPES
from orchestrator.context.state import GROUP_OF, GROUPS

DOC = (Path(__file__).resolve().parents[3] / "docs" / "external.md").read_text("utf-8")


def table(name: str) -> list[tuple[str, ...]]:
    """The rows of a marked table, without its head, and code as text."""
    body = DOC.partition(f"<!-- by {name} -->")[2].partition("<!-- end -->")[0]
    rows = [line.replace("`", "").strip("| ").split(" | ") for line in body.strip().splitlines()]
    return [tuple(row) for row in rows[2:]]


def test_kinds() -> None:
    assert [row[:2] for row in table("kind")] == [(kind, GROUP_OF[kind]) for kind in KINDS]


def test_rules() -> None:
    assert table("rule") == list(RULES.items())


def test_weights() -> None:
    assert table("weight") == [(group, f"{GROUP_WEIGHTS[group]:g}") for group in GROUPS]
    assert (RECENCY_WEIGHT, FILES_WEIGHT) == (0.5, 0.5)


def test_profiles() -> None:
    for name, groups, tokens, characters, injected in table("profile"):
        shape = SHAPES[name]
        told = {"none": set(), "all": set(GROUPS)}.get(groups, set(groups.split(", ")))
        assert told == shape.groups
        assert tokens == ("any" if shape.budget is None else str(shape.budget))
        assert characters == ("all" if shape.longest is None else str(shape.longest))
        assert (injected == "no") == (name in ("none", "receipt"))
    assert [row[0] for row in table("profile")] == list(SHAPES)


def test_policies_are_all_explained() -> None:
    body = DOC.partition("### Policies and profiles")[2].partition("<!--")[0]
    assert re.findall(r"^\| `(\w+)`", body, re.MULTILINE) == list(POLICIES)


def test_the_summary_is_as_long_as_told() -> None:
    assert (SUMMARY_EACH, SUMMARY_LONGEST) == (3, 200)
    assert "the last three of each kind, each in 200 characters" in DOC


def test_examples() -> None:
    events = DOC.partition("```json\n")[2].partition("```")[0]
    assert len(History.of(json.loads(events), "docs").events) == 2
    names = set(re.findall(r"`(stateplane-\w+(?:-\w+)*)`", DOC))
    assert len(names) >= 5
    for name in names:
        parse_condition(name)
