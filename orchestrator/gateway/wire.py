"""What the gateway asks of a wire. One module of `wires/` a wire implements it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from orchestrator.adapter import Wire
from orchestrator.gateway.settings import AS_THE_CLI_ASKS, GenerationSettings
from scorers.evidence import Usage

Target = Literal["call", "count", "models"]
"""`count` is a request for a count of tokens: no model runs for it, so it is no model call."""


Shown = Callable[[bytes, bytes, dict[str, Any]], bytes]
"""What the CLI is to see of an event, given the event, its data and the object that the data is."""


@dataclass(frozen=True)
class Failure:
    """Why a call failed: one of the categories of `scorers.evidence.ModelCall.error`, and the upstream's
    words. `wait_s` is the wait that the body itself states, infinite where waiting is of no use.
    """

    category: str
    detail: str
    wait_s: float | None = None


ErrorKind = Literal[
    "bad_request", "too_large", "unauthorised", "limit", "not_found", "model_not_found", "endpoint_down"
]


@dataclass(frozen=True)
class Prepared:
    """A request, parsed and made ready: `request` as the CLI sent it, `body` as it goes upstream.

    `settings` are the generation settings that go upstream, by the wire's names; `settings_before` says of
    each that the gateway changed what the CLI had asked for, None for nothing. `shown` is set where the
    gateway asked for more than the CLI did: what the CLI is to see of a stream.
    """

    request: dict[str, Any]
    body: bytes
    settings: dict[str, Any]
    settings_before: dict[str, Any] = field(default_factory=dict)
    shown: Shown | None = None


@dataclass
class Reading:
    """What a response says of itself; None where it says nothing. `complete` is False for a stream without
    end, `answered` is False where no model said anything: no choice, or no JSON at all. `spoke` is set by the
    first event of a stream that holds text, reasoning or a part of a tool call.
    """

    reported_model: str | None = None
    fingerprint: str | None = None
    usage_raw: dict[str, Any] | None = None
    finish_reason: str | None = None
    refusal: str | None = None
    complete: bool = False
    answered: bool = False
    spoke: bool = False
    failure: Failure | None = None


@dataclass(frozen=True)
class ToolRequest:
    """A tool call as the wire has it. `call_id` is empty where the wire gives none."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Conversation:
    """What a request tells of the conversation so far.

    `opening` is its first text, the system prompt where there is one; `calls` are the tool calls it repeats,
    in order, and `results` the tools' results by `call_id`.
    """

    opening: str = ""
    offers_tools: bool = False
    calls: tuple[ToolRequest, ...] = ()
    results: Mapping[str, str] = field(default_factory=dict)


Role = Literal["system", "user"]


@dataclass(frozen=True)
class Prompt:
    """A text that was put before the model, by the system or in the user's name."""

    role: Role
    text: str


@dataclass(frozen=True)
class Answer:
    """What the model said in a response: its text, without reasoning and refusals, and its tool calls."""

    text: str = ""
    calls: tuple[ToolRequest, ...] = ()


@dataclass(frozen=True)
class Path:
    """Where a request goes: `upstream` is the path after the endpoint's base URL and the API's version.

    `version` is put between them where the base URL does not end in a version itself; "" is never put.
    `model` is the model that the path names. `generates` is False where a request takes no generation
    settings.
    """

    target: Target
    upstream: str = ""
    version: str = ""
    model: str | None = None
    generates: bool = False


class WireFormat(Protocol):
    """One wire: how its requests, responses and errors are written, and what they state.

    The first half serves a CLI, the second reads what was recorded. Readers take anything an agent or an
    endpoint may have sent and never raise.
    """

    name: Wire

    def match(self, method: str, path: str, model: str) -> Path | None:
        """Where a request goes that is about the cell's `model`; None for a path that the wire lacks."""
        ...

    def prepare(self, body: bytes, model: str, wanted: GenerationSettings = AS_THE_CLI_ASKS) -> Prepared:
        """The request with `model` and the settings that are `wanted`. Raises ValueError for a body that is
        no request of this wire.
        """
        ...

    def cannot_set(self, wanted: GenerationSettings) -> str | None:
        """What of the settings this wire has no word for; None when it can set them all."""
        ...

    def read(self, reading: Reading, body: dict[str, Any]) -> None:
        """Take into the reading what a whole response states, or one event of a stream."""
        ...

    def texts(self, event: dict[str, Any]) -> Iterable[tuple[Hashable, str]]:
        """The texts of a stream's event, each with its place: a client joins the texts of one place."""
        ...

    def classify(self, status: int, body: bytes) -> Failure: ...

    def error_body(self, message: str, kind: ErrorKind) -> bytes:
        """An error of the gateway's own."""
        ...

    def models_body(self, model: str, *, one: bool) -> bytes:
        """The list of models, which is the cell's model alone, or with `one` its entry."""
        ...

    def auth_headers(self, key: str) -> Mapping[str, str]: ...

    def usage(self, raw: dict[str, Any]) -> Usage | None:
        """Usage as cab counts it, from what the upstream stated; None unless both totals are stated."""
        ...

    def conversation(self, request: dict[str, Any]) -> Conversation: ...

    def prompts(self, request: dict[str, Any]) -> tuple[Prompt, ...]:
        """The texts that a request puts before the model, in order, without results of tools."""

    def answer(self, response: Any) -> Answer:
        """`response` as it was recorded: JSON, or the text of a stream or of a body that was cut."""
        ...


@dataclass
class Capture:
    """Keeps a body for the record, at most `limit` bytes of it."""

    limit: int
    size: int = 0
    parts: list[bytes] = field(default_factory=list)

    def add(self, data: bytes) -> None:
        room = self.limit - self.size
        self.size += len(data)
        if room > 0:
            self.parts.append(data[:room])

    @property
    def truncated(self) -> bool:
        return self.size > self.limit

    def data(self) -> bytes:
        return b"".join(self.parts)
