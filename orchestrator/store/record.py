"""What is kept of a cell (`cell.json`) and of a sweep (`sweep.json`).

Records are frozen and refuse unknown fields. Each carries `schema_version`; an older one is brought up to
date by a chain of functions, a newer one is refused. A number that was not measured is null, with its
reason in the scores. Results that others published are kept as records too: they may lack what only a
runner knows, and name the reason for each such null.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    ValidationError,
    model_validator,
)

from orchestrator.adapter import Recording
from orchestrator.errors import NewerThanCab, StoreError
from orchestrator.store.names import NO_STACK, CellKey
from scorers.evidence import Price

OutcomeName = Literal[
    "completed",
    "timed_out",
    "limit_reached",
    "agent_crashed",
    "agent_oom",
    "context_overflow",
    "bad_request",
    "infra_error",
    "verify_error",
    "skipped",
    "incompatible",
    "sweep_budget",
    "cancelled",
]
ClaimLevel = Literal["pipeline_only", "provisional", "citable", "imported"]
Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]


def _finite(value: object) -> object:
    """Refuse NaN and infinities anywhere: JSON cannot say them, and null would claim "not measured"."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        raise ValueError("holds NaN or an infinity; a number that was not measured is null") from None
    return value


UtcTime = Annotated[
    AwareDatetime,
    AfterValidator(lambda at: at.astimezone(UTC)),
    PlainSerializer(lambda at: at.isoformat(timespec="microseconds").replace("+00:00", "Z"), return_type=str),
]
JsonObject = Annotated[dict[str, JsonValue], BeforeValidator(_finite)]


def _whole(value: object) -> object:
    if type(value) is not int:
        raise ValueError("is no whole number")
    return value


VERSION = BeforeValidator(_whole)
"""For a `schema_version`: by itself Literal takes `true` and 1.0 for 1."""


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


class Cab(Model):
    """The build of cab that made a record. `commit` is None outside a Git checkout."""

    version: str
    commit: str | None
    dirty: bool | None


class Deviation(Model):
    """One way in which a measured run differs from the CLI as shipped, with what forces it."""

    what: str
    reason: str


class Limits(Model):
    """The limits that were in force; None is no limit. The last three limit model calls. Scratch is bounded
    only where cab may mount it; a cell that cab started no container for has the limits that it found.
    """

    memory_bytes: int | None
    cpus: float | None
    pids: int | None
    tmp_bytes: int | None
    scratch_bytes: int | None
    scratch_inodes: int | None
    timeout_s: float
    max_calls: int | None = None
    max_tokens: int | None = None
    max_usd: float | None = None


class ModelBuild(Model):
    """A build of a model, by what its answers stated; None is not stated."""

    model: str | None
    fingerprint: str | None

    def __str__(self) -> str:
        return " ".join(name for name in (self.model, self.fingerprint) if name)


class UsedPlugin(Model):
    """A plugin of a cell's stack; `skipped` says why the CLI does not take it, None where it was applied.

    `offered` says of an MCP server that was applied whether any request to the model named a tool of it:
    False where the server did not start. None of other plugins, where no model was asked, and where none was
    named by a CLI that need not name it.
    """

    name: str
    kind: Literal["rules", "mcp", "settings", "args"]
    digest: Digest
    skipped: str | None = None
    offered: bool | None = None


