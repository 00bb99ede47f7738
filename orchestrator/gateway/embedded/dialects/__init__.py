"""How a CLI wants its model to act: by tool calls, or by edits written into the answer.

A request tells its dialect by itself, whatever CLI sent it. A CLI with tools of other names is a row in
`vocabulary.py`, one with another form of edits a row in `text_edits.py`, and one that acts in another way
altogether a module here and an entry of `_DIALECTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from orchestrator.gateway.contract import Script
from orchestrator.gateway.embedded.dialects.text_edits import TextEdits
from orchestrator.gateway.embedded.dialects.tool_calls import ToolCalls
from orchestrator.gateway.embedded.turn import Turn


class Dialect(Protocol):
    """One request, read as a conversation about a task."""

    def step(self, script: Script) -> Turn:
        """What comes next on the way to the script's files; at its end the final message."""
        ...

    def say(self, text: str) -> Turn:
        """A text and no more to do, in the way in which this CLI's model ends a run."""
        ...

    def again(self) -> Turn:
        """The same step, whatever came before."""
        ...


_DIALECTS: tuple[Callable[[Mapping[str, Any], str], Dialect | None], ...] = (ToolCalls.of, TextEdits.of)


def recognise(request: Mapping[str, Any], workdir: str) -> Dialect | None:
    """The dialect of a chat completions request; None for one beside the task, as for a title."""
    return next((dialect for of in _DIALECTS if (dialect := of(request, workdir))), None)
