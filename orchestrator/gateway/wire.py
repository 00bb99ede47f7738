"""What the gateway asks of a wire (chat completions, …). One module a wire implements it; `WIRES` lists
them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from orchestrator.adapter import Wire

Target = Literal["call", "models"]


@dataclass(frozen=True)
class Failure:
    """Why a call failed: one of the categories of `scorers.evidence.ModelCall.error`, and the upstream's
    words.
    """

    category: str
    detail: str


@dataclass(frozen=True)
class Prepared:
    """A request, parsed and made ready: `request` as the CLI sent it, `body` as it goes upstream."""

    request: dict[str, Any]
    body: bytes
    streamed: bool
    hide_usage: bool
    settings: dict[str, Any]


@dataclass
class Reading:
    """What a response says of itself; None where it says nothing. `complete` is False for a stream without
    end, `answered` is False where no model said anything: no choice, or no JSON at all.
    """

    reported_model: str | None = None
    usage_raw: dict[str, Any] | None = None
    finish_reason: str | None = None
    refusal: str | None = None
    complete: bool = False
    answered: bool = False
    failure: Failure | None = None


class Meter(Protocol):
    """Reads a response while it passes. `feed` and `finish` return what the CLI is to see of it."""

    reading: Reading

    def feed(self, data: bytes) -> bytes: ...

    def finish(self) -> bytes: ...


@dataclass(frozen=True)
class Path:
    """Where a request goes: `upstream` is the path after the endpoint's base URL."""

    target: Target
    upstream: str


class WireFormat(Protocol):
    """One wire. `prepare` raises ValueError for a body that is no request of this wire."""

    name: Wire

    def match(self, method: str, path: str) -> Path | None: ...

    def prepare(self, body: bytes, model: str) -> Prepared: ...

    def meter(self, *, events: bool, hide_usage: bool) -> Meter: ...

    def texts(self, event: dict[str, Any]) -> Iterable[tuple[Hashable, str]]:
        """The texts of a stream's event, each with its place: a client joins the texts of one place."""
        ...

    def classify(self, status: int, body: bytes) -> Failure: ...

    def error_body(self, message: str, kind: str) -> bytes: ...

    def models_body(self, model: str) -> bytes: ...

    def auth_headers(self, key: str) -> Mapping[str, str]: ...


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
