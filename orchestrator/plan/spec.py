"""A sweep's YAML file as a frozen `SweepSpec`; `sweeps/free.yaml` shows the form."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails

from orchestrator.adapter import Wire
from orchestrator.errors import InputError
from orchestrator.gateway.local.registry import PREFIX as LOCAL
from orchestrator.gateway.local.registry import check_name as check_local
from orchestrator.gateway.scripts import ScriptKind
from orchestrator.gateway.settings import GenerationSettings
from orchestrator.nearest import nearest
from orchestrator.plan.fields import Condition, Model, Size, distinct, matching, named
from orchestrator.plan.runs import AdaptiveRuns, Runs, in_the_file
from orchestrator.sandbox.contract import Limits
from orchestrator.store.names import NO_MODEL, NO_STACK

if TYPE_CHECKING:
    from orchestrator.plan.yaml import Document, Path_

EMBEDDED = "embedded/"
EMBEDDED_MODELS: dict[str, ScriptKind] = {f"{EMBEDDED}{kind}": kind for kind in get_args(ScriptKind)}
"""Scripted models that the gateway serves itself, by id."""

_SWEEP_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_CLI_PATTERN = re.compile(r"[A-Za-z0-9._*?\[\]!-]+")
_TASK_PATTERN = re.compile(r"[A-Za-z0-9._/*?\[\]!-]+")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("is no http:// or https:// URL")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("a URL in a file holds no user, password, query or fragment; use {env: NAME}")
    return url


Point = tuple[str, str, str, str]
"""CLI, model, task and stack of a cell."""

FACTORY: Literal["factory"] = "factory"
"""The CLI as shipped: in a sweep's `stacks`, the one without plugins."""

Requirement = Literal["tokens.wire", "price"]
"""What has to be measured: tokens on the wire, for a cell to count; a price, for the sweep to start."""


class EnvName(Model):
    """The name of an environment variable that holds a value."""

    env: Annotated[str, matching(_ENV_NAME, "name of an environment variable")]


class BaseUrl(Model):
    """An endpoint's URL: written out, or in an environment variable."""

    url: Annotated[str, AfterValidator(_url)] | None = None
    env: Annotated[str, matching(_ENV_NAME, "name of an environment variable")] | None = None

    @model_validator(mode="before")
    @classmethod
    def _short(cls, data: Any) -> Any:
        return {"url": data} if isinstance(data, str) else data

    @model_validator(mode="after")
    def _one(self) -> BaseUrl:
        if (self.url is None) == (self.env is None):
            raise ValueError("give a URL, or {env: NAME}")
        return self


def _key(data: object) -> object:
    if not isinstance(data, dict):
        raise ValueError("a key never stands in a file; use {env: NAME}")
    return data


class EndpointSpec(Model):
    """An endpoint by where its URL and key are found. Without `key` none is sent. `concurrency` is the most
    model calls that may be under way at it; None leaves it to what the endpoint takes.
    """

    base_url: BaseUrl
    key: Annotated[EnvName, BeforeValidator(_key)] | None = None
    wire: Wire = "chat"
    concurrency: Annotated[int, Field(ge=1, le=1024)] | None = None

    def variables(self) -> Iterator[str]:
        """The environment variables that must be set."""
        if self.base_url.env is not None:
            yield self.base_url.env
        if self.key is not None:
            yield self.key.env


Rate = Annotated[float, Field(ge=0)]
"""USD per million tokens."""


class PriceSpec(Model):
    """What a model costs, instead of what the library says; a rate left out is that of input."""

    input: Rate
    output: Rate
    cached_read: Rate | None = None
    cache_write: Rate | None = None


class ModelSpec(Model):
    """A model by id, at an endpoint of the file; an embedded or a local one has none. A plain text is the id
    alone.
    """

    id: Annotated[str, named("model")]
    endpoint: str | None = None
    price: PriceSpec | None = None
    settings: GenerationSettings = Field(default_factory=GenerationSettings)

    @property
    def local(self) -> bool:
        """Whether cab serves it from a file of this machine."""
        return self.id.startswith(LOCAL)

    @model_validator(mode="before")
    @classmethod
    def _short(cls, data: Any) -> Any:
        return {"id": data} if isinstance(data, str) else data


Tokens = Annotated[int, Field(ge=1)]
Usd = Annotated[float, Field(gt=0)]


class Spending(Model):
    """How much may be spent; None is no limit. `tokens` are input and output, as the wire states them."""

    tokens: Tokens | None = None
    usd: Usd | None = None


