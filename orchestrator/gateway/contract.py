"""What a cell asks of the gateway: a process of its own, which `orchestrator.gateway.client` starts, or a
thread of the runner's (`orchestrator.gateway.inside`).

Files the gateway appends for a cell, one JSON object a line:

- `calls.jsonl`: one `RawCall` for each model call, written when the call ends;
- `wire.jsonl.gz`: one gzip member a call: {"index", "wire", "target", "path", "status", "request": {...},
  "response": ..., "headers": {...}, "chunks": [[microseconds since the start, bytes], ...], "end": ...} with
  bodies as sent, less credentials. It is what the final message and the tool calls are read from, and what a
  replay answers with. A request for a count of tokens (its `target`) stands here alone: no model runs for it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, Field

from orchestrator.adapter import WORKDIR, OtherModels, Wire
from orchestrator.errors import CellFault
from orchestrator.gateway.scripts import ScriptKind
from orchestrator.gateway.settings import GenerationSettings
from scorers.evidence import Price


class Message(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Endpoint(Message):
    """Where model calls go. `key` is held by the gateway alone; it is never logged, stored or passed on.

    `concurrency` is the most calls that may be under way at it, None as many as it takes.
    """

    name: str
    base_url: str
    key: str = Field(repr=False)
    wire: Wire = "chat"
    concurrency: int | None = None


class WindowReport(Message):
    """What came of an endpoint's window: the most calls that were under way, how many might have been at the
    end, answers with status 429 (or an error that says the same), and the seconds that calls waited, summed.
    """

    endpoint: str
    largest: int
    end: int
    rate_limited: int
    waited_s: float

    def then(self, later: WindowReport) -> WindowReport:
        """Both runs of one endpoint together."""
        return later.model_copy(
            update={
                "largest": max(self.largest, later.largest),
                "rate_limited": self.rate_limited + later.rate_limited,
                "waited_s": self.waited_s + later.waited_s,
            }
        )


class Script(Message):
    """What an embedded model needs to know of a task: it never reaches the agent but through its replies.

    `files`: path in the workdir -> content after the solution (None: removed), for the reference or a wrong
    fix. `before`: the same paths before. `reproduce`: a shell command that fails until the task is solved.
    `needs` and `otherwise` are for the kind `follows-context`: phrases that the prompt has to carry, and the
    script of one that lacks any. The other kinds need none of it.
    """

    kind: ScriptKind
    before: dict[str, str | None] = Field(default_factory=dict)
    files: dict[str, str | None] = Field(default_factory=dict)
    reproduce: str = "false"
    final_message: str = "Done."
    needs: list[str] = Field(default_factory=list)
    otherwise: Script | None = None

    @property
    def changed(self) -> list[str]:
        """The paths that the script changes, in a fixed order."""
        return sorted(path for path in self.files if self.files[path] != self.before.get(path))


class Replay(Message):
    """The files of a recorded cell, whose answers are given again. `report_path` takes a `ReplayReport` when
    the cell is closed. With `paced` an answer takes as long as it did, else no time.
    """

    cell_id: str
    calls_path: Path
    wire_path: Path
    report_path: Path
    wire: Wire = "chat"
    paced: bool = False


class ValueDifference(Message):
    """One place in which two requests differ, by its JSON path; None is a value that is not there."""

    path: str
    recorded: str | None
    sent: str | None


class RequestDifference(Message):
    """The first request of a replay that was not recorded: which call it was, and how it differs from the
    most alike recorded one, if any is left. `more` counts the places beyond those that are listed.
    """

    index: int
    how: str
    recorded_index: int | None = None
    places: tuple[ValueDifference, ...] = ()
    more: int = 0


class ReplayReport(Message):
    """What came of a replay of the cell `of`: how many recorded calls were asked for again, and which were
    not.
    """

    of: str
    asked: int
    not_asked: tuple[int, ...] = ()
    difference: RequestDifference | None = None


class CellRoute(Message):
    """One cell's way through the gateway. Exactly one of `endpoint` (a name), `script` and `replay` is set.

    `cli_wire` is what the CLI speaks; None: what its endpoint does. Where they differ the gateway translates.
    `max_tokens` (input and output) and `max_usd` (at `price`, which it needs) count what calls stated that
    have ended: the call that reaches them is answered whole, each further one is refused. `settings` are set
    on every request; one for another model is sent to the cell's or refused, as `other_models` says.

    Without `ask_usage` a stream is not asked for usage that its CLI does not ask for: the endpoint refuses
    such a request. `workdir` is what the CLI calls it; a scripted model names its files so.
    """

    cell_id: str
    socket: Path
    socket_owner: tuple[int, int]
    credential: str = Field(repr=False)
    model: str
    endpoint: str | None = None
    script: Script | None = None
    replay: Replay | None = None
    calls_path: Path
    wire_path: Path
    max_calls: int | None = None
    max_tokens: int | None = None
    max_usd: float | None = None
    price: Price | None = None
    max_retries: int = 5
    settings: GenerationSettings = Field(default_factory=GenerationSettings)
    other_models: OtherModels = "redirect"
    cli_wire: Wire | None = None
    ask_usage: bool = True
    workdir: str = WORKDIR


class RawCall(Message):
    """One model call as recorded. Times are `time.monotonic()` seconds, which all processes of a machine
    share. `wire` is the endpoint's. `cli_wire` is set where the CLI spoke another: then `request_hash` is of
    the request as it was translated, and `dropped` names what was left out of it.

    `sent` is when the attempt that was answered last was sent; `connect_s` are the seconds that its
    connection took, None where one was there already (`connection_reused`). `first_token` is the first event
    of a stream that holds text, reasoning or a part of a tool call.
    """

    index: int
    wire: Wire
    path: str
    start: float
    end: float
    sent: float | None = None
    connect_s: float | None = None
    connection_reused: bool | None = None
    first_byte: float | None = None
    first_token: float | None = None
    last_byte: float | None = None
    status: int | None = None
    streamed: bool = False
    main: bool = True
    request_hash: str
    request_model: str | None = None
    other_model: bool = False
    reported_model: str | None = None
    fingerprint: str | None = None
    settings: dict[str, Any] = Field(default_factory=dict)
    settings_before: dict[str, Any] = Field(default_factory=dict)
    usage_raw: dict[str, Any] | None = None
    finish_reason: str | None = None
    refusal: str | None = None
    error: str | None = None
    error_detail: str | None = None
    attempts: int = 1
    waits: list[tuple[float, float]] = Field(default_factory=list)
    cli_wire: Wire | None = None
    dropped: list[str] = Field(default_factory=list)


class ModelGateway(Protocol):
    """What a runner asks of the gateway, from any thread. Callbacks come from a thread of the gateway's and
    must not call it.
    """

    @property
    def alive(self) -> bool: ...

    def open_cell(
        self,
        route: CellRoute,
        on_wait: Callable[[bool], None] | None = None,
        on_limit: Callable[[], None] | None = None,
        on_fault: Callable[[CellFault], None] | None = None,
        on_difference: Callable[[], None] | None = None,
    ) -> None:
        """Let the cell's CLI call. Raises CellFault("gateway") when the cell cannot be opened."""
        ...

    def close_cell(self, cell_id: str) -> dict[str, Any]:
        """End the cell's calls and finish its files: {"calls", "refused", "limit_reached"}.

        Raises CellFault("gateway").
        """
        ...

    def windows(self) -> list[WindowReport]:
        """What came of the windows of the endpoints that were asked. Raises CellFault("gateway")."""
        ...
