"""What the wires share: parts of JSON that nobody vouches for, and the categories of failures."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.gateway.jsontext import Member, canonical, deep, members, set_members
from orchestrator.gateway.settings import GenerationSettings
from orchestrator.gateway.sse import event_data, split_events
from orchestrator.gateway.wire import ErrorKind, Failure, Path, Prepared, Prompt, Role, Shown, ToolRequest

DETAIL_MAX = 2000
NAME_MAX = 200
SETTING_MAX = 1000
COUNT_MAX = (1 << 53) - 1
"""The largest number that all readers of JSON read alike."""

_MODELS = re.compile(r"(?:^|/)models(?:/(.+?))?/?$")

# One table for all wires: endpoints that serve many vendors' models pass on the vendors' own words.
_OVERFLOW_CODES = {
    "context_length_exceeded",
    "exceed_context_size_error",
    "string_above_max_length",
    "model_context_window_exceeded",
}
_OVERFLOW_WORDS = re.compile(
    r"context[ _-]?(length|window|size|limit)|maximum context|(prompt|input) is too long"
    r"|too many (input )?tokens|reduce the length|token count .{0,40}exceeds the maximum",
    re.IGNORECASE,
)
_ACCOUNT_STATUS = (401, 402, 403)
# Said with status 400, though nothing is wrong with the request.
_ACCOUNT_WORDS = re.compile(
    r"api[ _]key[ _](not[ _]valid|invalid|expired)|credit balance is too low|location is not supported",
    re.IGNORECASE,
)
# Not the CLI's doing: path, method and model are the gateway's choice, and it is the endpoint that gave up.
_ENDPOINT_STATUS = (404, 405, 408, 425)
_STATUS_OF = {
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "INVALID_ARGUMENT": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "UNAUTHENTICATED": 401,
    "billing_error": 402,
    "permission_error": 403,
    "PERMISSION_DENIED": 403,
    "not_found_error": 404,
    "NOT_FOUND": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "RESOURCE_EXHAUSTED": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_NO_USE_WAITING = "insufficient_quota"


def categorise(
    status: int, codes: Iterable[Any], message: Any, body: bytes, wait_s: float | None = None
) -> Failure:
    """The category of a failed response by its status, its error's names and its message.

    A status below 300 is that of a response in which the error came later: the names tell the status then,
    and 500 is taken where they do not. `wait_s` is the wait that the body states.
    """
    named = {str(code) for code in codes if code is not None}
    text = body[:DETAIL_MAX].decode("utf-8", "replace")
    if status < 300:
        status = next(filter(None, map(_status_of, sorted(named))), 500)
    detail = f"HTTP {status}: {text}"
    said = message if isinstance(message, str) and message else text
    if status == 429:
        hopeless = _NO_USE_WAITING in named or _NO_USE_WAITING in text
        return Failure("rate_limited", detail, math.inf if hopeless else wait_s)
    if named & _OVERFLOW_CODES or _OVERFLOW_WORDS.search(said):
        return Failure("context_overflow", detail)
    if status >= 500:
        return Failure("upstream_5xx", detail)
    if status in _ACCOUNT_STATUS or (status == 400 and _ACCOUNT_WORDS.search(text)):
        return Failure("key_refused", detail)
    endpoint = status in _ENDPOINT_STATUS or status < 400
    return Failure("endpoint_down" if endpoint else "bad_request", detail)


def openai_failure(status: int, body: bytes) -> Failure:
    """`WireFormat.classify` where errors are written as OpenAI does, at the top or inside `error`."""
    parsed = json_object(body)
    inner = parsed.get("error")
    error = inner if isinstance(inner, dict) else parsed
    return categorise(status, (error.get("code"), error.get("type")), error.get("message"), body)


def openai_error(message: str, kind: ErrorKind) -> bytes:
    known = "invalid_request_error" if kind == "model_not_found" else kind
    error = {"message": message, "type": known, "param": None, "code": kind}
    return json.dumps({"error": error}).encode()


def openai_models(model: str, *, one: bool) -> bytes:
    entry = {"id": model, "object": "model", "created": 0, "owned_by": "cab"}
    return json.dumps(entry if one else {"object": "list", "data": [entry]}).encode()


class OpenAI:
    """What the wires of OpenAI have in common: errors, the list of models, where the key goes."""

    def classify(self, status: int, body: bytes) -> Failure:
        return openai_failure(status, body)

    def error_body(self, message: str, kind: ErrorKind) -> bytes:
        return openai_error(message, kind)

    def models_body(self, model: str, *, one: bool) -> bytes:
        return openai_models(model, one=one)

    def auth_headers(self, key: str) -> Mapping[str, str]:
        return bearer(key)


def models_path(method: str, path: str, model: str) -> Path | None:
    """A request for the list of models, or for the entry of the cell's."""
    found = _MODELS.search(path)
    if found is None or method != "GET" or found[1] not in (None, model):
        return None
    return Path("models", model=found[1])


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def parse_request(body: bytes) -> Parsed:
    """Raises ValueError when the body is no JSON object."""
    text = body.decode("utf-8")
    found = members(text)
    return Parsed(body, text, found, {member.key: member.value for member in found})


def wordless(
    wire: str, wanted: GenerationSettings, lacks: Iterable[str] = (), efforts: Iterable[str] | None = None
) -> str | None:
    """`WireFormat.cannot_set` of a wire that lacks some settings, and knows these efforts only."""
    given = wanted.given()
    for name in lacks:
        if name in given:
            return f"the wire {wire} has no {name}"
    effort = given.get("reasoning_effort")
    if effort is not None and efforts is not None and effort not in efforts:
        return f"the wire {wire} has no reasoning_effort {effort!r}"
    return None


