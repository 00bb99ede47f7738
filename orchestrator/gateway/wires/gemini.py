"""The wire of Gemini's generateContent and streamGenerateContent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from orchestrator.adapter import Wire
from orchestrator.gateway.jsontext import canonical
from orchestrator.gateway.settings import AS_THE_CLI_ASKS, GenerationSettings
from orchestrator.gateway.wire import (
    Answer,
    Conversation,
    ErrorKind,
    Failure,
    Path,
    Prepared,
    Prompt,
    Reading,
    Target,
    ToolRequest,
)
from orchestrator.gateway.wires.shared import (
    bounded,
    categorise,
    count,
    cumulated,
    json_value,
    member,
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
    within,
    wordless,
)
from scorers.evidence import Usage

VERSION = "v1beta"
"""Put where neither the CLI's path nor the endpoint's base URL names a version."""

_PATH = re.compile(r"(?:^|/)(?:(v\d+\w*)/)?models(?:/(.+?))?/?$")
_ACTION = re.compile(r"(.+):(generateContent|streamGenerateContent|countTokens)")
_CONFIG = (
    "temperature",
    "topP",
    "topK",
    "maxOutputTokens",
    "thinkingConfig",
    "seed",
    "stopSequences",
    "candidateCount",
    "presencePenalty",
    "frequencyPenalty",
)
_NAMES = {
    "temperature": "temperature",
    "top_p": "topP",
    "max_output_tokens": "maxOutputTokens",
    "seed": "seed",
}
_EFFORTS = ("minimal", "low", "medium", "high", "xhigh")
_REFUSED = frozenset(
    ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR", "JAILBREAK")
)
_ERRORS: dict[ErrorKind, tuple[int, str]] = {
    "bad_request": (400, "INVALID_ARGUMENT"),
    "too_large": (413, "INVALID_ARGUMENT"),
    "unauthorised": (401, "UNAUTHENTICATED"),
    "limit": (403, "PERMISSION_DENIED"),
    "not_found": (404, "NOT_FOUND"),
    "model_not_found": (404, "NOT_FOUND"),
    "endpoint_down": (502, "UNAVAILABLE"),
}
_SECONDS = re.compile(r"(\d+(?:\.\d+)?)s")


class GeminiWire:
    """`WireFormat` of generateContent. The model stands in the path; the cell's model goes upstream."""

    name: Wire = "gemini"

    def match(self, method: str, path: str, model: str) -> Path | None:
        found = _PATH.search(path)
        if found is None:
            return None
        version, rest = found[1] or VERSION, found[2]
        if method == "GET":
            return Path("models", model=rest) if rest in (None, _bare(model)) else None
        action = _ACTION.fullmatch(rest or "")
        if method != "POST" or action is None:
            return None
        target: Target = "count" if action[2] == "countTokens" else "call"
        upstream = f"/models/{quote(_bare(model), safe='/')}:{action[2]}"
        return Path(target, upstream, version, model=action[1], generates=target == "call")

    def prepare(self, body: bytes, model: str, wanted: GenerationSettings = AS_THE_CLI_ASKS) -> Prepared:
        parsed = parse_request(body)
        request = parsed.request
        inner = request.get("generateContentRequest")
        if not isinstance(request.get("contents"), list) and not isinstance(inner, dict):
            raise ValueError("no list of contents")
        changes: dict[str, Any] = {}
        name = f"models/{_bare(model)}"
        if "model" in request and request["model"] != name:
            changes["model"] = name
        if isinstance(inner, dict) and inner.get("model") != name:
            changes["generateContentRequest"] = {**inner, "model": name}
        if wanted.given():
            name = _spelling(request, "generationConfig")
            changes[name] = _configured(request.get(name), wanted)
        return parsed.prepared(changes, _stated)

    def cannot_set(self, wanted: GenerationSettings) -> str | None:
        return wordless(self.name, wanted, efforts=_EFFORTS)

    def read(self, reading: Reading, body: dict[str, Any]) -> None:
        """Usage is repeated in every chunk and grows."""
        reading.reported_model = bounded(body.get("modelVersion")) or reading.reported_model
        reading.usage_raw = cumulated(reading.usage_raw, body.get("usageMetadata"))
        candidate = _candidate(body)
        parts = objects(member(candidate.get("content"), "parts"))
        reading.spoke = reading.spoke or any(says(part, but=("thoughtSignature",)) for part in parts)
        blocked = bounded(member(body.get("promptFeedback"), "blockReason"))
        reason = blocked or bounded(candidate.get("finishReason"))
        reading.answered = reading.answered or bool(candidate) or blocked is not None
        reading.finish_reason = reason or reading.finish_reason
        if blocked or reason in _REFUSED:
            reading.refusal = reason
        if body.get("error"):
            reading.failure = self.classify(200, json.dumps({"error": body["error"]}).encode())

    def texts(self, event: dict[str, Any]) -> Iterable[tuple[tuple[str, ...], str]]:
        return texts_in(event.get("candidates"))

    def classify(self, status: int, body: bytes) -> Failure:
        """Errors of a stream come in a list."""
        parsed = json_value(body)
        error = member(parsed[0] if isinstance(parsed, list) and parsed else parsed, "error")
        codes = (member(error, "code"), member(error, "status"))
        return categorise(status, codes, member(error, "message"), body, _stated_wait(error))

    def error_body(self, message: str, kind: ErrorKind) -> bytes:
        code, status = _ERRORS[kind]
        error = {"code": code, "message": message, "status": status}
        return json.dumps({"error": error}).encode()

    def models_body(self, model: str, *, one: bool) -> bytes:
        methods = ["generateContent", "streamGenerateContent", "countTokens"]
        entry = {
            "name": f"models/{_bare(model)}",
            "displayName": model,
            "supportedGenerationMethods": methods,
        }
        return json.dumps(entry if one else {"models": [entry]}).encode()

    def auth_headers(self, key: str) -> Mapping[str, str]:
        return {"x-goog-api-key": key} if key else {}

    def usage(self, raw: dict[str, Any]) -> Usage | None:
        """Cached input is inside `promptTokenCount`; results of tools that the endpoint ran are outside, and
        thoughts are outside `candidatesTokenCount`.

        A count of 0 is left out on this wire: without candidates 0 is taken where the total says so.
        """
        asked, said = count(raw, "promptTokenCount"), count(raw, "candidatesTokenCount")
        if asked is None:
            return None
        asked += count(raw, "toolUsePromptTokenCount") or 0
        thoughts = count(raw, "thoughtsTokenCount")
        if said is None and asked + (thoughts or 0) == count(raw, "totalTokenCount"):
            said = 0
        if said is None:
            return None
        return Usage(
            input=asked,
            output=said + (thoughts or 0),
            cached_read=count(raw, "cachedContentTokenCount"),
            reasoning=thoughts,
        )

    def conversation(self, request: dict[str, Any]) -> Conversation:
        contents = objects(request.get("contents"))
        parts = [part for content in contents for part in objects(content.get("parts"))]
        system = text_of(member(spelled(request, "systemInstruction"), "parts"))
        calls, results = _paired(parts)
        return Conversation(
            opening=system or (text_of(contents[0].get("parts")) if contents else ""),
            offers_tools=bool(request.get("tools")),
            calls=tuple(calls),
            results=results,
        )

    def prompts(self, request: dict[str, Any]) -> tuple[Prompt, ...]:
        system = member(spelled(request, "systemInstruction"), "parts")
        contents = objects(request.get("contents"))
        said = ((content.get("role", "user"), content.get("parts")) for content in contents)
        return prompts_of([("system", system), *said])

    def answer(self, response: Any) -> Answer:
        parts = [
            part
            for body in recorded(response)
            for part in objects(member(_candidate(body).get("content"), "parts"))
        ]
        text = text_of([part for part in parts if part.get("thought") is not True])
        return Answer(text, tuple(call for part in parts if (call := _call(part))))


