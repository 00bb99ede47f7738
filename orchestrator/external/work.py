"""What an agent's one attempt came to, whoever ran it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Mode = Literal["dry_run", "cli", "command"]
"""Who works: nobody, a CLI of cab's in containers, a command line on this machine."""


@dataclass(frozen=True)
class Work:
    """`diff` is against the tree that the agent began with. Times are seconds; tokens are those that the wire
    stated, None where no call went through cab.
    """

    outcome: str
    diff: bytes
    elapsed_s: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cell_id: str | None = None
