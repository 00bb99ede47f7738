"""Builds the messages of a chat completions request, in the order that chat's endpoints ask for."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

Part = dict[str, Any]


def text_part(text: str) -> Part:
    return {"type": "text", "text": text}


def image_part(url: str, detail: Any = None) -> Part:
    image = {"url": url, **({"detail": detail} if isinstance(detail, str) else {})}
    return {"type": "image_url", "image_url": image}


def data_url(media_type: str, data: str) -> str:
    return f"data:{media_type};base64,{data}"


def media_part(media_type: str, data: str, filename: str | None = None) -> Part | None:
    """Base64 data as the part of chat that takes its type; None where there is none."""
    if media_type.startswith("image/"):
        return image_part(data_url(media_type, data))
    if media_type in ("audio/wav", "audio/x-wav", "audio/mpeg", "audio/mp3"):
        kind = "wav" if "wav" in media_type else "mp3"
        return {"type": "input_audio", "input_audio": {"data": data, "format": kind}}
    if media_type == "application/pdf":
        name = filename or "document.pdf"
        return {"type": "file", "file": {"filename": name, "file_data": data_url(media_type, data)}}
    return None


@dataclass
class Conversation:
    """The messages so far.

    What one side says in a row is one message, as chat has it: an answer's text and all its calls. Results
    stand directly behind the calls; media that a result holds follows in a message of the user's, since a
    result on chat is text. System texts at the beginning are one message: many models' templates take no
    second.
    """

    messages: list[dict[str, Any]] = field(default_factory=list)
    _media: list[Part] = field(default_factory=list)

    def system(self, text: str) -> None:
        self._settle()
        if not text:
            return
        if self.messages and all(message["role"] == "system" for message in self.messages):
            self.messages[-1]["content"] += "\n\n" + text
        else:
            self.messages.append({"role": "system", "content": text})

    def user(self, parts: list[Part]) -> None:
        self._settle()
        if parts:
            self.messages.append({"role": "user", "content": _content(parts)})

    def said(self, text: str) -> None:
        """A text of the model's."""
        message = self._answer()
        message["content"] = "\n\n".join(filter(None, (message["content"], text))) or None

    def called(self, call_id: str, name: str, arguments: str) -> None:
        """A call of the model's."""
        call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments or "{}"}}
        self._answer().setdefault("tool_calls", []).append(call)

    def result(self, call_id: str, parts: list[Part]) -> None:
        """A tool's result."""
        text = "\n\n".join(part["text"] for part in parts if part["type"] == "text")
        media = [part for part in parts if part["type"] != "text"]
        self.messages.append({"role": "tool", "tool_call_id": call_id, "content": text})
        if media:
            self._media += [text_part(f"From the result of tool call {call_id}:"), *media]

    def finished(self) -> list[dict[str, Any]]:
        self._settle()
        return self.messages

    def _settle(self) -> None:
        """Results are over: the media that they held may follow."""
        if self._media:
            self.messages.append({"role": "user", "content": self._media})
            self._media = []

    def _answer(self) -> dict[str, Any]:
        self._settle()
        if not self.messages or self.messages[-1]["role"] != "assistant":
            self.messages.append({"role": "assistant", "content": None})
        return self.messages[-1]


def function(name: str, description: Any, parameters: Any, strict: Any = None) -> dict[str, Any]:
    """A tool as chat has it."""
    made: dict[str, Any] = {"name": name}
    if isinstance(description, str) and description:
        made["description"] = description
    made["parameters"] = parameters if isinstance(parameters, dict) else {"type": "object", "properties": {}}
    if isinstance(strict, bool):
        made["strict"] = strict
    return {"type": "function", "function": made}


def chosen(name: str) -> dict[str, Any]:
    """The choice of one tool."""
    return {"type": "function", "function": {"name": name}}


def json_format(schema: Any, name: Any = None, strict: Any = None, description: Any = None) -> dict[str, Any]:
    """The response format for answers that follow a schema."""
    made: dict[str, Any] = {"name": name if isinstance(name, str) and name else "answer", "schema": schema}
    if isinstance(description, str):
        made["description"] = description
    if isinstance(strict, bool):
        made["strict"] = strict
    return {"type": "json_schema", "json_schema": made}


def arguments_text(value: Any) -> str:
    """A call's arguments, which other wires hold as an object."""
    return value if isinstance(value, str) else json.dumps({} if value is None else value, ensure_ascii=False)


def _content(parts: list[Part]) -> str | list[Part]:
    """A single text as a string, which every endpoint takes."""
    return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts
