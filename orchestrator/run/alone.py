"""One cell in place, without a sweep: in the container that cab itself runs in, or on this machine.

The stages are those of every cell (`CellRun`). What differs is where commands run (`InPlaceSandbox`), that
the gateway is a thread of this process, and what may be said of the result.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from orchestrator.adapter import GATEWAY_PORT
from orchestrator.errors import EnvironmentFault, InputError
from orchestrator.fleet import Fleet
from orchestrator.gateway.contract import Endpoint
from orchestrator.gateway.inside import InsideGateway
from orchestrator.gateway.local.registry import PREFIX as LOCAL
from orchestrator.gateway.settings import AS_THE_CLI_ASKS, GenerationSettings
from orchestrator.nearest import nearest
from orchestrator.plan.expand import PlannedCell
from orchestrator.plan.spec import (
    EMBEDDED,
    EMBEDDED_MODELS,
    BaseUrl,
    EndpointSpec,
    LimitSpec,
    ModelSpec,
    Requirement,
    StackSpec,
    SweepSpec,
)
from orchestrator.plan.task import Task
from orchestrator.run.bench import Bench
from orchestrator.run.cell import CellRun
from orchestrator.run.grader import Grader
from orchestrator.run.provenance import Provenance
from orchestrator.run.records import record_of
from orchestrator.run.start import Matrix
from orchestrator.sandbox.inplace.limits import found_limits
from orchestrator.sandbox.inplace.sandbox import InPlaceSandbox
from orchestrator.sandbox.scratch import ScratchRoot, scratch_alone
from orchestrator.store.cells import CELL
from orchestrator.store.evidence import save_evidence, save_facts
from orchestrator.store.files import store_errors, write_durably
from orchestrator.store.names import NO_MODEL
from orchestrator.store.record import CellRecord, Isolation, to_json
from scorers.evidence import Price

PR_SET_DUMPABLE = 4
NOT_WRITABLE = (Path("/var/tmp"), Path("/run/lock"))
"""Directories that anybody may write to in an image, but nobody in a container of a sweep."""
SCRATCH = "/var/tmp"
"""Not /tmp, which a command may write to."""
REFERENCE = "reference"
"""On a machine, the stage before the cell's own: whether the task can be graded there."""

User = tuple[int, int]
"""uid and gid."""


@dataclass(frozen=True)
class Asked:
    """The cell that is asked for. `endpoint` has the key; an embedded model, or a CLI that asks none (its
    model is `none`), needs no endpoint. `timeout_s` takes the place of the task's, `price`
    that of the price library.
    """

    cli: str
    model: str
    task: str
    run: int = 1
    stack: StackSpec | None = None
    endpoint: Endpoint | None = None
    settings: GenerationSettings = AS_THE_CLI_ASKS
    price: Price | None = None
    limits: LimitSpec = field(default_factory=LimitSpec)
    timeout_s: float | None = None
    require: tuple[Requirement, ...] = ()
    fleet: Fleet = field(default_factory=Fleet)

    def matrix(self) -> Matrix:
        """What a sweep of this one cell is. Raises InputError that names the mend."""
        day = datetime.now(UTC).date()
        matrix = Matrix.of(self.spec(), f"cell-{day:%Y%m%d}", fleet=self.fleet)
        chosen = [cell for cell in matrix.plan.cells if cell.key.run == self.run]
        if not chosen:
            raise InputError(matrix.plan.skipped[0][1], place=f"{self.cli} with {self.model}")
        return replace(matrix, plan=replace(matrix.plan, cells=(replace(chosen[0], order_index=0),)))

    def spec(self) -> SweepSpec:
        """The same as a sweep file has it. Raises InputError; ValidationError for what no file may say."""
        adapter = self.fleet.adapter(self.cli)
        if adapter.uses_model:
            self._check_model()
        elif self.model != NO_MODEL:
            raise InputError(f"{self.cli} asks no model", place=f"model {self.model}", mend=f"say {NO_MODEL}")
        at = self.endpoint
        return SweepSpec(
            name="cell",
            clis=(self.cli,),
            models=(
                (ModelSpec(id=self.model, endpoint=at.name if at else None, settings=self.settings),)
                if adapter.uses_model
                else ()
            ),
            # It comes from the environment: what no file may hold, as a user and a password, may be in it.
            endpoints=(
                {at.name: EndpointSpec(base_url=BaseUrl.model_construct(url=at.base_url), wire=at.wire)}
                if at
                else {}
            ),
            tasks=(self.task,),
            stacks=(self.stack,) if self.stack else ("factory",),
            runs=self.run,
            limits=self.limits,
            timeout_s=self.timeout_s,
            require=self.require,
        )

    def _check_model(self) -> None:
        place = f"model {self.model}"
        if self.model == NO_MODEL:
            mend = f"name one, or {next(iter(EMBEDDED_MODELS))}"
            raise InputError(f"{self.cli} asks a model", place=place, mend=mend)
        if self.model.startswith(LOCAL):
            mend = "run it in a sweep, or give the URL of a server of it as the endpoint"
            raise InputError("a local model is served to sweeps alone", place=place, mend=mend)
        if self.model.startswith(EMBEDDED):
            if self.model not in EMBEDDED_MODELS:
                mend = nearest(self.model, EMBEDDED_MODELS)
                raise InputError("is no embedded model", place=place, mend=mend)
        elif self.endpoint is None:
            mend = f"give the URL of one, or take {next(iter(EMBEDDED_MODELS))}"
            raise InputError("has no endpoint", place=place, mend=mend)


