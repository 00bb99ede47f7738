"""What each group of a state is worth: the continuation eval with it and without it. No model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.context.continuation import Reading, evaluate
from orchestrator.context.fixtures import Fixture, Measure
from orchestrator.context.state import GROUPS, Group

Label = Literal["required", "neutral", "too costly", "harmful"]

BASELINE = "compact"
INTERVENTIONS: tuple[str, ...] = (
    "minimal",
    "none",
    "constraints_open_failures",
    *(f"no_{group}" for group in GROUPS),
    "max_300_tokens",
    "max_600_tokens",
)
"""What is changed about `compact`, by the part that names it in a condition `stateplane-…`."""

CRITICAL: frozenset[Measure] = frozenset(
    ("constraints", "active_failures", "resolved_failures", "risky", "warnings")
)
"""Measures of which no expectation may be lost."""
LOSS = 0.02
"""Share of the met expectations that makes a group required."""
SHARE = 0.05
"""Share of the tokens from which on a group can be too costly …"""
PRICE = 2.0
"""… where it takes more than this many times its share of the met expectations."""

UNUSED = "no fixture's text carries it"


@dataclass(frozen=True)
class Effect:
    """An intervention beside `compact`, over the fixtures and measures that apply to both.

    `lost` are expectations that `compact` meets and it does not, `gained` the reverse, each with its measure;
    `of` is how many `compact` meets. `tokens` and `base_tokens` are sums over the fixtures that both package;
    `refused` is how many the intervention does not. `carried` is in how many fixtures the text of `compact`
    carries an item of the group that is left out, None where no one group is.
    """

    intervention: str
    lost: tuple[tuple[Measure, str], ...]
    gained: tuple[tuple[Measure, str], ...]
    of: int
    tokens: int
    base_tokens: int
    refused: int
    carried: int | None = None

    @property
    def worth(self) -> float:
        """Net loss as a share of what is met with it."""
        return (len(self.lost) - len(self.gained)) / self.of if self.of else 0.0

    @property
    def share(self) -> float:
        """Tokens that it saves, as a share of those of `compact`."""
        return (self.base_tokens - self.tokens) / self.base_tokens if self.base_tokens else 0.0


@dataclass(frozen=True)
class GroupValue:
    """The label of a group, and which others it would have if any one fixture had not been there."""

    group: Group
    label: Label | None
    reason: str
    effect: Effect
    unsure: tuple[Label, ...] = ()


@dataclass(frozen=True)
class Value:
    """All interventions, and all groups."""

    fixtures: int
    effects: tuple[Effect, ...]
    groups: tuple[GroupValue, ...]


def value(fixtures: Sequence[Fixture]) -> Value:
    """Package the fixtures with every intervention, and label the groups. Deterministic."""
    names = {name: f"stateplane-{name}" for name in (BASELINE, *INTERVENTIONS)}
    found = evaluate(fixtures, tuple(names.values()))
    readings = {
        name: [one for one in found.readings if one.condition == condition]
        for name, condition in names.items()
    }
    base = readings[BASELINE]
    effects = tuple(effect(name, base, readings[name]) for name in INTERVENTIONS)
    groups = tuple(_valued(group, base, readings[f"no_{group}"]) for group in GROUPS)
    return Value(len(fixtures), effects, groups)


def effect(name: str, base: Sequence[Reading], other: Sequence[Reading]) -> Effect:
    """One intervention beside the baseline; both readings of the same fixtures, in the same order."""
    lost: list[tuple[Measure, str]] = []
    gained: list[tuple[Measure, str]] = []
    of = 0
    for one, two in zip(base, other, strict=True):
        for measure, with_it in one.tallies.items():
            without = two.tallies[measure]
            if with_it.of and without.of:
                of += with_it.met
                lost += [(measure, what) for what in without.missed if what not in with_it.missed]
                gained += [(measure, what) for what in with_it.missed if what not in without.missed]
    both = [(one, two) for one, two in zip(base, other, strict=True) if None not in (one.tokens, two.tokens)]
    group = next((group for group in GROUPS if name == f"no_{group}"), None)
    return Effect(
        name,
        tuple(lost),
        tuple(gained),
        of,
        sum(two.tokens or 0 for _, two in both),
        sum(one.tokens or 0 for one, _ in both),
        sum(two.refused is not None for two in other),
        None if group is None else sum(bool(one.carried.get(group)) for one in base),
    )


def label_of(found: Effect) -> tuple[Label | None, str]:
    """The label that an effect gives a group, and why, by the thresholds above."""
    if not found.carried:
        return None, UNUSED
    lost, gained = len(found.lost), len(found.gained)
    critical = sum(one in CRITICAL for one, _ in found.lost) - sum(one in CRITICAL for one, _ in found.gained)
    if gained > lost:
        return "harmful", f"without it {gained} more are met and {lost} fewer"
    if critical > 0:
        return "required", f"without it {critical} critical fewer"
    if found.share >= SHARE and found.share > PRICE * found.worth:
        return (
            "too costly",
            f"{_percent(found.share)} of the tokens for {_percent(found.worth)} of what is met",
        )
    if found.worth >= LOSS:
        return "required", f"without it {_percent(found.worth)} fewer are met"
    return "neutral", f"{_percent(found.share)} of the tokens, {_percent(found.worth)} of what is met"


def _valued(group: Group, base: Sequence[Reading], other: Sequence[Reading]) -> GroupValue:
    whole = effect(f"no_{group}", base, other)
    label, reason = label_of(whole)
    without_one = (
        label_of(effect(whole.intervention, _without(base, number), _without(other, number)))[0]
        for number in range(len(base))
    )
    unsure = sorted({one for one in without_one if one is not None and one != label})
    return GroupValue(group, label, reason, whole, tuple(unsure))


def _without(readings: Sequence[Reading], number: int) -> list[Reading]:
    return [*readings[:number], *readings[number + 1 :]]


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