class LimitSpec(Spending):
    """Limits of one cell: of its container, and of what it may spend. Sizes are texts with a unit (4GiB)."""

    memory: Annotated[Size, Field(ge=64 << 20)] = Limits.memory_bytes
    cpus: Annotated[float, Field(gt=0, le=1024)] = Limits.cpus
    pids: Annotated[int, Field(ge=16, le=1 << 22)] = Limits.pids
    tmp: Annotated[Size, Field(ge=1 << 20)] = Limits.tmp_bytes
    scratch: Annotated[Size, Field(ge=16 << 20)] = Limits.scratch_bytes

    def resolve(self) -> Limits:
        return Limits(
            memory_bytes=self.memory,
            cpus=self.cpus,
            pids=self.pids,
            tmp_bytes=self.tmp,
            scratch_bytes=self.scratch,
        )


def _stack_name(name: str) -> str:
    if "/" in name or name in (FACTORY, NO_STACK):
        raise ValueError(f"{name!r} cannot name a stack of plugins")
    return name


def _part_of_a_path(name: str) -> str:
    if "/" in name:
        raise ValueError(f"{name!r} holds a '/'; a plugin is one folder under plugins/")
    return name


class StackSpec(Model):
    """A stack by name, with its plugins in their order. The plain text `factory` is the CLI as shipped."""

    name: Annotated[str, named("stack"), AfterValidator(_stack_name)]
    plugins: Annotated[
        tuple[Annotated[str, named("plugin"), AfterValidator(_part_of_a_path)], ...],
        Field(min_length=1),
        AfterValidator(distinct),
    ]

    @property
    def id(self) -> str:
        """The stack's name as a cell has it."""
        return self.name


class Exclusion(Model):
    """Cells that a sweep leaves out: those of which every given glob matches its part."""

    cli: str | None = None
    model: str | None = None
    task: str | None = None
    stack: str | None = None

    @model_validator(mode="after")
    def _some(self) -> Exclusion:
        if not self.model_fields_set:
            raise ValueError("give at least one of cli, model, task, stack")
        return self

    def covers(self, point: Point) -> bool:
        globs = (self.cli, self.model, self.task, self.stack)
        return all(glob is None or fnmatchcase(name, glob) for name, glob in zip(point, globs, strict=True))


class SweepSpec(Model):
    """One sweep. `timeout_s` overrides the tasks' own time limits; `retries` are of infrastructure faults."""

    name: Annotated[str, matching(_SWEEP_NAME, "name of a sweep (letters, digits and . _ -)")]
    description: str = ""
    clis: Annotated[
        tuple[Annotated[str, matching(_CLI_PATTERN, "CLI's name or glob")], ...],
        Field(min_length=1),
        AfterValidator(distinct),
    ]
    models: Annotated[tuple[ModelSpec, ...], AfterValidator(distinct)] = ()
    endpoints: dict[str, EndpointSpec] = Field(default_factory=dict)
    tasks: Annotated[
        tuple[Annotated[str, matching(_TASK_PATTERN, "task name or glob")], ...],
        Field(min_length=1),
        AfterValidator(distinct),
    ]
    stacks: Annotated[
        tuple[Literal["factory"] | StackSpec, ...], Field(min_length=1), AfterValidator(distinct)
    ] = (FACTORY,)
    conditions: Annotated[tuple[Condition, ...], AfterValidator(distinct)] = ()
    exclude: tuple[Exclusion, ...] = ()
    runs: Runs = 1
    concurrency: Annotated[int, Field(ge=1, le=1024)] = 1
    seed: Annotated[int, Field(ge=0, lt=1 << 63)] = 0
    retries: Annotated[int, Field(ge=0, le=10)] = 2
    limits: LimitSpec = LimitSpec()
    timeout_s: Annotated[float, Field(gt=0, le=7 * 86400)] | None = None
    budget: Spending = Spending()
    require: Annotated[tuple[Requirement, ...], AfterValidator(distinct)] = ()
    allow_unknown_price: bool = False

    @property
    def stack_names(self) -> list[str]:
        """The stacks as cells name them."""
        return [NO_STACK if isinstance(it, str) else it.name for it in self.stacks]

    def only_stack(self, name: str) -> tuple[Literal["factory"] | StackSpec, ...]:
        """`stacks` with the one alone that cells name so."""
        return tuple(it for it in self.stacks if name == (NO_STACK if isinstance(it, str) else it.name))

    @property
    def plugins(self) -> dict[str, tuple[str, ...]]:
        """The plugins of each stack, by the stack's name."""
        return {stack.name: stack.plugins for stack in self.stacks if isinstance(stack, StackSpec)}

    @property
    def needs_prices(self) -> bool:
        """Whether a model without a price keeps the sweep from starting."""
        capped = self.limits.usd is not None or self.budget.usd is not None
        return "price" in self.require or (capped and not self.allow_unknown_price)

    def excludes(self, point: Point) -> bool:
        """Whether the sweep leaves this point of its matrix out."""
        return any(exclusion.covers(point) for exclusion in self.exclude)

    @classmethod
    def of_data(cls, data: object) -> SweepSpec:
        """A spec from plain values, such as `model_dump(mode="json")` gives. Raises ValidationError."""
        # In JSON mode strict types still let an array become a tuple.
        return cls.model_validate_json(json.dumps(data))


