"""The fault table: what goes wrong with a model call, whether it is tried again, and whose fault it is.

`CATEGORIES` is what the gateway and the outcome table decide by. `FAULTS` says of each way to fail which
category it is and what the CLI receives; `docs/outcomes.md` shows it, and a test makes each of them happen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

RATE_LIMITED = "rate_limited"

Outcome = Literal["infra_error", "context_overflow", "bad_request"]


@dataclass(frozen=True)
class Category:
    """A category of failed calls. `retried`: the gateway itself tries again, as long as nothing of an answer
    was passed on. `outcome` is that of a cell whose last call failed so.
    """

    retried: bool
    outcome: Outcome


CATEGORIES: dict[str, Category] = {
    RATE_LIMITED: Category(True, "infra_error"),
    "endpoint_down": Category(True, "infra_error"),
    "upstream_5xx": Category(True, "infra_error"),
    "stream_cut": Category(False, "infra_error"),
    "key_refused": Category(False, "infra_error"),
    "gateway": Category(False, "infra_error"),
    "context_overflow": Category(False, "context_overflow"),
    "bad_request": Category(False, "bad_request"),
    "unauthorised": Category(False, "bad_request"),
}

INFRA = tuple(name for name, category in CATEGORIES.items() if category.outcome == "infra_error")
"""Categories that are the endpoint's or the gateway's fault: not the agent's, and no call is charged."""

Received = Literal["as it came", "what came, then a cut", "502 of cab's", "400 of cab's", "401 of cab's"]
"""`of cab's`: an error in the shape of the wire; a cut: the connection ends without the response's end."""


@dataclass(frozen=True)
class Fault:
    """One way to fail. `category` is None where the answer is read all the same. `retried` is narrower than
    its category's where trying again is of no use.
    """

    what: str
    category: str | None
    retried: bool
    receives: Received = "as it came"

    @property
    def outcome(self) -> str:
        """Of a cell that ends on it, as people read it."""
        if self.category is None:
            return "no fault"
        outcome = CATEGORIES[self.category].outcome
        return f"{outcome} ({self.category})" if outcome == "infra_error" else outcome


FAULTS: dict[str, Fault] = {
    "429": Fault("status 429", RATE_LIMITED, True),
    "429-hopeless": Fault("status 429: the account is empty", RATE_LIMITED, False),
    "429-long": Fault("status 429 with a stated wait above 15 minutes", RATE_LIMITED, False),
    "500": Fault("status 500", "upstream_5xx", True),
    "502": Fault("status 502", "upstream_5xx", True),
    "503": Fault("status 503", "upstream_5xx", True),
    "504": Fault("status 504", "upstream_5xx", True),
    "408": Fault("status 408 or 425", "endpoint_down", True),
    "refused": Fault("the connection is refused", "endpoint_down", True, "502 of cab's"),
    "dropped": Fault("the connection ends before a response", "endpoint_down", True, "502 of cab's"),
    "silent": Fault("no byte comes in time", "endpoint_down", True, "502 of cab's"),
    "stalled": Fault(
        "a stream begins, and no more comes in time", "stream_cut", False, "what came, then a cut"
    ),
    "cut": Fault(
        "the connection ends in the middle of a stream", "stream_cut", False, "what came, then a cut"
    ),
    "unfinished": Fault("a stream stops before its end, tidily", "stream_cut", False),
    "empty-stream": Fault("a stream without an event", "stream_cut", False),
    "error-event": Fault("a stream with status 200 and an error event in it", "upstream_5xx", False),
    "limited-event": Fault("a stream with status 200 and a rate limit's error event", RATE_LIMITED, False),
    "invalid-json": Fault("status 200 and JSON that breaks off", "endpoint_down", False),
    "html": Fault("status 200 and HTML", "endpoint_down", False),
    "empty": Fault("status 200 and an empty body", "endpoint_down", False),
    "no-answer": Fault("status 200 and `{}`", "endpoint_down", False),
    "wrong-type": Fault("a good stream under another content type", None, False),
    "not-streamed": Fault("a good JSON answer where a stream was asked for", None, False),
    "model-unknown": Fault("status 404: the model is unknown", "endpoint_down", False),
    "key-refused": Fault("status 401: the key is refused", "key_refused", False),
    "no-permission": Fault("status 403: the key may not do this", "key_refused", False),
    "overflow": Fault("status 400: the context length is exceeded", "context_overflow", False),
    "bad-request": Fault("status 400 or 422: another fault of the request", "bad_request", False),
    "malformed": Fault("a body that is no request of the wire", "bad_request", False, "400 of cab's"),
    "credential": Fault("another credential than the cell's", "unauthorised", False, "401 of cab's"),
}


def as_markdown() -> str:
    """The table of `docs/outcomes.md`."""
    lines = [
        "| what happens | tried again | a cell that ends on it | the CLI receives |",
        "| --- | --- | --- | --- |",
    ]
    for fault in FAULTS.values():
        again = "yes" if fault.retried else "no"
        lines.append(f"| {fault.what} | {again} | {fault.outcome} | {fault.receives} |")
    return "\n".join(lines) + "\n"
