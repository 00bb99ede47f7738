"""Generation settings that a sweep sets for a model: on its own, since reading a sweep file need not import
the contract.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class GenerationSettings(BaseModel):
    """What every request to a model is to ask for; None leaves it to the CLI. A wire writes each by its own
    name (`WireFormat.prepare`).
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, defer_build=True)

    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    reasoning_effort: Effort | None = None
    seed: Annotated[int, Field(ge=0, lt=1 << 31)] | None = None

    def given(self) -> dict[str, Any]:
        """Those that are set, by cab's name for them."""
        return self.model_dump(exclude_none=True)


AS_THE_CLI_ASKS = GenerationSettings.model_construct()
"""Nothing is set."""