@dataclass(frozen=True)
class LoadedSpec:
    """A spec with the file it came from."""

    spec: SweepSpec
    document: Document

    @property
    def digest(self) -> str:
        """The file's `sha256:…`."""
        return self.document.digest

    def require_known(self, field: str, known: Iterable[str], *, cutoff: float = 0.6) -> None:
        """Raise InputError, with the line and the nearest known name, where `field` lists an unknown one, or
        a glob that matches none. `cutoff` is how near a name must be to be told.
        """
        names = sorted(known)
        for index, name in enumerate(getattr(self.spec, field)):
            if not any(fnmatchcase(known_name, name) for known_name in names):
                raise InputError(
                    f"unknown name {name!r} under {field}",
                    place=self.document.place((field, index)),
                    mend=nearest(name, names, cutoff=cutoff),
                )

    def require_models(self, clis: Iterable[str]) -> None:
        """Raise InputError, with the line, where one of `clis`, which ask a model, has none to ask."""
        asking = list(clis)
        for index, glob in enumerate(self.spec.clis):
            matched = [cli for cli in asking if fnmatchcase(cli, glob)]
            if matched and not self.spec.models:
                raise InputError(
                    f"{matched[0]} asks a model, but models is empty",
                    place=self.document.place(("clis", index)),
                    mend=f"add models: [{next(iter(EMBEDDED_MODELS))}], or another model",
                )

    def require_plugins(self, known: Iterable[str]) -> None:
        """Raise InputError, with the line and the nearest known name, for a plugin that is none."""
        names = sorted(known)
        for index, stack in enumerate(self.spec.stacks):
            for number, name in enumerate(() if isinstance(stack, str) else stack.plugins):
                if name not in names:
                    place = self.document.place(("stacks", index, "plugins", number))
                    raise InputError(f"unknown plugin {name!r}", place=place, mend=nearest(name, names))

    def require_exclusions(self, points: Iterable[Point]) -> None:
        """Raise InputError, with the line, for an exclusion that covers none of the matrix's points."""
        whole = list(points)
        for index, exclusion in enumerate(self.spec.exclude):
            if any(exclusion.covers(point) for point in whole):
                continue
            for part, field in enumerate(type(exclusion).model_fields):
                glob, names = getattr(exclusion, field), sorted({point[part] for point in whole})
                if glob is not None and not any(fnmatchcase(name, glob) for name in names):
                    raise InputError(
                        f"{field} {glob!r} of exclude matches none of the sweep's",
                        place=self.document.place(("exclude", index, field)),
                        mend=nearest(glob, names),
                    )
            raise InputError(
                "leaves out no cell of the sweep",
                place=self.document.place(("exclude", index)),
                mend="take it out, or change it",
            )


def load_spec(path: Path) -> LoadedSpec:
    """Read a sweep file. Raises InputError that names file, line, column and mend."""
    # Imported here: a spec that comes from no file, as in an image, needs no YAML.
    from orchestrator.plan.yaml import load

    document = load(path)
    if not isinstance(document.value, dict):
        raise InputError("holds no sweep", place=str(path), mend="see sweeps/free.yaml for the form")
    try:
        spec = SweepSpec.of_data(document.value)
    except ValidationError as error:
        raise _explain(error, document) from None
    _check_models(spec, document)
    return LoadedSpec(spec, document)


def sweep_id(spec: SweepSpec, day: date) -> str:
    """The id of a sweep run on a date: `free-20261127`."""
    return f"{spec.name}-{day:%Y%m%d}"


