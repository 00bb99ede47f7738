"""The continuation eval: what of an interrupted session survives its packaging, without any model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from orchestrator.context.conditions import CONDITIONS, parse_condition
from orchestrator.context.fixtures import MEASURES, Fixture, Measure
from orchestrator.context.judging import met
from orchestrator.context.packaging import Packaged, package
from orchestrator.context.select import PolicyName
from orchestrator.context.state import Group
from orchestrator.errors import InputError

POLICY: PolicyName = "continuation"
BASE = "transcript_replay"
"""What tokens are relative to."""

NOT_EXPECTED = "the fixture expects none"
NOTHING_PACKAGED = "nothing is packaged, so nothing of it can be left out"
BY_ABSENCE: frozenset[Measure] = frozenset(("resolved_failures", "risky", "superseded"))
"""Met by a text that says nothing: an empty one says nothing about them."""


@dataclass(frozen=True)
class Tally:
    """How many of the expectations are met; `of` is 0 where the measure does not apply, `reason` says why.

    `missed` says which are not, each with its fixture.
    """

    met: int
    of: int
    reason: str | None = None
    missed: tuple[str, ...] = ()

    @property
    def rate(self) -> float | None:
        return self.met / self.of if self.of else None


@dataclass(frozen=True)
class Reading:
    """One text of one fixture: a tally for each measure, and its tokens beside those of the base condition.

    `carried` are the ids of what the text carries, by group. `refused` says why there is no text, where the
    packaging was refused: then nothing is met.
    """

    fixture: str
    condition: str
    tokens: int | None
    base_tokens: int
    tallies: dict[Measure, Tally]
    carried: dict[Group, tuple[str, ...]] = field(default_factory=dict)
    refused: str | None = None

    @property
    def relative(self) -> float | None:
        """Tokens as a share of the base condition's; None where either has none to compare."""
        return self.tokens / self.base_tokens if self.tokens is not None and self.base_tokens else None


@dataclass(frozen=True)
class Overall:
    """A condition over all fixtures: sums of numerators, denominators and tokens."""

    condition: str
    tokens: int
    base_tokens: int
    tallies: dict[Measure, Tally]
    fixtures: int
    refused: int

    @property
    def relative(self) -> float | None:
        return self.tokens / self.base_tokens if self.base_tokens else None


@dataclass(frozen=True)
class Evaluation:
    """Readings of all conditions by fixture, in the order they were asked for."""

    conditions: tuple[str, ...]
    readings: tuple[Reading, ...]

    @property
    def overall(self) -> tuple[Overall, ...]:
        return tuple(
            summed(condition, [one for one in self.readings if one.condition == condition])
            for condition in self.conditions
        )


def evaluate(fixtures: Sequence[Fixture], conditions: Sequence[str] = CONDITIONS) -> Evaluation:
    """Package every fixture in every condition and read the texts.

    Raises InputError for a condition that is none.
    """
    for condition in conditions:
        parse_condition(condition)
    readings = [
        read(fixture, condition, base)
        for fixture in fixtures
        for base in [_packaged(fixture, BASE).tokens]
        for condition in conditions
    ]
    return Evaluation(tuple(conditions), tuple(readings))


def read(fixture: Fixture, condition: str, base: int) -> Reading:
    """What of a fixture's expectations its packaging meets, by the exact text that a prompt would carry.

    `base` are the tokens of the base condition.
    """
    try:
        packaged = _packaged(fixture, condition)
    except InputError as error:
        tallies = {measure: _tally(fixture, measure, "") for measure in MEASURES}
        return Reading(fixture.name, condition, None, base, tallies, refused=str(error))
    tallies = {measure: _tally(fixture, measure, packaged.text) for measure in MEASURES}
    return Reading(fixture.name, condition, packaged.tokens, base, tallies, packaged.carried)


def summed(condition: str, readings: Sequence[Reading]) -> Overall:
    """Readings of one condition added up. Tokens are those of the fixtures that were packaged."""
    packaged = [one for one in readings if one.tokens is not None]
    return Overall(
        condition,
        sum(one.tokens or 0 for one in packaged),
        sum(one.base_tokens for one in packaged),
        {measure: _sum(one.tallies[measure] for one in readings) for measure in MEASURES},
        len(readings),
        len(readings) - len(packaged),
    )


def _packaged(fixture: Fixture, condition: str) -> Packaged:
    return package(condition, fixture.history, fixture.task, policy=POLICY)


def _tally(fixture: Fixture, measure: Measure, text: str) -> Tally:
    wanted = fixture.expect.get(measure, ())
    if not wanted:
        return Tally(0, 0, NOT_EXPECTED)
    if not text and measure in BY_ABSENCE:
        return Tally(0, 0, NOTHING_PACKAGED)
    missed = tuple(f"{fixture.name}: {one.what}" for one in wanted if not met(measure, one, text))
    return Tally(len(wanted) - len(missed), len(wanted), missed=missed)


def _sum(tallies: Iterable[Tally]) -> Tally:
    found = list(tallies)
    reasons = sorted({one.reason for one in found if one.reason})
    of = sum(one.of for one in found)
    return Tally(
        sum(one.met for one in found),
        of,
        None if of else "; ".join(reasons),
        tuple(missed for one in found for missed in one.missed),
    )