class Identity(Model):
    """What ran. `generation_settings` lists each distinct set that went upstream, in order of first use, by
    the wire's names; `settings_set` is what the sweep set, by cab's, and `settings_overridden` each distinct
    set of what the CLI had asked for in its place. `model_builds` are the distinct builds that answered.

    `image_digest` is what ran and `digest_kind` says what it is; of a cell in a single container it is the
    image that the container's own adds cab and tasks to. `model_build_id` is what the endpoint
    reported, None when no model answered. `rules_file` is the file in which the CLI found the project's
    rules, None where there was none or it reads none. `plugins` are those of the stack, in their order, with
    the names of variables and the arguments that they added. `exit_code` is the agent's, None when a signal
    ended it or it never ran. `machine_load` is the one-minute load average when the cell started. `cab` is
    the build that made the record. What of `OF_THE_RUNNER` is None was not told by who published the result.
    """

    cell_id: str
    sweep_id: str
    cli: str
    cli_version: str | None
    model: str
    task: str
    run: int = Field(ge=1)
    stack: str = NO_STACK
    behaviour_mode: Literal["factory", "stack"] | None = "factory"
    deviations: tuple[Deviation, ...] = ()
    rules_file: str | None = None
    plugins: tuple[UsedPlugin, ...] = ()
    plugin_env_keys: tuple[str, ...] = ()
    plugin_args: tuple[str, ...] = ()
    condition: str | None = None
    container_image: str | None
    image_digest: Digest | None
    digest_kind: Literal["manifest", "image_id"] | None
    verifier_digest: Digest | None
    task_content_hash: Digest | None
    adapter_digest: Digest | None = None
    cab: Cab
    model_build_id: str | None
    model_builds: tuple[ModelBuild, ...] = ()
    generation_settings: tuple[JsonObject, ...] = ()
    settings_set: JsonObject = Field(default_factory=dict)
    settings_overridden: tuple[JsonObject, ...] = ()
    platform: str | None
    engine_version: str | None
    limits: Limits | None
    concurrency: int | None = Field(ge=1)
    machine_load: float | None = None
    exit_code: int | None

    @property
    def key(self) -> CellKey:
        return CellKey(self.cli, self.model, self.task, self.run, self.stack, self.condition)

    @model_validator(mode="after")
    def _says_one_thing(self) -> Self:
        if (expected := self.key.cell_id(self.sweep_id)) != self.cell_id:
            raise ValueError(f"cell_id is {self.cell_id!r} but its parts say {expected!r}")
        return self


class Outcome(Model):
    """What happened. `counted` is the outcome table's word at the time; readers ask the table again."""

    name: OutcomeName
    cause: str | None = None
    detail: str | None = None
    counted: bool


class Claim(Model):
    """What may be said of the result, and why no more."""

    level: ClaimLevel
    reasons: tuple[str, ...] = ()


class Isolation(Model):
    """How agent and grader were kept apart from each other and from the network. With `containers` "none"
    both ran on the machine itself; `egress` "tcp-restricted" is TCP to the gateway alone, other protocols
    unhindered.
    """

    containers: Literal["separate", "single-container", "none"]
    egress: Literal["none", "tcp-restricted", "open"]
    verifier: Literal["fresh", "shared"]


class Timing(Model):
    """`started_at` is the one wall-clock reading; `ended_at` is that plus `duration_s` of monotonic time."""

    started_at: UtcTime
    ended_at: UtcTime
    duration_s: float = Field(ge=0)

    @classmethod
    def since(cls, started_at: datetime, duration_s: float) -> Timing:
        ended_at = started_at + timedelta(seconds=duration_s)
        return cls(started_at=started_at, ended_at=ended_at, duration_s=duration_s)


class Attempt(Model):
    """An earlier try that an infrastructure fault ended. Tokens are None where the wire stated none."""

    outcome: Outcome
    timing: Timing
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None = None


class HostTried(Model):
    """A host name that was looked up in the agent's container, by the CLI or by what the agent ran: `first_s`
    seconds from the start of the cell on, in `count` questions (one for each family of addresses).
    """

    name: str
    first_s: float
    count: int = Field(ge=1)


class Reproduce(Model):
    """The command that runs a cell again in one container, or in `note` why there is none. `image_digest` is
    that of the CLI's image for run-cell, as the command names it, and `digest_kind` says what it is.
    """

    command: str | None = None
    image_digest: Digest | None = None
    digest_kind: Literal["manifest", "image_id"] | None = None
    note: str | None = None


class ImportedCell(Model):
    """What only the record of a published cell has.

    `printed` and `printed_exact` are its composite as published, to three digits and whole; `recomputed` is
    what the published formula gives for the published axes. `reasons` says for each null why it is.
    """

    published_id: str
    notice: str | None
    printed: float | None
    printed_exact: float | None
    recomputed: float | None
    reasons: dict[str, str]