def _check_models(spec: SweepSpec, document: Document) -> None:
    _check_endpoints(spec, document)
    for index, model in enumerate(spec.models):
        at: Path_ = ("models", index)
        if model.id == NO_MODEL:
            raise InputError(
                f"{NO_MODEL!r} is the model of CLIs that use none",
                place=document.place(at),
                mend="leave it out",
            )
        if model.local:
            _check_local(model, at, document)
        elif model.id.startswith(EMBEDDED):
            if model.id not in EMBEDDED_MODELS:
                mend = nearest(model.id, EMBEDDED_MODELS)
                raise InputError(f"unknown embedded model {model.id!r}", place=document.place(at), mend=mend)
            _check_embedded(model, at, document)
        elif model.endpoint is None:
            mend = "write {id: " + model.id + ", endpoint: NAME} with a NAME under endpoints"
            raise InputError(f"model {model.id!r} has no endpoint", place=document.place(at), mend=mend)
        elif model.endpoint not in spec.endpoints:
            place = document.place((*at, "endpoint"))
            mend = nearest(model.endpoint, spec.endpoints)
            raise InputError(f"unknown endpoint {model.endpoint!r}", place=place, mend=mend)


def _check_embedded(model: ModelSpec, at: Path_, document: Document) -> None:
    """A scripted model is at no endpoint, costs nothing and generates nothing."""
    has = {"endpoint": model.endpoint, "price": model.price, "settings": model.settings.given()}
    for name, value in has.items():
        if value:
            raise InputError(
                f"an embedded model has no {name}",
                place=document.place((*at, name)),
                mend=f"leave {name} out",
            )


def _check_endpoints(spec: SweepSpec, document: Document) -> None:
    for name in spec.endpoints:
        if name.startswith(LOCAL):
            raise InputError(
                f"an endpoint's name cannot begin with {LOCAL}",
                place=document.place(("endpoints", name), key=True),
                mend="give it another name",
            )


def _check_local(model: ModelSpec, at: Path_, document: Document) -> None:
    try:
        check_local(model.id.removeprefix(LOCAL))
    except InputError as error:
        raise InputError(error.thing, place=document.place(at), mend=error.mend) from None
    if model.endpoint is not None:
        place = document.place((*at, "endpoint"))
        raise InputError("a local model has no endpoint", place=place, mend="leave endpoint out")


def _explain(error: ValidationError, document: Document) -> InputError:
    """The first fault of the file, in the words of the file."""
    faults = error.errors(include_url=False)
    for fault in faults:
        fault["loc"] = in_the_file(fault["loc"])
    faults = _causes(faults)
    fault = min(faults, key=lambda fault: _line(document, fault["loc"]))
    at: Path_ = fault["loc"]
    name = ".".join(str(part) for part in at)
    if fault["type"] == "extra_forbidden":
        mend = nearest(str(at[-1]), _known_keys(at[:-1]))
        return InputError(f"unknown key {name!r}", place=document.place(at, key=True), mend=mend)
    if fault["type"] == "missing":
        return InputError(
            f"the key {name!r} is missing", place=document.place(at[:-1]), mend=f"add {at[-1]}: …"
        )
    if fault["type"] in ("string_type", "model_type") and isinstance(fault["input"], bool | int | float):
        return InputError(f"{name}: is no text but a number", place=document.place(at), mend="quote it")
    message = fault["msg"].removeprefix("Value error, ")
    thing = message if fault["type"] == "value_error" else f"{message[0].lower()}{message[1:]}"
    return InputError(f"{name}: {thing}", place=document.place(at), mend="see sweeps/free.yaml for the form")


def _causes(faults: list[ErrorDetails]) -> list[ErrorDetails]:
    """Faults less those that follow from another: a list lacks its bad items, a key its misspelling."""
    unknown = {fault["loc"][:-1] for fault in faults if fault["type"] == "extra_forbidden"}

    def follows(fault: ErrorDetails) -> bool:
        at = fault["loc"]
        if fault["type"] == "missing" and at[:-1] in unknown:
            return True
        return any(len(other["loc"]) > len(at) and other["loc"][: len(at)] == at for other in faults)

    return [fault for fault in faults if not follows(fault)]


def _line(document: Document, at: Path_) -> tuple[int, int]:
    while at not in document.marks and at:
        at = at[:-1]
    return document.marks[at]


def _known_keys(at: Path_) -> list[str]:
    owners: dict[str, type[Model]] = {
        "models": ModelSpec,
        "limits": LimitSpec,
        "endpoints": EndpointSpec,
        "exclude": Exclusion,
        "stacks": StackSpec,
        "budget": Spending,
        "runs": AdaptiveRuns,
    }
    if not at:
        return list(SweepSpec.model_fields)
    if at[-1] == "base_url":
        return ["env"]
    if at[-1] == "key":
        return list(EnvName.model_fields)
    if at[-1] == "settings":
        return list(GenerationSettings.model_fields)
    if at[-1] == "price":
        return list(PriceSpec.model_fields)
    return list(owners[str(at[0])].model_fields)
