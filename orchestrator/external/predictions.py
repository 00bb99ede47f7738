"""Predictions as the harness takes them: one file for each condition and run, a patch for each instance."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from orchestrator.errors import InputError
from orchestrator.external.rows import read_rows
from orchestrator.external.tasks import field_error
from orchestrator.store.files import make_dirs, store_errors, write_durably


class _Prediction(BaseModel):
    """Other keys are passed over: tools write many."""

    model_config = ConfigDict(extra="ignore")

    instance_id: str = Field(min_length=1)
    model_name_or_path: str = Field(min_length=1)
    model_patch: str | None

    @field_validator("model_patch")
    @classmethod
    def _is_text(cls, value: str | None) -> str | None:
        try:
            (value or "").encode()
        except UnicodeEncodeError:
            raise ValueError("holds half of a surrogate pair, which is no text") from None
        return value


@dataclass(frozen=True)
class Predictions:
    """The patches of one condition by instance; "" where an attempt left none."""

    condition: str
    patches: Mapping[str, str]


def write_predictions(path: Path, condition: str, items: Mapping[str, str]) -> None:
    """Write the patches of a condition, a line for each instance by id. Raises StoreError."""
    lines = [
        json.dumps({"instance_id": name, "model_name_or_path": condition, "model_patch": patch})
        for name, patch in sorted(items.items())
    ]
    with store_errors(path):
        make_dirs(path.parent)
        write_durably(path, "".join(f"{line}\n" for line in lines).encode())


def read_predictions(path: Path) -> Predictions:
    """The predictions of a file, JSON lines or a list. Raises InputError that names file, instance and field;
    also for a second prediction of one instance, or of another condition.
    """
    condition, patches = "", dict[str, str]()
    for place, row in read_rows(path):
        try:
            found = _Prediction.model_validate(row)
        except ValidationError as error:
            raise field_error(error.errors()[0], place) from None
        if found.instance_id in patches:
            raise InputError("has a second prediction", place=place, mend="keep one")
        if patches and found.model_name_or_path != condition:
            raise InputError(
                f"is of {found.model_name_or_path!r}, those before are of {condition!r}",
                place=place,
                mend="a file holds one model_name_or_path: the condition",
            )
        condition = found.model_name_or_path
        patches[found.instance_id] = found.model_patch or ""
    return Predictions(condition, patches)
