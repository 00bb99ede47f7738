"""The wire of OpenAI's chat completions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from orchestrator.adapter import Wire
from orchestrator.gateway.jsontext import drop_member, members
from orchestrator.gateway.settings import AS_THE_CLI_ASKS, GenerationSettings
from orchestrator.gateway.wire import (
    Answer,
    Conversation,
    Path,
    Prepared,
    Prompt,
    Reading,
    ToolRequest,
)
from orchestrator.gateway.wires.shared import (
    DETAIL_MAX,
    OpenAI,
    bounded,
    count,
    cumulated,
    json_value,
    member,
    models_path,
    objects,
    parse_request,
    prompts_of,
    recorded,
    renamed,
    says,
    settings,
    text_of,
    texts_in,
    tool_request,
)
from scorers.evidence import Usage

_CALL = re.compile(r"(?:^|/)chat/completions/?$")
_SETTINGS = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "max_tokens",
    "max_completion_tokens",
    "reasoning_effort",
    "reasoning",
    "seed",
    "stop",
    "n",
    "frequency_penalty",
    "presence_penalty",
    "tool_choice",
    "parallel_tool_calls",
    "verbosity",
    "service_tier",
)
_NAMES = {name: name for name in ("temperature", "top_p", "seed", "reasoning_effort")}
_MOST = ("max_completion_tokens", "max_tokens")
"""Two names of one setting: which of them an endpoint takes is known to the CLI that asks it."""


class ChatWire(OpenAI):
    """`WireFormat` of chat completions. With `ask_usage`, streams are asked for usage on the CLI's behalf."""

    name: Wire = "chat"

    def __init__(self, *, ask_usage: bool = True) -> None:
        self._ask_usage = ask_usage

    def match(self, method: str, path: str, model: str) -> Path | None:
        if _CALL.search(path):
            return Path("call", "/chat/completions", generates=True) if method == "POST" else None
        return models_path(method, path, model)

    def prepare(self, body: bytes, model: str, wanted: GenerationSettings = AS_THE_CLI_ASKS) -> Prepared:
        parsed = parse_request(body)
        request = parsed.request
        if not isinstance(request.get("messages"), list):
            raise ValueError("no list of messages")
        changes: dict[str, Any] = {"model": model, **renamed(wanted, _NAMES)}
        if wanted.max_output_tokens is not None:
            named = [name for name in _MOST if request.get(name) is not None] or _MOST[:1]
            changes |= dict.fromkeys(named, wanted.max_output_tokens)
        options = request.get("stream_options")
        streams, asked = request.get("stream") is True, member(options, "include_usage") is True
        hide_usage = self._ask_usage and streams and not asked
        if hide_usage:
            changes["stream_options"] = {
                **(options if isinstance(options, dict) else {}),
                "include_usage": True,
            }
        shown = _without_usage if hide_usage else None
        return parsed.prepared(changes, lambda asked: settings(asked, _SETTINGS), shown)

    def cannot_set(self, wanted: GenerationSettings) -> str | None:
        """Efforts are a model's affair: endpoints of this wire serve models of many vendors."""
        del wanted
        return None

    def read(self, reading: Reading, body: dict[str, Any]) -> None:
        reading.reported_model = bounded(body.get("model")) or reading.reported_model
        reading.fingerprint = bounded(body.get("system_fingerprint")) or reading.fingerprint
        reading.usage_raw = cumulated(reading.usage_raw, body.get("usage"))
        choice = first_choice(body)
        reading.answered = reading.answered or bool(choice)
        reading.spoke = reading.spoke or says(choice.get("delta"), but=("role",))
        reason = choice.get("finish_reason")
        reading.finish_reason = bounded(reason) or reading.finish_reason
        refusal = member(choice.get("delta") or choice.get("message"), "refusal")
        if isinstance(refusal, str) and refusal:
            reading.refusal = ((reading.refusal or "") + refusal)[:DETAIL_MAX]
        if reason == "content_filter" and reading.refusal is None:
            reading.refusal = "content_filter"
        if body.get("error"):
            reading.failure = self.classify(200, json.dumps({"error": body["error"]}).encode())

    def texts(self, event: dict[str, Any]) -> Iterable[tuple[tuple[str, ...], str]]:
        """Every text of the choices, whatever its name: endpoints name what they stream differently."""
        return texts_in(event.get("choices"))

    def usage(self, raw: dict[str, Any]) -> Usage | None:
        """`prompt_tokens` includes cached input and `completion_tokens` includes reasoning."""
        asked, said = count(raw, "prompt_tokens"), count(raw, "completion_tokens")
        if asked is None or said is None:
            return None
        prompt, completion = raw.get("prompt_tokens_details"), raw.get("completion_tokens_details")
        return Usage(
            input=asked,
            output=said,
            cached_read=count(prompt, "cached_tokens"),
            cache_write=count(prompt, "cache_write_tokens"),
            reasoning=count(completion, "reasoning_tokens"),
        )

    def conversation(self, request: dict[str, Any]) -> Conversation:
        messages = objects(request.get("messages"))
        return Conversation(
            opening=text_of(messages[0].get("content")) if messages else "",
            offers_tools=bool(request.get("tools")),
            calls=tuple(call for message in messages for call in _calls(message)),
            results={
                str(message.get("tool_call_id")): text_of(message.get("content"))
                for message in messages
                if message.get("role") == "tool"
            },
        )

    def prompts(self, request: dict[str, Any]) -> tuple[Prompt, ...]:
        messages = objects(request.get("messages"))
        return prompts_of((message.get("role"), message.get("content")) for message in messages)

    def answer(self, response: Any) -> Answer:
        message = response_message(response)
        return Answer(text_of(message.get("content")), tuple(_calls(message)))