def within(value: Any, **changes: Any) -> dict[str, Any]:
    """An object with some members set; no object is an empty one."""
    return {**(value if isinstance(value, dict) else {}), **changes}


def renamed(wanted: GenerationSettings, names: Mapping[str, str]) -> dict[str, Any]:
    """The settings that are wanted and have a plain name of their own on a wire, by that name."""
    return {names[name]: value for name, value in wanted.given().items() if name in names}


@dataclass(frozen=True)
class Parsed:
    """A request: its bytes, its text, its members and where they stand, and its object."""

    body: bytes
    text: str
    members: list[Member]
    request: dict[str, Any]

    def prepared(
        self,
        changes: Mapping[str, Any],
        stated: Callable[[dict[str, Any]], dict[str, Any]],
        shown: Shown | None = None,
    ) -> Prepared:
        """The request with some members set, and every other byte as it was. `stated` reads the settings of
        a request.
        """
        real = {name: value for name, value in changes.items() if self.request.get(name) != value}
        body = set_members(self.text, self.members, real).encode() if real else self.body
        before, after = stated(self.request), stated({**self.request, **real})
        changed = {name: before.get(name) for name in before | after if before.get(name) != after.get(name)}
        return Prepared(self.request, body, after, changed, shown)


def json_value(data: bytes | str) -> Any:
    """The JSON value of a text; None when it is none."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def json_object(data: bytes | str) -> dict[str, Any]:
    """The JSON object of a text; {} when it is none."""
    value = json_value(data)
    return value if isinstance(value, dict) else {}


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects in a list; [] when it is none."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def member(value: Any, name: str) -> Any:
    """A member of an object; None when it is none."""
    return value.get(name) if isinstance(value, dict) else None


def says(part: Any, *, but: Iterable[str]) -> bool:
    """Whether a part of an answer holds text, reasoning or a tool call, in members other than `but`."""
    if not isinstance(part, dict):
        return False
    return any(
        bool(value) and isinstance(value, (str, list, dict))
        for name, value in part.items()
        if name not in but
    )


def bounded(value: Any) -> str | None:
    """A text that is not empty, at most NAME_MAX characters of it; None for anything else."""
    return value[:NAME_MAX] if isinstance(value, str) and value else None


def count(counts: Any, name: str) -> int | None:
    """A count that an object states; None when it does not, or states what can be none."""
    value = member(counts, name)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value <= COUNT_MAX else None


def recorded(response: Any) -> Iterator[dict[str, Any]]:
    """The objects of a recorded response: itself, those of its list, or the events of its stream."""
    if isinstance(response, dict):
        yield response
    elif isinstance(response, list):
        yield from objects(response)
    elif isinstance(response, str):
        for event in split_events(response.encode("utf-8", "replace")):
            data = event_data(event)
            if data is not None and (parsed := json_object(data)):
                yield parsed


def cumulated(stated: dict[str, Any] | None, usage: Any) -> dict[str, Any] | None:
    """Usage after a further statement of it. Totals grow: a count that falls to 0 or null is not stated. So
    it is with their details, which are objects in it.
    """
    if not isinstance(usage, dict):
        return stated
    kept = stated or {}
    said = {name: value for name, value in usage.items() if value or not kept.get(name)}
    return {**kept, **{name: _detailed(kept.get(name), value) for name, value in said.items()}}


def _detailed(stated: Any, said: Any) -> Any:
    """A member of usage after a further statement."""
    if not (isinstance(stated, dict) and isinstance(said, dict)):
        return said
    return {**stated, **{name: value for name, value in said.items() if value or not stated.get(name)}}


def text_of(content: Any) -> str:
    """The text of a message's content, which is a text or a list of parts."""
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in objects(content) if isinstance(part.get("text"), str))


_ROLES: dict[str, Role] = {"system": "system", "developer": "system", "user": "user"}


def prompts_of(said: Iterable[tuple[Any, Any]]) -> tuple[Prompt, ...]:
    """Of pairs of a role and a content those that are the system's or the user's, where they hold text."""
    pairs = ((_ROLES.get(role) if isinstance(role, str) else None, text_of(text)) for role, text in said)
    return tuple(Prompt(role, text) for role, text in pairs if role is not None and text)


def tool_request(call_id: Any, name: Any, arguments: Any) -> ToolRequest:
    """A tool call; arguments that are no text are written as canonical JSON."""
    text = arguments if isinstance(arguments, str) else canonical({} if arguments is None else arguments)
    return ToolRequest(call_id if isinstance(call_id, str) else "", text_of(name), text)


def settings(values: Any, names: Iterable[str]) -> dict[str, Any]:
    """The named members that are set, but those of more than SETTING_MAX characters or too deep."""
    present = {name: value for name in names if (value := member(values, name)) is not None}
    kept = {name: value for name, value in present.items() if not deep(value)}
    return {name: value for name, value in kept.items() if len(canonical(value)) <= SETTING_MAX}


def texts_in(value: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """The texts inside a JSON value with the names on the way to them; in a list, its entry's `index`."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            if inner and isinstance(inner, (str, dict, list)):
                yield from texts_in(inner, (*place, name))
    elif isinstance(value, list):
        for entry in value:
            index = entry.get("index", 0) if isinstance(entry, dict) else 0
            yield from texts_in(entry, (*place, str(index)))


def _status_of(code: str) -> int | None:
    if re.fullmatch(r"[45]\d\d", code):
        return int(code)
    return _STATUS_OF.get(code)
