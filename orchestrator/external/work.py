"""What an agent's one attempt came to, whoever ran it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from orchestrator.run.workdir import MAX_DIFFED_BYTES
from scorers.evidence import FileChange

Mode = Literal["dry_run", "cli", "command"]
"""Who works: nobody, a CLI of cab's in containers, a command line on this machine."""


@dataclass(frozen=True)
class Work:
    """`diff` is against the tree that the agent began with. Times are seconds; tokens are those that the wire
    stated, None where no call went through cab. `left_out`: the diff lacks what changed in some file.
    """

    outcome: str
    diff: bytes
    elapsed_s: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cell_id: str | None = None
    left_out: bool = False


def is_left_out(changes: Iterable[FileChange], *, truncated: bool) -> bool:
    """Whether the diff lacks some of the agent's own changes, for one file's size or for that of all."""
    states = (state for it in changes if it.origin == "agent" for state in (it.before, it.after))
    return truncated or any(state is not None and state.size > MAX_DIFFED_BYTES for state in states)
