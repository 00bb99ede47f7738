"""What a scripted model says in one turn."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ToolUse:
    """One call of a tool; `number` tells the calls of a conversation apart."""

    tool: str
    arguments: Mapping[str, Any]
    number: int


@dataclass(frozen=True)
class Turn:
    """Exactly one of: a text, a refusal, a tool call; beside a call that ends the run also its last text."""

    text: str | None = None
    refusal: str | None = None
    call: ToolUse | None = None

    def message(self) -> tuple[dict[str, Any], str]:
        """The assistant's message of chat completions, and its finish reason."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text, "refusal": self.refusal}
        if self.call is None:
            return message, "stop"
        function = {"name": self.call.tool, "arguments": json.dumps(dict(self.call.arguments))}
        call_id = f"call_scripted_{self.call.number}"
        message["tool_calls"] = [{"id": call_id, "type": "function", "function": function}]
        return message, "tool_calls"
