"""Edits written into the answer: the dialect of CLIs that offer no tools, such as aider.

The CLI's system prompt says which form edits have and how they are fenced; the files that may be edited
stand, fenced, in a message of the user. The plan: ask for the files that are not there yet, write the edits,
say the final message. Nothing is remembered: what is still to do is what the files shown lack.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.gateway.contract import Script
from orchestrator.gateway.embedded.edits import hunks
from orchestrator.gateway.embedded.turn import Turn
from orchestrator.gateway.wires.shared import text_of

ASK = "These files need to be changed:"
AGAIN = "I am looking at the ticket once more."
MAX_TRIES = 2
"""Edits that did not arrive are written once more; a third time would fail as well."""


@dataclass(frozen=True)
class Fence:
    """The lines around a file's text."""

    opening: str
    closing: str


@dataclass(frozen=True)
class EditFormat:
    """One form of edits: `asked` finds the system prompt that asks for it, with the groups `opening` and
    `closing` of its fence; `write` gives the edits (path, text before, text after, fence).
    """

    asked: re.Pattern[str]
    write: Callable[[str, str, str, Fence], str]


def _whole(path: str, before: str, after: str, fence: Fence) -> str:
    del before
    return f"{path}\n{fence.opening}\n{after}{fence.closing}\n"


def _search_replace(path: str, before: str, after: str, fence: Fence) -> str:
    pairs = hunks(before, after) if before else [("", after)]
    return "\n".join(
        f"{path}\n{fence.opening}\n<<<<<<< SEARCH\n{old}=======\n{new}>>>>>>> REPLACE\n{fence.closing}\n"
        for old, new in pairs
    )


FORMATS: tuple[EditFormat, ...] = (
    # aider, edit format "whole"
    EditFormat(
        re.compile(r"\*file listing\* format:\n\n\S+\n(?P<opening>\S+)\n(?:.*\n){2}(?P<closing>\S+)"), _whole
    ),
    # aider, edit format "diff"
    EditFormat(
        re.compile(
            r"\*SEARCH/REPLACE block\* Rules:(?s:.*?)opening fence and code language, eg: "
            r"(?P<opening>\S+?)python\n(?s:.*?)closing fence: (?P<closing>\S+)"
        ),
        _search_replace,
    ),
)


@dataclass(frozen=True)
class TextEdits:
    """One request of this dialect. `told` holds what the user said, `said` what the model did."""

    form: EditFormat
    fence: Fence
    told: tuple[str, ...]
    said: tuple[str, ...]

    @classmethod
    def of(cls, request: Mapping[str, Any], workdir: str) -> TextEdits | None:
        """The request in this dialect, whose paths are relative; None where no known form is asked for."""
        del workdir
        messages = [message for message in request["messages"] if isinstance(message, dict)]
        texts = [(message.get("role"), text_of(message.get("content"))) for message in messages]
        for form in FORMATS:
            # A CLI may send its system prompt as the user's first message.
            for number, (role, text) in enumerate(texts):
                if (role == "system" or number == 0) and (found := form.asked.search(text)):
                    told = tuple(text for role, text in texts if role == "user")
                    said = tuple(text for role, text in texts if role == "assistant")
                    return cls(form, Fence(found["opening"], found["closing"]), told, said)
        return None

    def step(self, script: Script) -> Turn:
        wanted = {path: _ended(script.files[path] or "") for path in script.changed}
        left = [path for path in wanted if self._shown(path) != wanted[path]]
        there = [path for path in left if script.before.get(path) is not None]
        missing = [path for path in there if self._shown(path) is None]
        ask = "\n".join((ASK, "", *missing))
        if missing and not any(said.startswith(ASK) for said in self.said):
            return Turn(text=ask)
        texts = [self._edits(path, script.before.get(path), wanted[path]) for path in left]
        answer = "\n".join((*texts, script.final_message))
        tries = sum(said.strip() == answer.strip() for said in self.said)
        return Turn(text=script.final_message if tries >= MAX_TRIES else answer)

    def say(self, text: str) -> Turn:
        return Turn(text=text)

    def again(self) -> Turn:
        return Turn(text=AGAIN)

    def _edits(self, path: str, before: str | None, after: str) -> str:
        """This form knows no removal: a file that is to go is emptied."""
        shown = self._shown(path)
        return self.form.write(path, _ended(before or "") if shown is None else shown, after, self.fence)

    def _shown(self, path: str) -> str | None:
        """The file's text as the CLI shows it last; None where it does not."""
        head = f"\n{path}\n{self.fence.opening}\n"
        for text in reversed(self.told):
            _, found, rest = f"\n{text}\n".rpartition(head)
            if found:
                return _ended(rest.partition(f"{self.fence.closing}\n")[0])
        return None


def _ended(text: str) -> str:
    """The text with an end to its last line, which these forms cannot leave out."""
    return text if not text or text.endswith("\n") else f"{text}\n"