OF_THE_RUNNER = (
    *("cli_version", "container_image", "task_content_hash"),
    *("behaviour_mode", "platform", "limits", "concurrency"),
)
"""Fields of an identity that whoever ran the cell knows, and who only read of it may not."""


class CellRecord(Model):
    """One finished cell. `scores` holds one object per axis, by the published keys.

    `order_index` is the cell's place in the recorded order of its sweep, from 0. `replay_of` is the cell
    whose recorded answers this one was given, None where there was no replay. `recording` says how the
    recording came about, None where there is none. `hosts_tried` are the first host names that were looked
    up, 64 at most, None where that could not be seen. `reproduce` is None of a cell that no sweep ran, and of
    older records. `imported` is None for a cell that cab ran: then
    nothing of `OF_THE_RUNNER` is None, nor is `isolation`, but `container_image` where there was none.
    """

    schema_version: Annotated[Literal[1], VERSION] = 1
    methodology_version: str
    identity: Identity
    outcome: Outcome
    claim: Claim
    isolation: Isolation | None
    timing: Timing
    scores: dict[str, JsonObject]
    attempts: tuple[Attempt, ...] = ()
    order_index: int = Field(ge=0)
    replay_of: str | None = None
    recording: Recording | None = None
    hosts_tried: tuple[HostTried, ...] | None = None
    reproduce: Reproduce | None = None
    imported: ImportedCell | None = None

    @property
    def cell_id(self) -> str:
        return self.identity.cell_id

    @model_validator(mode="after")
    def _says_whose_it_is(self) -> Self:
        unknown = [name for name in OF_THE_RUNNER if getattr(self.identity, name) is None]
        if self.isolation is not None and self.isolation.containers == "none":
            unknown = [name for name in unknown if name != "container_image"]
        unknown += ["isolation"] if self.isolation is None else []
        _explained(self.imported, self.claim.level == "imported", unknown)
        identity = self.identity
        if self.imported is None and (identity.image_digest is None) != (identity.digest_kind is None):
            raise ValueError("image_digest and digest_kind are given together or not at all")
        return self


class SkippedCell(Model):
    cell_id: str
    reason: str


class Machine(Model):
    """Facts of the machine that bear on the numbers; nothing that names it or its user."""

    cores: int = Field(ge=1)
    memory_bytes: int = Field(gt=0)
    platform: str
    kernel: str


class ImportedSweep(Model):
    """What only a published sweep has. `rows_digest` is that of its published rows, in the order of their
    ids; `reasons` says for each null why it is.
    """

    rows_digest: Digest
    reasons: dict[str, str]


class BudgetSet(Model):
    """What a call set the sweep's budget to, which it began to run cells with at `at`; None is no limit."""

    at: UtcTime
    tokens: int | None
    usd: float | None


class SweepRecord(Model):
    """One sweep, written before its first cell.

    `spec` is the resolved spec and `spec_digest` that of the file it came from. `pins` says which image id
    each image name stood for; it has no CLI yet that no call of the sweep was about. `tasks`, `adapters`,
    `plugins` and (local) `models` are content digests by name. Every cell runs exactly these. `prices` holds
    what each model costs, or why that is not known. `budgets` are those of calls that ran under another one
    than the call before, the first of them than that of the spec. `replay_of` is the cell that a sweep of one
    cell replays. `imported` is None for a sweep that cab ran: then none of the others is. Of an imported one
    `order` is that of the published file and `started_at` the start of its earliest published cell.
    """

    schema_version: Annotated[Literal[2], VERSION] = 2
    sweep_id: str
    started_at: UtcTime
    spec: JsonObject | None
    spec_digest: Digest | None
    pins: dict[str, Digest]
    tasks: dict[str, Digest] = Field(default_factory=dict)
    adapters: dict[str, Digest] = Field(default_factory=dict)
    models: dict[str, Digest] = Field(default_factory=dict)
    plugins: dict[str, Digest] = Field(default_factory=dict)
    order: tuple[str, ...]
    seed: int | None
    skipped: tuple[SkippedCell, ...] = ()
    concurrency: int | None = Field(ge=1)
    prices: dict[str, Price | str] = Field(default_factory=dict)
    budgets: tuple[BudgetSet, ...] = ()
    cab: Cab
    machine: Machine | None
    replay_of: str | None = None
    imported: ImportedSweep | None = None

    @model_validator(mode="after")
    def _says_whose_it_is(self) -> Self:
        known = ("spec", "spec_digest", "seed", "concurrency", "machine")
        unknown = [name for name in known if getattr(self, name) is None]
        _explained(self.imported, self.imported is not None, unknown)
        return self