@dataclass(frozen=True)
class Place:
    """Where a cell runs in place.

    `alone`: cab is root in a container that nothing else uses. `pin` and `tag` are the image that sweeps run,
    None on a machine. `environment` is what every command's begins with, `cli_version` the CLI's as it says
    itself. `weaknesses` are reasons why no result from here is citable. `users` are those that agent and
    verifier run as, None for the usual ones.
    """

    alone: bool
    environment: Mapping[str, str]
    provenance: Provenance
    cli_version: str
    weaknesses: tuple[str, ...]
    pin: str | None = None
    tag: str | None = None
    users: tuple[User, User] | None = None


@dataclass(frozen=True)
class ImageFacts:
    """What an image knows of itself, from a file that its build wrote into it: the CLI in it, the image it
    stands on, by id and tag, the cab in it, and `env`, the image's own variables.
    """

    cli: str
    cli_version: str
    parent_id: str
    parent_tag: str
    cab_version: str
    commit: str | None
    dirty: bool | None
    env: Mapping[str, str]

    @classmethod
    def read(cls, path: Path) -> ImageFacts:
        """Raises EnvironmentFault where this is no image of cab's, or an older one."""
        try:
            return cls(**json.loads(path.read_text("utf-8")))
        except (OSError, ValueError, TypeError) as error:
            thing = "this is no image with a cell of its own"
            raise EnvironmentFault(thing, place=str(path), mend="see docs/images.md") from error

    @property
    def place(self) -> Place:
        return Place(
            alone=True,
            # An engine sets it in every container, and a CLI may tell its model which variables there are.
            environment={"HOSTNAME": socket.gethostname(), **self.env},
            provenance=Provenance.of_build(self.cab_version, self.commit, self.dirty),
            cli_version=self.cli_version,
            weaknesses=("single container: the image cannot tell its own digest",),
            pin=self.parent_id,
            tag=self.parent_tag,
        )


def machine_place(cli_version: str, environment: Mapping[str, str]) -> Place:
    """This machine, with a CLI that is installed on it."""
    return Place(
        alone=False,
        environment=environment,
        provenance=Provenance.read(),
        cli_version=cli_version,
        weaknesses=("no container",),
    )


