"""What an earlier session came to: its events, reduced to the state they left.

One item for every event that was taken up; a later event of the same key takes an item's place or ends it, by
the table `_REDUCERS`. Nothing is thrown away: what no longer holds stays, with the reason, for the receipt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Literal, get_args

from orchestrator.context.events import Event, History, Kind, Source
from orchestrator.context.quarantine import (
    TRUSTED,
    digest_of,
    risks_of,
    risks_of_event,
    said_of,
)
from orchestrator.context.redact import without_keys

Group = Literal[
    "constraints",
    "active_goals",
    "open_failures",
    "resolved_failure_notes",
    "decisions",
    "procedures",
    "touched_files",
    "tool_evidence",
    "safety_notes",
    "risks",
    "generic_facts",
    "episodes",
]

GROUPS: tuple[Group, ...] = get_args(Group)

Status = Literal["active", "resolved", "superseded", "quarantined"]


@dataclass(frozen=True)
class Item:
    """One thing that is known of the earlier work.

    `id` is that of its event (of a note about content held back, `held-back:` and a number). `text` never
    holds a key, and never content that was held back. `events` are its own and what ended it, `last` the
    index of the last of them, `note` why it is no longer active; `rules` are those that a quarantined
    one's content breaks, `digest` names that content.
    """

    id: str
    group: Group
    key: str
    text: str
    status: Status
    source: Source
    hard: bool = False
    files: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    last: int = 0
    note: str = ""
    rules: tuple[str, ...] = ()
    digest: str = ""


@dataclass(frozen=True)
class State:
    """Items in the order of their events, notes about held-back content last."""

    items: tuple[Item, ...] = ()
    length: int = 0
    """Events that it was made of."""

    def of(self, group: Group) -> tuple[Item, ...]:
        """The active items of a group."""
        return tuple(item for item in self.items if item.group == group and item.status == "active")

    @property
    def active(self) -> tuple[Item, ...]:
        return tuple(item for item in self.items if item.status == "active")


GROUP_OF: Mapping[Kind, Group] = MappingProxyType(
    {
        "goal": "active_goals",
        "goal_done": "active_goals",
        "constraint": "constraints",
        "constraint_lifted": "constraints",
        "decision": "decisions",
        "procedure": "procedures",
        "file_touched": "touched_files",
        "tool_output": "tool_evidence",
        "test_failed": "open_failures",
        "test_passed": "resolved_failure_notes",
        "failure": "open_failures",
        "failure_resolved": "resolved_failure_notes",
        "safety_note": "safety_notes",
        "risk": "risks",
        "risk_closed": "risks",
        "fact": "generic_facts",
        "fact_retracted": "generic_facts",
        "message": "episodes",
        "episode": "episodes",
    }
)
"""Where an event of a kind belongs."""

HELD_BACK = "held-back:"
"""How the ids of notes about held-back content begin."""

# What only people and the harness set, and only they take back.
_PROTECTED: frozenset[Group] = frozenset(("constraints", "safety_notes", "risks"))
_OF_TESTS: tuple[Group, ...] = ("open_failures", "resolved_failure_notes", "tool_evidence")
# What a tool does not set: its output may claim to, and is evidence then.
_NOT_OF_TOOLS: frozenset[Kind] = frozenset(
    ("goal", "goal_done", "constraint", "constraint_lifted", "decision", "safety_note")
)


# Several conditions of one history are packaged one after another.
@lru_cache(maxsize=4)
def reduce(history: History) -> State:
    """The state that `history` left: a function of its events alone. Keys are taken out of them first."""
    made = _Making()
    for number, (event, told) in enumerate(zip(history, without_keys(history), strict=True)):
        rules = risks_of_event(event)
        made.take(told, number, rules, digest_of(told.text))
    return State((*made.items, *made.notes()), len(history.events))


@dataclass
class _Making:
    """A state in the making."""

    items: list[Item] = field(default_factory=list)
    _active: dict[tuple[Group, str], set[int]] = field(default_factory=dict)
    """Places of active items by group and what they are about: their key and their id."""

    def take(self, event: Event, number: int, rules: tuple[str, ...], digest: str) -> None:
        if rules:
            self._hold_back(event, number, rules, digest)
        elif event.source == "tool" and event.kind in _NOT_OF_TOOLS:
            said = f"a tool sets no {event.kind}: taken as evidence"
            self._add(event, number, "tool_evidence", note=said)
        else:
            _REDUCERS[event.kind](self, event, number)

    def _hold_back(self, event: Event, number: int, rules: tuple[str, ...], digest: str) -> None:
        """Keep nothing of the content. That a test or a step failed still counts, unless its key is risky."""
        fails = event.kind in ("test_failed", "failure") and not risks_of(event.key)
        bare = event.model_copy(
            update={"text": f"The output of this was held back: {said_of(rules)}.", "files": ()}
        )
        if fails:
            _REDUCERS[event.kind](self, bare, number)
        self.items.append(
            Item(
                id=f"{event.id}:content" if fails else event.id,
                group=GROUP_OF[event.kind],
                key="",
                text="",
                status="quarantined",
                source=event.source,
                events=(event.id,),
                last=number,
                note=said_of(rules),
                rules=rules,
                digest=digest,
            )
        )

    def notes(self) -> list[Item]:
        """A safety note for each set of broken rules and speaker, without a word of what was held back."""
        held: dict[tuple[Source, tuple[str, ...]], list[Item]] = {}
        for item in self.items:
            if item.status == "quarantined":
                held.setdefault((item.source, item.rules), []).append(item)
        return [
            Item(
                id=f"{HELD_BACK}{number}",
                group="safety_notes",
                key="",
                text=_told(source, len(items), rules),
                status="active",
                source="harness",
                events=tuple(item.events[0] for item in items),
                last=items[-1].last,
            )
            for number, ((source, rules), items) in enumerate(held.items(), 1)
        ]

    def state(self, event: Event, number: int) -> None:
        """Takes the place of what was known under its key."""
        group = GROUP_OF[event.kind]
        if self._overrules(event, group):
            said = f"{_a(event.source)} does not overrule what the user or the harness stated"
            self._add(event, number, group, "superseded", said)
            return
        self._end(group, event, number, "superseded", f"superseded by {event.id}")
        self._add(event, number, group)

    def end(self, event: Event, number: int) -> None:
        """Ends what was known under its key; is itself no more than the reason."""
        group = GROUP_OF[event.kind]
        if self._overrules(event, group):
            said = f"{_a(event.source)} does not take back what the user or the harness stated"
            self._add(event, number, group, "superseded", said)
            return
        word: Status = "superseded" if event.kind == "fact_retracted" else "resolved"
        ended = self._end(group, event, number, word, f"{_ENDED[event.kind]} by {event.id}")
        said = f"{_ENDED[event.kind]} {', '.join(ended)}" if ended else "nothing of its key was active"
        self._add(event, number, group, "resolved", said)

    def fail(self, event: Event, number: int) -> None:
        """Opens a failure. An earlier pass of the same key holds no longer."""
        for group in _OF_TESTS:
            self._end(group, event, number, "superseded", f"superseded by {event.id}")
        self._add(event, number, "open_failures")

    def mend(self, event: Event, number: int) -> None:
        """Ends a failure, and is the note that says so. A pass of what never failed is evidence."""
        ended = self._end("open_failures", event, number, "resolved", f"resolved by {event.id}")
        again = self._end("resolved_failure_notes", event, number, "superseded", f"superseded by {event.id}")
        if event.kind == "test_passed" and not ended and not again:
            self._end("tool_evidence", event, number, "superseded", f"superseded by {event.id}")
            self._add(event, number, "tool_evidence")
        else:
            self._add(event, number, "resolved_failure_notes")

    def _overrules(self, event: Event, group: Group) -> bool:
        """Whether it would replace or end what the user or the harness stated, and comes from neither."""
        return (
            group in _PROTECTED
            and event.source not in TRUSTED
            and any(self.items[place].source in TRUSTED for place in self._known(group, event))
        )

    def _known(self, group: Group, event: Event) -> list[int]:
        """Places of the active items of a group that an event is about, in their order."""
        return sorted(self._active.get((group, _key_of(event)), ()))

    def _end(self, group: Group, event: Event, number: int, status: Status, note: str) -> list[str]:
        """End the active items of a group that an event is about; gives their ids."""
        places = self._known(group, event)
        for place in places:
            item = self.items[place]
            for about in (item.key, item.id):
                self._active.get((group, about), set()).discard(place)
            self.items[place] = replace(
                item, status=status, note=note, events=(*item.events, event.id), last=number
            )
        return [self.items[place].id for place in places]

    def _add(
        self, event: Event, number: int, group: Group, status: Status = "active", note: str = ""
    ) -> None:
        key = _key_of(event)
        if status == "active":
            # Without a key an event stands for itself, and is ended by its id.
            for about in filter(None, (key, event.id)):
                self._active.setdefault((group, about), set()).add(len(self.items))
        self.items.append(
            Item(
                id=event.id,
                group=group,
                key=key,
                text=event.text,
                status=status,
                source=event.source,
                hard=event.hard and group == "constraints",
                files=event.files,
                events=(event.id,),
                last=number,
                note=note,
            )
        )


_REDUCERS: Mapping[Kind, Callable[[_Making, Event, int], None]] = MappingProxyType(
    {
        "goal": _Making.state,
        "goal_done": _Making.end,
        "constraint": _Making.state,
        "constraint_lifted": _Making.end,
        "decision": _Making.state,
        "procedure": _Making.state,
        "file_touched": _Making.state,
        "tool_output": _Making.state,
        "test_failed": _Making.fail,
        "test_passed": _Making.mend,
        "failure": _Making.fail,
        "failure_resolved": _Making.mend,
        "safety_note": _Making.state,
        "risk": _Making.state,
        "risk_closed": _Making.end,
        "fact": _Making.state,
        "fact_retracted": _Making.end,
        "message": _Making.state,
        "episode": _Making.state,
    }
)
_ENDED: Mapping[Kind, str] = MappingProxyType(
    {
        "goal_done": "done",
        "constraint_lifted": "lifted",
        "risk_closed": "closed",
        "fact_retracted": "retracted",
    }
)


def _key_of(event: Event) -> str:
    """What an event is about; a touched file is known by its path."""
    if event.key or event.kind != "file_touched":
        return event.key
    return ", ".join(sorted(event.files))


def _a(source: Source) -> str:
    return "an agent" if source == "agent" else f"a {source}"


def _told(source: Source, count: int, rules: tuple[str, ...]) -> str:
    kinds = "tool output" if source == "tool" else "statement of the earlier agent"
    if count == 1:
        return f"A {kinds} was held back: {said_of(rules)}."
    plural = "tool outputs" if source == "tool" else "statements of the earlier agent"
    return f"{count} {plural} were held back, each for the same reason: {said_of(rules)}."
