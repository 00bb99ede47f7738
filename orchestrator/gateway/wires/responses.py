"""The wire of OpenAI's responses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from orchestrator.adapter import Wire
from orchestrator.gateway.settings import AS_THE_CLI_ASKS, GenerationSettings
from orchestrator.gateway.wire import (
    Answer,
    Conversation,
    Path,
    Prepared,
    Prompt,
    Reading,
    Target,
    ToolRequest,
)
from orchestrator.gateway.wires.shared import (
    DETAIL_MAX,
    OpenAI,
    bounded,
    count,
    cumulated,
    member,
    models_path,
    objects,
    parse_request,
    prompts_of,
    recorded,
    renamed,
    settings,
    text_of,
    texts_in,
    tool_request,
    within,
    wordless,
)
from scorers.evidence import Usage

_POST = re.compile(r"(?:^|/)responses(/input_tokens|/compact)?/?$")
_SETTINGS = (
    "temperature",
    "top_p",
    "max_output_tokens",
    "max_tool_calls",
    "reasoning",
    "text",
    "tool_choice",
    "parallel_tool_calls",
    "truncation",
    "store",
    "service_tier",
)
_NAMES = {name: name for name in ("temperature", "top_p", "max_output_tokens")}
_ENDED = ("completed", "incomplete", "failed", "cancelled")
# An item's type -> where it holds the tool's arguments. A hosted tool, which the endpoint runs, is not here.
_CALLS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
}


class ResponsesWire(OpenAI):
    """`WireFormat` of responses."""

    name: Wire = "responses"

    def match(self, method: str, path: str, model: str) -> Path | None:
        found = _POST.search(path)
        if found is None:
            return models_path(method, path, model)
        rest = found[1] or ""
        target: Target = "count" if rest == "/input_tokens" else "call"
        return Path(target, f"/responses{rest}", generates=not rest) if method == "POST" else None

    def prepare(self, body: bytes, model: str, wanted: GenerationSettings = AS_THE_CLI_ASKS) -> Prepared:
        parsed = parse_request(body)
        request = parsed.request
        if not isinstance(request.get("input", ""), (str, list)):
            raise ValueError("the input is neither a text nor a list")
        changes: dict[str, Any] = {"model": model, **renamed(wanted, _NAMES)}
        if wanted.reasoning_effort is not None:
            changes["reasoning"] = within(request.get("reasoning"), effort=wanted.reasoning_effort)
        return parsed.prepared(changes, lambda asked: settings(asked, _SETTINGS))

    def cannot_set(self, wanted: GenerationSettings) -> str | None:
        return wordless(self.name, wanted, lacks=("seed",))

    def texts(self, event: dict[str, Any]) -> Iterable[tuple[tuple[str, ...], str]]:
        """Every text, by the kind of event and the part of the output that it belongs to."""
        place = tuple(str(event.get(name)) for name in ("type", "output_index", "content_index"))
        return texts_in(event, place)

    def usage(self, raw: dict[str, Any]) -> Usage | None:
        """`input_tokens` includes cached input and `output_tokens` includes reasoning."""
        asked, said = count(raw, "input_tokens"), count(raw, "output_tokens")
        if asked is None or said is None:
            return None
        given, made = raw.get("input_tokens_details"), raw.get("output_tokens_details")
        return Usage(
            input=asked,
            output=said,
            cached_read=count(given, "cached_tokens"),
            cache_write=count(given, "cache_write_tokens"),
            reasoning=count(made, "reasoning_tokens"),
        )

    def conversation(self, request: dict[str, Any]) -> Conversation:
        given = request.get("input")
        items = objects(given)
        instructions = text_of(request.get("instructions"))
        first = text_of(items[0].get("content")) if items else text_of(given)
        return Conversation(
            opening=instructions or first,
            offers_tools=bool(request.get("tools")),
            calls=tuple(_calls(items)),
            results={
                str(item.get("call_id")): _result(item.get("output"))
                for item in items
                if str(item.get("type")).endswith("_call_output")
            },
        )

    def prompts(self, request: dict[str, Any]) -> tuple[Prompt, ...]:
        given = request.get("input")
        said: list[tuple[Any, Any]] = [("user", given)] if isinstance(given, str) else []
        said += [(item.get("role"), item.get("content")) for item in objects(given)]
        return prompts_of([("system", request.get("instructions")), *said])

    def answer(self, response: Any) -> Answer:
        items = _output(response)
        said = (item.get("content") for item in items if item.get("type") == "message")
        return Answer("".join(map(text_of, said)), tuple(_calls(items)))

    def read(self, reading: Reading, body: dict[str, Any]) -> None:
        """A response has no type; most events hold a part of the output, some the response so far."""
        response = body.get("response") if "type" in body else body
        part, item = body.get("delta"), member(body.get("item"), "type")
        calls = isinstance(item, str) and item.endswith("_call")
        reading.spoke = reading.spoke or calls or (isinstance(part, str) and bool(part))
        if isinstance(response, dict):
            self._read(reading, response)
        elif body.get("type") == "error":
            reading.failure = self.classify(200, json.dumps(body).encode())
        elif body.get("type") == "response.refusal.delta":
            reading.refusal = ((reading.refusal or "") + text_of(body.get("delta")))[:DETAIL_MAX] or None

    def _read(self, reading: Reading, response: dict[str, Any]) -> None:
        """One that has not ended states no reason for its end."""
        reading.reported_model = bounded(response.get("model")) or reading.reported_model
        reading.usage_raw = cumulated(reading.usage_raw, response.get("usage"))
        output = response.get("output")
        reading.answered = reading.answered or isinstance(output, list)
        status = response.get("status")
        if status in _ENDED:
            reading.finish_reason = bounded(member(response.get("incomplete_details"), "reason")) or status
        parts = [part for item in objects(output) for part in objects(item.get("content"))]
        refusal = "".join(text_of(part.get("refusal")) for part in parts)
        reading.refusal = refusal[:DETAIL_MAX] or reading.refusal
        if reading.finish_reason == "content_filter" and reading.refusal is None:
            reading.refusal = "content_filter"
        if response.get("error") or status == "failed":
            reading.failure = self.classify(200, json.dumps({"error": response.get("error")}).encode())


def _output(response: Any) -> list[dict[str, Any]]:
    """The items of a recorded response. Of a stream: as each was said to be done, else as the last event has
    them; of one that broke off, also the text of those that were not done.
    """
    if isinstance(response, dict):
        return objects(response.get("output"))
    done: dict[int, dict[str, Any]] = {}
    begun: dict[int, str] = {}
    last: list[dict[str, Any]] = []
    for event in recorded(response):
        index = event.get("output_index")
        kind, item = event.get("type"), event.get("item")
        if kind == "response.output_item.done" and isinstance(item, dict):
            done[index if isinstance(index, int) else len(done)] = item
        elif kind == "response.output_text.delta" and isinstance(index, int):
            begun[index] = begun.get(index, "") + text_of(event.get("delta"))
        last = objects(member(event.get("response"), "output")) or last
    if last and not done:
        return last
    parts = {index: {"type": "message", "content": text} for index, text in begun.items()}
    items = {**parts, **done}
    return [items[index] for index in sorted(items)]


def _calls(items: list[dict[str, Any]]) -> Iterable[ToolRequest]:
    """The tool calls among items, less those that the endpoint ran itself."""
    for item in items:
        kind = str(item.get("type"))
        if kind in _CALLS:
            name = item.get("name") or kind.removesuffix("_call")
            yield tool_request(item.get("call_id"), name, item.get(_CALLS[kind]))


def _result(output: Any) -> str:
    """A tool's result, which is a text, a list of parts, or (of a shell) a list of what it printed."""
    if isinstance(output, str):
        return output
    printed = (part.get(name) for part in objects(output) for name in ("text", "stdout", "stderr"))
    return "".join(map(text_of, printed))