def _explained(imported: ImportedCell | ImportedSweep | None, claimed: bool, unknown: list[str]) -> None:
    """Refuse a record that lacks what its runner knew, unless it was imported and gives the reason."""
    if (imported is not None) != claimed:
        raise ValueError("the claim 'imported' and the field `imported` are given together or not at all")
    explained = imported.reasons if imported else {}
    if bare := [name for name in unknown if name not in explained]:
        raise ValueError(f"{bare[0]} is null without a reason")


R = TypeVar("R", bound=Model)

Upgrade = Callable[[dict[str, Any]], dict[str, Any]]
"""Turns the data of one schema version into that of the next."""


def _without_images_dir(data: dict[str, Any]) -> dict[str, Any]:
    """Version 1 of a sweep had `images_dir`, a path of the machine, which is no part of a shared record."""
    return {name: value for name, value in data.items() if name != "images_dir"}


UPGRADES: dict[type[Model], dict[int, Upgrade]] = {CellRecord: {}, SweepRecord: {1: _without_images_dir}}
"""By record and by the version that a function starts from."""


def upgrade(
    data: dict[str, Any], steps: Mapping[int, Upgrade], *, current: int, place: str
) -> dict[str, Any]:
    """Bring stored data up to schema version `current`, one version at a time.

    Raises StoreError when the data has no version, or one that this cab does not know.
    """
    version = data.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise StoreError("has no schema_version", place=place, mend="this is no file that cab wrote")
    if version > current:
        raise NewerThanCab(
            f"has schema_version {version}, newer than {current}", place=place, mend="update cab to read it"
        )
    while version < current:
        data = steps[version](data)
        version += 1
        data["schema_version"] = version
    return data


def parse(kind: type[R], raw: bytes, *, place: str) -> R:
    """Read a record, upgraded where it is older. Raises StoreError that names the place and the field."""
    found = _of_today(kind, raw)
    return found if found is not None else validated(kind, data_of(kind, raw, place=place), place=place)


def _of_today(kind: type[R], raw: bytes) -> R | None:
    """A whole record of today's schema version, read and validated in one go, which is faster. None of any
    other, which the long way brings up to date or says what is wrong with.
    """
    try:
        found = kind.model_validate_json(raw)
    except ValidationError:
        return None
    return found if "schema_version" in found.model_fields_set else None


def data_of(kind: type[Model], raw: bytes, *, place: str) -> dict[str, Any]:
    """The data of a record in today's schema version, not yet validated. Raises StoreError."""
    try:
        data = json.loads(raw)
    except ValueError as error:
        raise StoreError(f"is no JSON: {error}", place=place, mend="restore the file") from None
    if not isinstance(data, dict):
        raise StoreError("is no JSON object", place=place, mend="restore the file")
    current = kind.model_fields["schema_version"].default
    return upgrade(data, UPGRADES.get(kind, {}), current=current, place=place)


def validated(kind: type[R], data: dict[str, Any], *, place: str) -> R:
    """The record of data in today's schema version. Raises StoreError that names the place and the field."""
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "record"
        raise StoreError(f"{field}: {first['msg']}", place=place, mend="restore the file") from None


def to_json(record: BaseModel) -> bytes:
    """A record as it is stored: indented, so that a person can read it. Half a surrogate pair becomes '?'."""
    text = json.dumps(record.model_dump(mode="json"), indent=1, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "replace") + b"\n"
