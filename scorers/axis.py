"""What the results of all axes have in common: a number that was not measured is null, and says why."""

from __future__ import annotations

from pydantic import ConfigDict, Field, model_validator

from scorers.evidence import Model


class Axis(Model):
    """The result of one axis. `reasons` names, for every field that is null, why it is."""

    model_config = ConfigDict(
        validate_by_name=True, validate_by_alias=True, serialize_by_alias=True, defer_build=True
    )

    reasons: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _null_needs_a_reason(self) -> Axis:
        for name, field in type(self).model_fields.items():
            published = field.serialization_alias or name
            if getattr(self, name) is None and published not in self.reasons:
                raise ValueError(f"{type(self).__name__}.{published} is null without a reason")
        return self
