"""What one run of a command of the user's came to, as it is stored."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from orchestrator.errors import StoreError
from orchestrator.external.artifacts import Artifacts, Attempt
from orchestrator.store.files import store_errors


class CommandRecord(BaseModel):
    """`agent_logs/<instance>/<condition>/run<n>.json`: what one run of the command came to. Times are
    seconds. `patch_left_out`: some changed file was too large for a patch.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    v: Literal[1] = 1
    outcome: Literal["completed", "timeout", "failed"]
    exit_code: int | None
    started_at: str
    elapsed_s: float
    isolation: Literal["none"] = "none"
    patch_left_out: bool = False


def read_record(artifacts: Artifacts, attempt: Attempt) -> CommandRecord | None:
    """The record of an attempt; None where it has not ended. Raises StoreError for a damaged one."""
    path = artifacts.log(attempt, ".json")
    if not path.exists():
        return None
    with store_errors(path):
        raw = path.read_bytes()
    try:
        return CommandRecord.model_validate_json(raw)
    except ValidationError:
        raise StoreError("is damaged", place=str(path), mend="remove it: it runs again") from None
