"""What a scorer sees: the task's facts and the evidence one cell left behind. Nothing else.

All times are seconds on the machine's monotonic clock, counted from the start of the cell, so that a change
of the wall clock cannot bend a duration. All texts that an agent wrote are hostile and bounded in size.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Model(BaseModel):
    """Frozen, and unknown fields are refused: stored evidence never loses a field silently."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class RefusalRule(Model):
    """When a text counts as an explanation: at least one phrase of every group occurs in it
    (case-insensitive)."""

    explains: list[list[str]] = Field(default_factory=list)


class TaskFacts(Model):
    """What a scorer may know of a task. Globs are gitignore-style, relative to the workdir.

    `canary` is the string that every hidden file of the task carries. `hidden_literals` are values that
    stand in the hidden tests alone and that no honest solution needs (checked against the reference when a
    task is proved).
    """

    task: str
    category: str
    language: str
    ground_truth_files: list[str] = Field(default_factory=list)
    allowed_files: list[str] = Field(default_factory=list)
    protected_files: list[str] = Field(default_factory=list)
    fail_to_pass: list[str] = Field(default_factory=list)
    pass_to_pass: list[str] = Field(default_factory=list)
    expected_refusal: bool = False
    refusal: RefusalRule = Field(default_factory=RefusalRule)
    ref_tokens: int | None = None
    ref_active_s: float | None = None
    ref_diff_lines: int | None = None
    canary: str | None = None
    hidden_literals: list[str] = Field(default_factory=list)


class FileState(Model):
    """One path of the workdir. `sha256` is None for what is not a regular file, or was too large to read."""

    kind: Literal["file", "symlink", "other"]
    size: int
    mode: int
    sha256: str | None = None
    target: str | None = None


class FileChange(Model):
    """One changed path. `origin`: the agent's own work, a build output or ignored file, or the CLI's own
    state.

    `lines_added` and `lines_removed` are None for binary or oversized content.
    """

    path: str
    change: Literal["added", "removed", "modified", "renamed"]
    old_path: str | None = None
    origin: Literal["agent", "generated", "cli_state"] = "agent"
    before: FileState | None = None
    after: FileState | None = None
    lines_added: int | None = None
    lines_removed: int | None = None


class Usage(Model):
    """Normalised tokens of one call: `input` includes cache reads and writes, `output` includes reasoning."""

    input: int
    output: int
    cached_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None


class Rates(Model):
    """USD per million tokens. Cache reads and writes without a rate of their own cost what input does.

    The last rates whose `above` a call's input tokens exceed hold for the whole call; those of 0 for any.
    """

    above: int = Field(default=0, ge=0)
    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached_read: float | None = Field(default=None, ge=0)
    cache_write: float | None = Field(default=None, ge=0)


class Price(Model):
    """The price of a model that was in force. `rates` are in the order of `above`, from 0 on; `source` says
    where they come from.
    """

    rates: list[Rates] = Field(min_length=1)
    source: str


LIMIT_ERRORS = {"limit": "calls", "limit_tokens": "tokens", "limit_usd": "usd"}
"""Categories of a call that cab refused since a limit was reached -> which limit."""

OTHER_MODEL = "other_model"
"""The category of a call that cab refused since it named another model than the cell's."""


class Span(Model):
    """A stretch of time, in seconds since the cell's start."""

    start: float
    end: float


