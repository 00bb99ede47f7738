"""Which items of a state a prompt carries: by policy, profile, relevance to the task and a token budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Literal, get_args

from orchestrator.context.block import block_of, heading, lines_of
from orchestrator.context.relevance import relevance, shares_files
from orchestrator.context.state import GROUPS, HELD_BACK, Group, Item, State
from orchestrator.context.tokens import BYTES_PER_TOKEN, tokens_of
from orchestrator.errors import InputError

Profile = Literal["none", "minimal", "compact", "full", "receipt"]
PROFILES: tuple[Profile, ...] = get_args(Profile)

PolicyName = Literal["auto", "single_shot", "continuation", "debug", "eval"]
POLICIES: tuple[PolicyName, ...] = get_args(PolicyName)


@dataclass(frozen=True)
class Shape:
    """What a profile takes: groups, tokens of the block (None: as many as there are), characters of a text
    (None: all), and whether background that shares nothing with the task is taken too.
    """

    groups: frozenset[Group]
    budget: int | None
    longest: int | None
    unrelated: bool


_ALL = frozenset(GROUPS)
_MINIMAL: frozenset[Group] = frozenset(("constraints", "active_goals", "open_failures", "safety_notes"))
_COMPACT = Shape(_ALL, 1200, 600, unrelated=False)
SHAPES: Mapping[Profile, Shape] = MappingProxyType(
    {
        "none": Shape(frozenset(), 0, None, unrelated=False),
        "minimal": Shape(_MINIMAL, 400, 300, unrelated=True),
        "compact": _COMPACT,
        "full": Shape(_ALL, None, None, unrelated=True),
        "receipt": _COMPACT,
    }
)

GROUP_WEIGHTS: Mapping[Group, float] = MappingProxyType(
    {
        "constraints": 1.0,
        "active_goals": 0.9,
        "open_failures": 1.0,
        "resolved_failure_notes": 0.5,
        "decisions": 0.7,
        "procedures": 0.6,
        "touched_files": 0.5,
        "tool_evidence": 0.3,
        "safety_notes": 1.0,
        "risks": 0.5,
        "generic_facts": 0.2,
        "episodes": 0.1,
    }
)
RECENCY_WEIGHT = 0.5
FILES_WEIGHT = 0.5

# Left out of a compact block where they share nothing with the task.
_BACKGROUND: frozenset[Group] = frozenset(("tool_evidence", "episodes"))
# Whose files are those that the work is about.
_AT_HAND: frozenset[Group] = frozenset(("open_failures", "touched_files"))
_DIGITS = 4


@dataclass(frozen=True)
class Policy:
    """What is asked for. `name` is the policy that applies, `asked` the one that was named (`auto` chooses).

    `budget` are tokens of the injected block, None for no limit; `why` says why nothing is taken at all.
    """

    name: PolicyName
    profile: Profile
    groups: frozenset[Group]
    budget: int | None
    asked: PolicyName = "auto"
    without: frozenset[Group] = frozenset()
    why: str = ""

    @property
    def shape(self) -> Shape:
        return SHAPES[self.profile]

    @property
    def injects(self) -> bool:
        """Whether the prompt carries what is selected; `receipt` selects for the receipt alone."""
        return self.profile not in ("none", "receipt")


@dataclass(frozen=True)
class Decision:
    """Why an item is in the block or not. `tokens` are its own; `score` is the sum of `breakdown`."""

    item: Item
    included: bool
    reason: str
    tokens: int
    score: float
    breakdown: dict[str, float]


@dataclass(frozen=True)
class Selection:
    """A decision on every item of a state, and the tokens of the block they make."""

    policy: Policy
    decisions: tuple[Decision, ...]
    tokens: int

    @property
    def items(self) -> tuple[Item, ...]:
        return tuple(decision.item for decision in self.decisions if decision.included)

    @property
    def carried(self) -> dict[Group, tuple[str, ...]]:
        """The ids of the items that a prompt carries, by group."""
        items = self.items if self.policy.injects else ()
        return by_group((item.group, item.id) for item in items)


def by_group(pairs: Iterable[tuple[Group, str]]) -> dict[Group, tuple[str, ...]]:
    """Ids by group, in the order of groups."""
    found: dict[Group, list[str]] = {}
    for group, one in pairs:
        found.setdefault(group, []).append(one)
    return {group: tuple(found[group]) for group in GROUPS if group in found}


def is_useful(state: State) -> bool:
    """Whether a state holds what its task does not say itself: something active besides goals, which restate
    the task, and notes about held-back content, which a new session does not see anyway.
    """
    return any(item.group != "active_goals" and not item.id.startswith(HELD_BACK) for item in state.active)


def policy_for(
    name: PolicyName,
    profile: Profile | None,
    state: State,
    *,
    without: frozenset[Group] = frozenset(),
    budget: int | None = None,
) -> Policy:
    """The policy that applies to a state; see docs/external.md.

    A budget that is given holds; under `eval` that of the profile does, too. Otherwise the profile's gives
    way to what is required. Raises InputError for a budget under 1.
    """
    if budget is not None and budget < 1:
        raise InputError(
            f"a budget of {budget} tokens holds nothing", mend="give 1 or more, or the profile none"
        )
    applies = ("continuation" if is_useful(state) else "single_shot") if name == "auto" else name
    why = ""
    if applies == "single_shot" and not is_useful(state):
        chosen: Profile = "none"
        why = "single-shot: there is no useful earlier state"
    else:
        chosen = profile or _DEFAULTS[applies]
        why = "the profile is none" if chosen == "none" else ""
    groups = SHAPES[chosen].groups - without
    policy = Policy(applies, chosen, groups, budget, name, without, why)
    if budget is None and (usual := SHAPES[chosen].budget) is not None:
        needed = 0 if applies == "eval" else _tokens(_bytes(_required(state, policy), policy))
        policy = Policy(applies, chosen, groups, max(usual, needed), name, without, why)
    return policy


_DEFAULTS: Mapping[PolicyName, Profile] = MappingProxyType(
    {"single_shot": "minimal", "continuation": "compact", "debug": "full", "eval": "compact"}
)


def select(state: State, task_text: str, policy: Policy) -> Selection:
    """Decide on every item. Hard constraints, open failures and safety notes of the policy's groups are
    always taken; the rest by score as long as it fits. Raises InputError where what is required does not fit.
    """
    making = _Selecting(state, task_text, policy)
    making.take_required()
    making.take_ranked()
    decisions = tuple(making.decision(item) for item in state.items)
    taken = (decision.item for decision in decisions if decision.included)
    return Selection(policy, decisions, tokens_of(block_of(taken, policy.shape.longest)))


def _is_required(item: Item) -> bool:
    return item.group in ("open_failures", "safety_notes") or item.hard


def _required(state: State, policy: Policy) -> list[Item]:
    return [item for item in state.active if item.group in policy.groups and _is_required(item)]


def _bytes(items: Iterable[Item], policy: Policy, begun: frozenset[Group] = frozenset()) -> int:
    """Bytes that items add to a block whose groups `begun` have their headings."""
    found = list(items)
    headings = {item.group for item in found} - begun
    # The end of each line, and the empty one between two groups.
    size = sum(len(heading(group).encode()) + 2 for group in headings)
    return size + sum(len(lines_of(item, policy.shape.longest).encode()) + 1 for item in found)


def _of_others(item: Item, counts: Counter[str]) -> frozenset[str]:
    """The files of an item that are at hand by another item than itself."""
    own = 1 if item.group in _AT_HAND else 0
    return frozenset(file for file in item.files if counts[file] > own)


def _tokens(size: int) -> int:
    return -(-size // BYTES_PER_TOKEN)


class _Selecting:
    """A selection in the making."""

    def __init__(self, state: State, task_text: str, policy: Policy) -> None:
        self._state = state
        self._task = task_text
        self._policy = policy
        self._size = 0
        self._taken: set[Group] = set()
        self._reasons: dict[str, tuple[bool, str]] = {}

    def take_required(self) -> None:
        for item in _required(self._state, self._policy):
            if not self._fits(item):
                needed = _tokens(_bytes(_required(self._state, self._policy), self._policy))
                budget = self._policy.budget
                raise InputError(
                    f"{item.group} {item.id!r} is required and does not fit into {budget} tokens",
                    place=f"policy {self._policy.name}, profile {self._policy.profile}",
                    mend=f"what is required takes {needed}: give that many",
                )
            what = "hard constraint" if item.hard else item.group.removesuffix("s").replace("_", " ")
            self._take(item, f"required: {what}")

    def take_ranked(self) -> None:
        """The best first; what no longer fits is left out, what is smaller may still come after it."""
        ranked = sorted(self._candidates, key=lambda item: (-self._score(item), -item.last, item.id))
        for rank, item in enumerate(ranked, 1):
            if self._is_unrelated(item):
                self._reasons[item.id] = False, "shares nothing with the task"
            elif self._fits(item):
                self._take(item, f"rank {rank} of {len(ranked)}")
            else:
                left = (self._policy.budget or 0) - _tokens(self._size)
                said = f"does not fit: {max(left, 0)} of {self._policy.budget} tokens are left"
                self._reasons[item.id] = False, f"rank {rank} of {len(ranked)}, {said}"

    def decision(self, item: Item) -> Decision:
        breakdown = self._breakdowns.get(item.id, {})
        included, reason = self._reasons.get(item.id) or (False, self._why_not(item))
        tokens = tokens_of(lines_of(item, self._policy.shape.longest)) if item.status != "quarantined" else 0
        return Decision(item, included, reason, tokens, round(sum(breakdown.values()), _DIGITS), breakdown)

    @cached_property
    def _candidates(self) -> list[Item]:
        return [
            item
            for item in self._state.active
            if item.group in self._policy.groups and not _is_required(item)
        ]

    @cached_property
    def _breakdowns(self) -> dict[str, dict[str, float]]:
        """Of each active item, what its score is the sum of."""
        active = self._state.active
        texts = [" ".join((item.key, item.text, *item.files)) for item in active]
        counts = Counter(file for item in active if item.group in _AT_HAND for file in set(item.files))
        last = max(self._state.length - 1, 1)
        return {
            item.id: {
                "group": GROUP_WEIGHTS[item.group],
                "relevance": round(found, _DIGITS),
                "recency": round(RECENCY_WEIGHT * item.last / last, _DIGITS),
                "files": FILES_WEIGHT * shares_files(item, self._task, _of_others(item, counts)),
            }
            for item, found in zip(active, relevance(self._task, texts), strict=True)
        }

    def _score(self, item: Item) -> float:
        return sum(self._breakdowns[item.id].values())

    def _is_unrelated(self, item: Item) -> bool:
        found = self._breakdowns[item.id]
        return (
            not self._policy.shape.unrelated
            and item.group in _BACKGROUND
            and not (found["relevance"] or found["files"])
        )

    def _fits(self, item: Item) -> bool:
        size = self._size + _bytes([item], self._policy, frozenset(self._taken))
        return self._policy.budget is None or _tokens(size) <= self._policy.budget

    def _take(self, item: Item, reason: str) -> None:
        self._size += _bytes([item], self._policy, frozenset(self._taken))
        self._taken.add(item.group)
        self._reasons[item.id] = True, reason

    def _why_not(self, item: Item) -> str:
        if item.status != "active":
            return f"{item.status}: {item.note}"
        if self._policy.why:
            return self._policy.why
        if item.group in self._policy.without:
            return f"the condition leaves out {item.group}"
        return f"the profile {self._policy.profile} takes no {item.group}"
