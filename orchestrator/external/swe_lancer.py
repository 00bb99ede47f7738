"""SWE-Lancer tasks: a documented format that loads and dry-runs. They are not graded here.

The benchmark's own end-to-end tests drive a browser in images of its own, which cab does not build or run.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from orchestrator.context.events import History
from orchestrator.external.rows import read_rows
from orchestrator.external.tasks import ExternalTask, chosen, field_error

_Text = Annotated[str, Field(min_length=1)]


class _Row(BaseModel):
    """One task. `ic_swe` asks for a patch; `swe_manager` asks which of `proposals` to take."""

    model_config = ConfigDict(extra="forbid")

    instance_id: _Text
    variant: Literal["ic_swe", "swe_manager"]
    price_usd: float = Field(gt=0, allow_inf_nan=False)
    title: _Text
    description: _Text
    repo: _Text
    base_commit: _Text
    proposals: tuple[_Text, ...] = ()
    history: Any = None
    prior_patch: str = ""

    @model_validator(mode="after")
    def _has_proposals(self) -> Self:
        chooses = self.variant == "swe_manager"
        if len(self.proposals) < 2 if chooses else self.proposals:
            raise ValueError("two proposals or more are what a swe_manager task has, and no other")
        return self

    def problem(self) -> str:
        """What an agent is asked."""
        told = f"{self.title}\n\n{self.description}"
        if not self.proposals:
            return told
        numbered = (f"## Proposal {number}\n\n{text}" for number, text in enumerate(self.proposals, start=1))
        asked = "Write the number of the proposal to take, alone, into the file `decision.txt`."
        return "\n\n".join([told, *numbered, asked])


def load_swe_lancer(path: Path, ids: Collection[str] | None = None) -> tuple[ExternalTask, ...]:
    """The tasks of a file (a JSON list, or a task a line), all or those of `ids`.

    Raises InputError that names file, task and field.
    """
    return chosen([_task(row, place) for place, row in read_rows(path)], ids, str(path))


def _task(raw: dict[str, Any], place: str) -> ExternalTask:
    try:
        row = _Row.model_validate(raw)
        history = History() if row.history is None else History.of(row.history, f"{place}.history")
        return ExternalTask(
            instance_id=row.instance_id,
            repo=row.repo,
            base_commit=row.base_commit,
            problem_statement=row.problem(),
            prior_patch=row.prior_patch,
            history=history,
            row=row.model_dump(mode="json", exclude={"history", "prior_patch"}),
            benchmark="swe_lancer",
        )
    except ValidationError as error:
        raise field_error(error.errors()[0], place) from None