class ModelCall(Model):
    """One model call, as the gateway saw it.

    `error` is the category of the call's final failure: rate_limited, endpoint_down, upstream_5xx,
    stream_cut, key_refused, context_overflow, bad_request, unauthorised, one of LIMIT_ERRORS or OTHER_MODEL
    (refused by cab itself), client_gone, gateway (a fault of the gateway itself), replay_differs (not a call
    that was recorded); else None. `waits` are the stretches in which the gateway waited for a rate limit or
    backed off before a retry. `main` is False for side requests such as a title. `cli_wire` is set where the
    call was translated from the CLI's wire to the endpoint's; `dropped` names what of the request had no
    place there.

    `request_model` is the model that the CLI named; with `other_model` it is not the cell's, and the call was
    sent to the cell's model or refused. `reported_model` and `fingerprint` are the build that the answer
    stated. `settings` are the generation settings that went upstream, by the wire's names; `settings_before`
    says of each that cab set what the CLI had asked for, None for nothing.
    """

    index: int
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
    usage: Usage | None = None
    usage_raw: dict[str, Any] | None = None
    finish_reason: str | None = None
    refusal: str | None = None
    error: str | None = None
    error_detail: str | None = None
    attempts: int = 1
    waits: list[Span] = Field(default_factory=list)
    cli_wire: str | None = None
    dropped: list[str] = Field(default_factory=list)

    def after_sent(self, at: float | None) -> float | None:
        """Seconds from the sending of the answered attempt to `at`, without the waits before it."""
        return None if at is None else at - (self.start if self.sent is None else self.sent)


class ToolCall(Model):
    """A tool call seen on the wire: asked for in one response, answered in a later request."""

    call_id: str
    name: str
    arguments: str
    start: float
    end: float | None = None
    result: str | None = None


class FinalMessage(Model):
    text: str
    source: Literal["wire", "stdout", "none"]
    truncated: bool = False


class TestResult(Model):
    __test__ = False  # pytest would otherwise try to collect it

    name: str
    status: Literal["passed", "failed", "skipped", "error"]
    message: str | None = None


class Verification(Model):
    """What the verifier said of the agent's work.

    `reward` is None when the test script left none; `reference_passes` is the control run that tells
    `build_broken` (the reference passes in the same verifier) from `verify_error` (it does not), None when no
    control run was needed.
    """

    exit_code: int | None
    timed_out: bool
    reward: float | None
    tests: list[TestResult] = Field(default_factory=list)
    stdout_tail: str = ""
    stderr_tail: str = ""
    reference_passes: bool | None = None


class AgentEnd(Model):
    """How the CLI ended, by the mark of PID 1. `exit_code` is None when a signal ended it.

    `stopped_after_limit`: it went on after a call was refused since a limit was reached, and cab ended it.
    """

    exit_code: int | None
    signal: int | None = None
    timed_out: bool = False
    oom_kills: int = 0
    stopped_after_limit: bool = False
    cpu_s: float | None = None
    max_rss_bytes: int | None = None


class CliUsage(Model):
    """What a CLI itself says that the requests of its main thread used; a margin is that of its rounding."""

    input: int
    output: int
    input_margin: int = 0
    output_margin: int = 0


class Evidence(Model):
    """Everything a cell left behind, bounded and escaped by whoever shows it.

    `phases` holds the stages by name (queue, setup, agent, collect, verify, score); the agent's inner times
    come from `calls` and `tool_calls`. Changes, diff and documents count as measured when there is a
    `collect` phase. `documents` are the texts of documents that the agent left, by path; `diff` is git's
    unified diff. `price` is the model's, in force when the cell ran; without one `no_price` says why.
    `cli_usage` is what the CLI itself says of its tokens; without it `no_cli_usage` says why.
    """

    phases: dict[str, Span] = Field(default_factory=dict)
    end: AgentEnd | None = None
    calls: list[ModelCall] = Field(default_factory=list)
    tool_calls: list[ToolCall] = Field(default_factory=list)
    final_message: FinalMessage = FinalMessage(text="", source="none")
    changes: list[FileChange] = Field(default_factory=list)
    diff: str = ""
    diff_truncated: bool = False
    extra_git_dir: bool = False
    documents: dict[str, str] = Field(default_factory=dict)
    stdout_tail: str = ""
    stderr_tail: str = ""
    verification: Verification | None = None
    wire_recorded: bool = True
    price: Price | None = None
    no_price: str | None = None
    cli_usage: CliUsage | None = None
    no_cli_usage: str | None = None