def _without_usage(event: bytes, data: bytes, parsed: dict[str, Any]) -> bytes:
    """What a CLI sees that did not ask for usage."""
    if "usage" not in parsed:
        return event
    if parsed.get("usage") and not parsed.get("choices") and not parsed.get("error"):
        return b""
    try:
        text = data.decode("utf-8")
        found = members(text)
    except ValueError:
        # Not quite JSON, though it could be read: the CLI is to see it as it is.
        return event
    return event.replace(data, drop_member(text, found, "usage").encode(), 1)


def first_choice(body: dict[str, Any]) -> dict[str, Any]:
    """The choice with index 0, or {}: further choices (`n` > 1) are not what a CLI acts on."""
    for choice in objects(body.get("choices")):
        if not choice.get("index"):
            return choice
    return {}


def response_message(response: Any) -> dict[str, Any]:
    """The assistant's message of a recorded response, put together from its deltas when it was streamed;
    else {}.
    """
    if isinstance(response, dict):
        message = first_choice(response).get("message")
        return message if isinstance(message, dict) else {}
    return _assembled(response) if isinstance(response, str) else {}


def _assembled(stream: str) -> dict[str, Any]:
    content: list[str] = []
    refusal: list[str] = []
    calls: dict[int, dict[str, Any]] = {}
    parts = CallParts()
    for chunk in recorded(stream):
        delta = first_choice(chunk).get("delta")
        content.append(text_of(member(delta, "content")))
        refusal.append(text_of(member(delta, "refusal")))
        for part in objects(member(delta, "tool_calls")):
            _add_part(calls, parts.call_of(part), part)
    return {
        "role": "assistant",
        "content": "".join(content) or None,
        "refusal": "".join(refusal) or None,
        "tool_calls": [calls[number] for number in sorted(calls, key=parts.order)],
    }


class CallParts:
    """Tells which call of a streamed answer a delta belongs to, counted from 0.

    The index says so, but for endpoints that leave it out, or give 0 to all: there a new call is told by a
    new id, or without any id by a name behind arguments that are whole.
    """

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._places: list[int] = []
        self._ids: list[str] = []
        self._arguments: list[str] = []

    def call_of(self, part: dict[str, Any]) -> int:
        index, call_id = part.get("index"), text_of(part.get("id"))
        place = index if isinstance(index, int) else None
        number = self._numbers.get(place)
        if number is None or self._is_new(number, call_id, part.get("function")):
            number = self._numbers[place] = len(self._ids)
            self._places.append(number if place is None else place)
            self._ids.append("")
            self._arguments.append("")
        self._ids[number] = self._ids[number] or call_id
        self._arguments[number] += text_of(member(part.get("function"), "arguments"))
        return number

    def order(self, number: int) -> tuple[int, int]:
        """What calls are to be sorted by: their index, where they have one."""
        return self._places[number], number

    def _is_new(self, number: int, call_id: str, function: Any) -> bool:
        """Whether a delta with the index of a call is the beginning of another."""
        known, so_far = self._ids[number], self._arguments[number].rstrip()
        if not text_of(member(function, "name")) or (known and call_id in ("", known)):
            return False
        whole = so_far.endswith("}") and json_value(so_far) is not None
        if call_id:
            # Of a call that has not ended, another id is a name that an endpoint changes as it goes.
            return bool(known) and (whole or not so_far)
        return whole and bool(member(function, "arguments"))


def _add_part(calls: dict[int, dict[str, Any]], number: int, part: dict[str, Any]) -> None:
    """Add one delta of a tool call."""
    call = calls.setdefault(number, {"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
    if part.get("id") and not call["id"]:
        call["id"] = part["id"]
    function = part.get("function")
    if isinstance(function, dict):
        # Some endpoints repeat the name in every delta.
        call["function"]["name"] = call["function"]["name"] or text_of(function.get("name"))
        call["function"]["arguments"] += text_of(function.get("arguments"))


def _calls(message: dict[str, Any]) -> list[ToolRequest]:
    """The tool calls of an assistant's message."""
    return [
        tool_request(call.get("id"), member(function, "name"), member(function, "arguments"))
        for call in objects(message.get("tool_calls"))
        if isinstance(function := call.get("function"), dict)
    ]