def _candidate(body: dict[str, Any]) -> dict[str, Any]:
    """The candidate with index 0, or {}: it is the one that a CLI acts on."""
    for candidate in objects(body.get("candidates")):
        if not candidate.get("index"):
            return candidate
    return {}


def _stated_wait(error: Any) -> float | None:
    """Seconds of a `RetryInfo` among the details; this wire has no header for them."""
    for detail in objects(member(error, "details")):
        if wait := _SECONDS.fullmatch(text_of(detail.get("retryDelay"))):
            return float(wait[1])
    return None


def _call(part: dict[str, Any]) -> ToolRequest | None:
    call = spelled(part, "functionCall")
    if not isinstance(call, dict):
        return None
    return tool_request(call.get("id"), call.get("name"), call.get("args"))


def _paired(parts: list[dict[str, Any]]) -> tuple[list[ToolRequest], dict[str, str]]:
    """The calls and results of a conversation. Most have no id: a result belongs to the first call of its
    name that has none yet, and both get an id of their own.
    """
    calls: list[ToolRequest] = []
    results: dict[str, str] = {}
    for part in parts:
        if call := _call(part):
            call_id = call.call_id or f"{call.name}#{len(calls)}"
            calls.append(ToolRequest(call_id, call.name, call.arguments))
        result = spelled(part, "functionResponse")
        if isinstance(result, dict):
            stated, name = result.get("id"), result.get("name")
            open_calls = [call for call in calls if call.call_id not in results]
            for call in open_calls:
                if call.call_id == stated or (not stated and call.name == name):
                    results[call.call_id] = _result(result.get("response"))
                    break
    return calls, results


def _result(response: Any) -> str:
    """A tool's result: its one text, else all of it as JSON."""
    values = list(response.values()) if isinstance(response, dict) else []
    return values[0] if len(values) == 1 and isinstance(values[0], str) else canonical(response)


def _configured(config: Any, wanted: GenerationSettings) -> dict[str, Any]:
    """A generation configuration with the settings that are wanted, in the spelling of its own."""
    asked = within(config)
    changes = {_spelling(asked, name): value for name, value in renamed(wanted, _NAMES).items()}
    if wanted.reasoning_effort is not None:
        name = _spelling(asked, "thinkingConfig")
        thinking = within(asked.get(name))
        # A budget and a level together are refused.
        for budget in ("thinkingBudget", "thinking_budget"):
            thinking.pop(budget, None)
        thinking[_spelling(thinking, "thinkingLevel")] = wanted.reasoning_effort.upper()
        changes[name] = thinking
    return asked | changes


def _stated(request: dict[str, Any]) -> dict[str, Any]:
    config = spelled(request, "generationConfig")
    return settings({name: spelled(config, name) for name in _CONFIG}, _CONFIG)


def _spelling(value: dict[str, Any], name: str) -> str:
    """The name of a member as an object has it: as clients may also write it, with underscores."""
    underscored = re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", name)
    return underscored if member(value, name) is None and underscored in value else name


def spelled(value: Any, name: str) -> Any:
    """A member by its name or, as clients may also write it, with underscores."""
    return value.get(_spelling(value, name)) if isinstance(value, dict) else None


def _bare(model: str) -> str:
    return model.removeprefix("models/")
