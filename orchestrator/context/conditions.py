"""The names of conditions: three ways of packaging, and what is taken from the third for ablations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from orchestrator.context.select import PROFILES, Profile
from orchestrator.context.state import GROUPS, Group
from orchestrator.errors import InputError
from orchestrator.nearest import nearest

CONDITIONS = ("transcript_replay", "compact_summary", "stateplane")

MOST_TOKENS = 1_000_000

LONGEST = 110
"""Characters of a name: the harness names a report by it twice, and a file has at most 255 bytes."""

_MAX = re.compile(r"max_([1-9][0-9]{0,6})_tokens")


class Condition(NamedTuple):
    """What a name says: the way of packaging, groups to leave out, profile and budget if it sets them."""

    base: str
    without: frozenset[Group] = frozenset()
    profile: Profile | None = None
    budget: int | None = None


def parse_condition(name: str) -> Condition:
    """Read a condition's name: a base, and behind `stateplane` any number of parts, each after a `-`.

    A part is `no_GROUP`, groups joined by `_` (these alone), `max_N_tokens` or a profile. Raises
    InputError with the nearest name for any other, and for parts that contradict each other.
    """
    base, *parts = name.split("-")
    if base not in CONDITIONS:
        raise InputError(f"{name!r} is no condition", mend=nearest(base, CONDITIONS))
    if parts and base != "stateplane":
        raise InputError(
            f"{name!r} is no condition", mend=f"only stateplane takes parts; {base} stands alone"
        )
    if len(name) > LONGEST:
        raise InputError(f"{name[:40]!r}… is longer than {LONGEST} characters", mend="name fewer parts")
    found = Condition(base)
    for part in parts:
        found = _with(found, part, name)
    if len(found.without) == len(GROUPS):
        raise InputError(f"{name!r} leaves out every group", mend="stateplane-none carries nothing")
    return found


def _with(found: Condition, part: str, name: str) -> Condition:
    if part in PROFILES:
        if found.profile is not None:
            raise InputError(f"{name!r} names two profiles", mend="name one")
        [profile] = [one for one in PROFILES if one == part]
        return found._replace(profile=profile)
    if match := _MAX.fullmatch(part):
        if found.budget is not None:
            raise InputError(f"{name!r} names two budgets", mend="name one")
        if int(match[1]) > MOST_TOKENS:
            raise InputError(f"{name!r} has a budget over {MOST_TOKENS} tokens", mend="give a smaller one")
        return found._replace(budget=int(match[1]))
    if part.startswith("no_") and (dropped := _groups(part.removeprefix("no_"))):
        return found._replace(without=found.without | dropped)
    if alone := _groups(part):
        return found._replace(without=found.without | (frozenset(GROUPS) - alone))
    raise InputError(
        f"{name!r} is no condition: {part!r} is no part of one", mend=nearest(part, _parts(), cutoff=0.5)
    )


def _groups(text: str) -> frozenset[Group]:
    """The groups whose names, joined by `_`, are `text`; none where it is not made of such."""
    if not text:
        return frozenset()
    for group in GROUPS:
        if text == group:
            return frozenset((group,))
        if text.startswith(f"{group}_") and (rest := _groups(text.removeprefix(f"{group}_"))):
            return rest | {group}
    return frozenset()


def _parts() -> Iterator[str]:
    yield from PROFILES
    yield "max_300_tokens"
    for group in GROUPS:
        yield f"no_{group}"
        yield group
    yield "constraints_open_failures"
