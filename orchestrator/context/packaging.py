"""One history packaged for a prompt as a condition names it. Pure: the same history gives the same bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from orchestrator.context.block import block_of
from orchestrator.context.conditions import CONDITIONS, parse_condition
from orchestrator.context.events import KINDS, Event, History, Kind
from orchestrator.context.receipt import receipt_of
from orchestrator.context.redact import without_keys
from orchestrator.context.select import PolicyName, Profile, by_group, policy_for, select
from orchestrator.context.state import GROUP_OF, Group, reduce
from orchestrator.context.texts import one_line, quoted
from orchestrator.context.tokens import tokens_of

__all__ = ["CONDITIONS", "Packaged", "package", "prompt_of"]

SUMMARY_EACH = 3
"""Events of each kind that a compact summary tells, the last ones."""
SUMMARY_LONGEST = 200
"""Characters of an event that it tells."""


@dataclass(frozen=True)
class Packaged:
    """What a condition makes of a history.

    `text` is what the prompt carries, "" for nothing; `tokens` are its. `snapshot` and `receipt` are the
    files of `stateplane`: the text, None where there is none, and the account of every item. `carried`
    are ids of items by group; under the other conditions those of events, by the group of their kind.
    """

    condition: str
    text: str
    tokens: int
    snapshot: str | None = None
    receipt: str | None = None
    carried: dict[Group, tuple[str, ...]] = field(default_factory=dict)


def package(
    condition: str,
    history: History,
    task_text: str,
    *,
    policy: PolicyName = "auto",
    profile: Profile | None = None,
    without: frozenset[Group] = frozenset(),
    budget: int | None = None,
) -> Packaged:
    """Package `history` for a task. What the condition's name sets goes before `profile` and `budget`.

    Raises InputError for a name that is none, and where the budget does not hold what is required.
    """
    named = parse_condition(condition)
    if named.base != "stateplane":
        told = () if _is_bare(history) and policy in ("auto", "single_shot") else without_keys(history).events
        text, shown = (_transcript if named.base == "transcript_replay" else _summary)(told)
        carried = by_group((GROUP_OF[event.kind], event.id) for event in shown)
        return Packaged(condition, text, tokens_of(text), carried=carried)
    state = reduce(history)
    applies = policy_for(
        policy,
        named.profile or profile,
        state,
        without=named.without | without,
        budget=budget if named.budget is None else named.budget,
    )
    selection = select(state, task_text, applies)
    text = block_of(selection.items, applies.shape.longest) if applies.injects else ""
    return Packaged(
        condition,
        text,
        tokens_of(text),
        snapshot=f"{text}\n" if text else None,
        receipt=receipt_of(condition, without_keys(history), selection),
        carried=selection.carried,
    )


def prompt_of(problem: str, packaged: Packaged) -> str:
    """The prompt of a task: the same for every condition but for what is packaged, and without that the same
    bytes.
    """
    parts = [
        "Resolve the issue below by changing the code of the repository in the working directory.",
        f"## Issue\n\n{problem.strip()}",
    ]
    if packaged.text:
        said = "An earlier session has worked on this issue. This was recorded of it:"
        parts.append(f"## Earlier work\n\n{said}\n\n{packaged.text}")
    return "\n\n".join(parts) + "\n"


def _is_bare(history: History) -> bool:
    """Whether a history says nothing but what its task is: then it is packaged as nothing, in every way."""
    return all(event.kind in ("goal", "goal_done") for event in history)


def _transcript(events: tuple[Event, ...]) -> tuple[str, tuple[Event, ...]]:
    """All events as they came, none judged, with those that are shown."""
    return "\n\n".join(
        f"{_line(event, n)}\n{quoted(event.text)}" for n, event in enumerate(events, 1)
    ), events


def _line(event: Event, number: int) -> str:
    about = ", ".join(filter(None, (one_line(event.key), *map(one_line, event.files))))
    word = f"{'hard ' if event.hard else ''}{_word(event.kind)}"
    return f"[{number}] {event.source}, {word}{f' ({about})' if about else ''}:"


def _summary(events: tuple[Event, ...]) -> tuple[str, tuple[Event, ...]]:
    """The first goal, how many events of each kind there are, and the last of each, cut short."""
    if not events:
        return "", ()
    counts = Counter(event.kind for event in events)
    counted = ", ".join(f"{_word(kind)} {counts[kind]}" for kind in KINDS if counts[kind])
    first = next((event for event in events if event.kind == "goal"), None)
    shown = {event.id: event for event in (*filter(None, (first,)), *_last_of_each(events, first))}
    lines = [f"{len(events)} events: {counted}."]
    for kind in KINDS:
        told = [event for event in shown.values() if event.kind == kind]
        if told:
            lines += ["", f"### {_word(kind).capitalize()}, {len(told)} of {counts[kind]}"]
            lines += [f"- {_short(event)}" for event in told]
    return "\n".join(lines), tuple(event for event in events if event.id in shown)


def _last_of_each(events: tuple[Event, ...], first: Event | None) -> Iterator[Event]:
    for kind in KINDS:
        yield from [event for event in events if event.kind == kind and event is not first][-SUMMARY_EACH:]


def _short(event: Event) -> str:
    key = one_line(event.key)
    text = one_line(event.text, SUMMARY_LONGEST)
    return f"{key}: {text}" if key and key not in text else text


def _word(kind: Kind) -> str:
    return kind.replace("_", " ")