def run_alone(
    asked: Asked,
    place: Place,
    evidence_dir: Path,
    *,
    on_stage: Callable[[str], None] = lambda _: None,
    hidden: Path | None = None,
) -> CellRecord:
    """Run the cell once and write its record with all evidence into the empty directory `evidence_dir`, in
    the store's form. `on_stage` is told each stage that begins. `hidden` is a directory that is kept from
    agent and tests: what earlier cells left may hold solutions.

    Raises InputError for what cannot be run, EnvironmentFault, StoreError and, where no file could be
    written, OSError. Whatever way it ends, no process, file or scratch of the cell's is left elsewhere.
    """
    matrix = asked.matrix()
    [cell] = matrix.plan.cells
    _close_to_others()
    if place.alone:
        _close_directories()
    with ExitStack() as stack:
        bench = _bench(stack, matrix, cell, asked, place, hidden)
        if not place.alone:
            on_stage(REFERENCE)
            _check_grading(bench, matrix.tasks[cell.key.task])
        result = CellRun(bench, cell, evidence_dir, on_stage).run()
        record = record_of(bench, cell, result, ())
        save_evidence(evidence_dir, result.evidence)
        save_facts(evidence_dir, result.facts)
        with store_errors(evidence_dir / CELL):
            write_durably(evidence_dir / CELL, to_json(record))
    return record


def _check_grading(bench: Bench, task: Task) -> None:
    """Before anything is spent: raises EnvironmentFault where this machine cannot grade the task."""
    if not bench.grader.reference_passes(task):
        raise EnvironmentFault(
            "its hidden tests do not pass here on its own solution",
            place=task.name,
            mend="this machine's tools differ too much from those of cab's images: use Docker",
        )


def _bench(
    stack: ExitStack, matrix: Matrix, cell: PlannedCell, asked: Asked, place: Place, hidden: Path | None
) -> Bench:
    """The sandbox, scratch and gateway of one cell; `stack` ends all of it."""
    gateway = stack.enter_context(
        InsideGateway([asked.endpoint] if asked.endpoint else [], port=GATEWAY_PORT if place.alone else 0)
    )
    sandbox = InPlaceSandbox(
        alone=place.alone, port=gateway.port, environment=place.environment, hidden=hidden
    )
    # On a machine commands find their files by their path; where cab is root, they are another user's.
    mode = 0o711 if not place.alone and os.geteuid() == 0 else 0o700
    scratch = stack.enter_context(scratch_alone(mode, SCRATCH))
    grader = Grader(
        sandbox,
        ScratchRoot(scratch / "cells", bounds=False, mode=mode),
        place.pin,
        matrix.sweep_id,
        matrix.sweep_id,
        matrix.spec.limits.resolve(),
        *(place.users or ()),
    )
    stack.enter_context(closing(grader))
    cli = cell.key.cli
    pins = {cli: place.pin} if place.pin else {}
    open_egress = ("egress open",) if sandbox.egress == "open" else ()
    return Bench(
        sweep_id=matrix.sweep_id,
        grader=grader,
        gateway=gateway,
        pins=pins,
        tags={cli: place.tag} if place.tag else {},
        adapters={cli: replace(matrix.adapters[cli], version=place.cli_version)},
        adapter_digests=matrix.adapter_digests,
        tasks=matrix.tasks,
        provenance=place.provenance,
        engine_version=None,
        concurrency=1,
        timeout_s=matrix.spec.timeout_s,
        prices={asked.model: asked.price} if asked.price else matrix.prices,
        settings={model.id: model.settings for model in matrix.spec.models},
        spending=matrix.spec.limits,
        require=matrix.spec.require,
        stacks=matrix.stacks,
        base_url=gateway.base_url,
        isolation=Isolation(
            containers="single-container" if place.alone else "none", egress=sandbox.egress, verifier="shared"
        ),
        weaknesses=place.weaknesses + open_egress,
        found_limits=found_limits(),
    )


def _close_directories() -> None:
    """Take from the commands' users what Landlock keeps them from writing to in any case.

    Programs ask `access` whether they may write there, which knows nothing of Landlock: SQLite would take
    /var/tmp for its temporary files, and fail, instead of going on to /tmp as where the root is read-only.
    """
    for path in NOT_WRITABLE:
        with suppress(FileNotFoundError):
            path.chmod(0o755)


def _close_to_others() -> None:
    """Keep this process's memory, environment and descriptors from others, its own user's included: the key
    is in it.
    """
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
