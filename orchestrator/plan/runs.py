"""How many runs each cell of a sweep has: a number, or as many as the ranking needs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from orchestrator.nearest import nearest
from orchestrator.plan.fields import Model

MOST_RUNS = 1000
LEAST_ADAPTIVE = 2

_FIXED, _ADAPTIVE = "a number", "a table"


def _until(what: object) -> object:
    if what != "ranking":
        raise ValueError(f"{what!r} is nothing that runs go on until; {nearest(str(what), ['ranking'])}")
    return what


def _several(runs: object) -> object:
    if isinstance(runs, int) and runs < LEAST_ADAPTIVE:
        raise ValueError(
            f"{runs} is below {LEAST_ADAPTIVE}: chance shows from the second run on; "
            f"give {LEAST_ADAPTIVE} or more, or a plain number of runs"
        )
    return runs


class AdaptiveRuns(Model):
    """From `min` to `max` runs: after the first `min`, contestants that the ranking has not told apart run
    once more, until it has.
    """

    min: Annotated[int, Field(le=MOST_RUNS), BeforeValidator(_several)]
    max: Annotated[int, Field(le=MOST_RUNS), BeforeValidator(_several)]
    until: Annotated[Literal["ranking"], BeforeValidator(_until)]

    @model_validator(mode="after")
    def _in_order(self) -> AdaptiveRuns:
        if self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}; exchange them, or give a larger max")
        return self

    def __str__(self) -> str:
        return f"{self.min} to {self.max}"


def _form(value: object) -> str:
    return _ADAPTIVE if isinstance(value, dict | AdaptiveRuns) else _FIXED


Runs = Annotated[
    Annotated[int, Field(ge=1, le=MOST_RUNS), Tag(_FIXED)] | Annotated[AdaptiveRuns, Tag(_ADAPTIVE)],
    Discriminator(_form),
]


def in_the_file(at: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """The place of a fault as the file has it: pydantic names the form of `runs` in it as well."""
    return (*at[:1], *at[2:]) if at[:1] == ("runs",) and at[1:2] in ((_FIXED,), (_ADAPTIVE,)) else at


def adaptive(runs: int | AdaptiveRuns) -> AdaptiveRuns | None:
    """How far runs go that depend on the ranking; None where their number is given."""
    return runs if isinstance(runs, AdaptiveRuns) else None


def fewest(runs: int | AdaptiveRuns) -> int:
    """The runs that each cell has at least."""
    return runs.min if isinstance(runs, AdaptiveRuns) else runs


def most(runs: int | AdaptiveRuns) -> int:
    """The runs that each cell has at most."""
    return runs.max if isinstance(runs, AdaptiveRuns) else runs
