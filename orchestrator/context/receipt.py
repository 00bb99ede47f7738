"""The receipt of a packaged state, for people: every item, whether a prompt carries it, and why.

It can be made again from history and policy. What was held back stands in it by the rules it breaks and a
digest; every other event with its text, so that nothing of the earlier work is lost on the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from orchestrator.context.events import Event, History
from orchestrator.context.select import Decision, Selection
from orchestrator.context.texts import cell, one_line, quoted


def receipt_of(condition: str, history: History, selection: Selection) -> str:
    """`receipt.md`. `history` is the one without keys that the selection's state was made of."""
    included = [decision for decision in selection.decisions if decision.included]
    held = [decision for decision in selection.decisions if decision.item.status == "quarantined"]
    others = [one for one in selection.decisions if not one.included and one.item.status != "quarantined"]
    parts = [f"# Receipt of {condition}", _head(selection, len(history.events))]
    title = "In the prompt" if selection.policy.injects else "Selected, not in the prompt"
    if included:
        parts.append(f"## {title}\n\n{_table(included)}")
    if others:
        parts.append(f"## Left out\n\n{_table(others)}")
    if held:
        parts.append(f"## Held back\n\n{_held(held)}")
    if history:
        parts.append(f"## Events\n\n{_events(history, selection)}")
    return "\n\n".join(parts) + "\n"


def _head(selection: Selection, events: int) -> str:
    policy = selection.policy
    named = f"{policy.name} (asked for: {policy.asked})" if policy.asked != policy.name else policy.name
    lines = [
        f"- policy: {named}",
        f"- profile: {policy.profile}",
        f"- budget: {'none' if policy.budget is None else f'{policy.budget} tokens'}",
        f"- selected: {selection.tokens} tokens, estimated",
        f"- in the prompt: {selection.tokens if policy.injects else 0} tokens",
        f"- events: {events}, items: {len(selection.decisions)}",
    ]
    if policy.without:
        lines.append(f"- left out by the condition: {', '.join(sorted(policy.without))}")
    if policy.why:
        lines.append(f"- nothing is in the prompt: {policy.why}")
    return "\n".join(lines)


def _table(decisions: Iterable[Decision]) -> str:
    rows = [
        "| item | group | about | why | tokens | score | of which |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in decisions:
        terms = ", ".join(f"{name} {value:g}" for name, value in one.breakdown.items())
        about = cell(one.item.key or one.item.text)
        score = f"{one.score:g}" if one.breakdown else "–"
        row = (one.item.id, one.item.group, about, cell(one.reason), str(one.tokens), score, terms or "–")
        rows.append(f"| {' | '.join(row)} |")
    return "\n".join(rows)


def _held(decisions: Iterable[Decision]) -> str:
    rows = ["| item | group | from | rules | SHA-256 begins |", "| --- | --- | --- | --- | --- |"]
    rows += [
        f"| {item.id} | {item.group} | {item.source} | {', '.join(item.rules)} | {item.digest} |"
        for item in (one.item for one in decisions)
    ]
    return "\n".join(rows)


def _events(history: History, selection: Selection) -> str:
    items = [one.item for one in selection.decisions]
    withheld = {event for item in items if item.status == "quarantined" for event in item.events}
    return "\n\n".join("\n".join(_event(event, event.id in withheld)) for event in history)


def _event(event: Event, withheld: bool) -> Iterator[str]:
    about = "" if withheld else ", ".join(filter(None, (one_line(event.key), *map(one_line, event.files))))
    yield f"### {event.id}: {event.source}, {event.kind.replace('_', ' ')}{', hard' if event.hard else ''}"
    if about:
        yield f"About: {about}"
    yield "Held back." if withheld else quoted(event.text)
