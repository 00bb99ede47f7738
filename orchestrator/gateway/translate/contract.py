"""What the gateway asks of a translation. All of them end in chat completions: a wire as source is a module
here, with a `Writer` for its answers in `<wire>_answer.py`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from orchestrator.gateway.wire import Failure, Path
from scorers.evidence import Usage


class TranslationError(ValueError):
    """A request that chat completions cannot serve, whatever is left out of it."""


SegmentKind = Literal["reasoning", "text", "refusal", "call"]


@dataclass
class Segment:
    """A stretch of an answer of one kind, as far as it has come; `number` counts them from 0.

    A call has `call_id` and `name`, and `text` are its arguments as the model wrote them.
    """

    kind: SegmentKind
    number: int
    call_id: str = ""
    name: str = ""
    text: str = ""

    def arguments(self) -> dict[str, Any]:
        """A call's arguments where the wire wants an object; what is none is kept as a text for the CLI to
        refuse.
        """
        try:
            value = json.loads(self.text)
        except (ValueError, RecursionError):
            value = None
        return value if isinstance(value, dict) else {"unparsed_arguments": self.text}


@dataclass(frozen=True)
class Head:
    """What an answer states of itself at its beginning; `created` are seconds since 1970."""

    id: str
    model: str
    created: int


@dataclass(frozen=True)
class Ending:
    """How an answer ended: chat's finish reason, the usage if it was stated, and the stop sequence if it was
    named.
    """

    reason: str
    usage: Usage | None = None
    stop_sequence: str | None = None


_STATUS = {
    "rate_limited": 429,
    "context_overflow": 400,
    "bad_request": 400,
    "key_refused": 401,
    "upstream_5xx": 500,
}
"""The HTTP status of a failure that came in a response with another; else 502."""


@dataclass(frozen=True)
class Fault:
    """An endpoint's failure as a CLI is told of it."""

    category: str
    message: str
    status: int

    @classmethod
    def of(cls, failure: Failure, message: str, status: int = 200) -> Fault:
        """`status` is the response's own: that of a success or a redirection is replaced."""
        if status < 400 or failure.category == "context_overflow":
            status = _STATUS.get(failure.category, 502)
        return cls(failure.category, message, status)


class Writer(Protocol):
    """Writes one answer on the CLI's wire: each method gives the bytes of the stream that it makes due.

    Called in this order: `begin`; for each segment `open`, `add` for every part of its text and `close`;
    then `end`. `error` ends a stream instead, at any point. `whole` is the answer without a stream, after
    `end`.
    """

    content_type: str

    def begin(self, head: Head) -> bytes: ...

    def open(self, segment: Segment, /) -> bytes: ...

    def add(self, segment: Segment, part: str) -> bytes: ...

    def close(self, segment: Segment) -> bytes: ...

    def end(self, ending: Ending) -> bytes: ...

    def error(self, fault: Fault) -> bytes: ...

    def whole(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Asked:
    """A CLI's request: on some wires path and query are a part of it."""

    request: dict[str, Any]
    path: Path
    query: str


@dataclass(frozen=True)
class Translated:
    """A request as chat completions, the names of what was left out of it, and the writer of its answer."""

    request: dict[str, Any]
    dropped: tuple[str, ...]
    writer: Writer


class Translation(Protocol):
    """From one wire to chat completions and back."""

    def serves(self, path: Path) -> bool:
        """Whether chat completions have something that answers this path."""
        ...

    def request(self, asked: Asked) -> Translated:
        """Raises TranslationError."""
        ...

    def error_body(self, fault: Fault) -> bytes:
        """An endpoint's error in the CLI's shape."""
        ...


@dataclass
class Dropped:
    """Names of what had to be left out, each once, in order."""

    names: dict[str, None] = field(default_factory=dict)

    def add(self, name: str) -> None:
        self.names[name] = None

    def rest(self, values: dict[str, Any], known: frozenset[str], prefix: str = "") -> None:
        """Members that are set and not among `known`."""
        for name, value in values.items():
            if name not in known and value not in (None, [], {}):
                self.add(prefix + name)
