"""A CLI of cab's as the agent: a sweep with conditions, whose cells run in containers through the gateway."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.errors import InputError
from orchestrator.external.artifacts import Artifacts, Attempt
from orchestrator.external.codex_home import PLUGIN
from orchestrator.external.work import Work, is_left_out
from orchestrator.fleet import Fleet
from orchestrator.gateway.local.registry import PREFIX as LOCAL
from orchestrator.gateway.settings import GenerationSettings
from orchestrator.nearest import nearest
from orchestrator.plan.spec import (
    EMBEDDED,
    EMBEDDED_MODELS,
    BaseUrl,
    EndpointSpec,
    EnvName,
    LimitSpec,
    ModelSpec,
    PriceSpec,
    Requirement,
    StackSpec,
    SweepSpec,
)
from orchestrator.run.outcome import TABLE
from orchestrator.run.source import Source
from orchestrator.run.stack import Rules
from orchestrator.run.start import Options, of_spec, started
from orchestrator.store.cells import CellStore
from orchestrator.store.evidence import load_evidence
from orchestrator.store.files import store_errors
from orchestrator.store.names import NO_MODEL, CellKey
from orchestrator.store.record import CellRecord

ENDPOINT, KEY = "CAB_ENDPOINT", "CAB_KEY"
"""Variables with the base URL of a model's endpoint, and its key."""


@dataclass(frozen=True)
class CliAgent:
    """A CLI with what its cells may spend. `keyed`: a key is sent to the endpoint. A `timeout_s` of None is
    the tasks' own.
    """

    cli: str
    model: str
    wire: str = "chat"
    keyed: bool = False
    settings: GenerationSettings = field(default_factory=GenerationSettings)
    price: PriceSpec | None = None
    limits: LimitSpec = field(default_factory=LimitSpec)
    timeout_s: float | None = None
    require: tuple[Requirement, ...] = ()
    stacked: bool = False

    def check(self) -> None:
        """Raises InputError where this CLI cannot be asked with this model."""
        fleet = Fleet()
        if self.cli in fleet.unavailable:
            mend = "`cab images list` tells which CLIs there are"
            raise InputError(fleet.unavailable[self.cli], place=f"--agent {self.cli}", mend=mend)
        if self.cli not in fleet.known:
            known = [*fleet.known, "command"]
            raise InputError("is no CLI", place=f"--agent {self.cli}", mend=nearest(self.cli, known))
        place = f"--model {self.model}"
        if not fleet.adapter(self.cli).uses_model:
            if self.model != NO_MODEL:
                raise InputError(f"{self.cli} asks no model", place=place, mend=f"say {NO_MODEL}")
        elif self.model == NO_MODEL:
            raise InputError(f"{self.cli} asks a model", place=place, mend="name one")
        elif self.model.startswith(EMBEDDED) and self.model not in EMBEDDED_MODELS:
            raise InputError("is no embedded model", place=place, mend=nearest(self.model, EMBEDDED_MODELS))

    @property
    def hosted(self) -> bool:
        """Whether the model is at an endpoint."""
        return self.model != NO_MODEL and not self.model.startswith((EMBEDDED, LOCAL))

    def spec(
        self, name: str, tasks: tuple[str, ...], conditions: tuple[str, ...], runs: int, workers: int
    ) -> SweepSpec:
        """The sweep. Raises ValidationError for what no sweep may say."""
        at = "endpoint" if self.hosted else None
        model = ModelSpec(id=self.model, endpoint=at, price=self.price, settings=self.settings)
        return SweepSpec(
            name=name,
            clis=(self.cli,),
            models=() if self.model == NO_MODEL else (model,),
            endpoints={at: self._endpoint()} if at else {},
            tasks=tasks,
            conditions=conditions,
            stacks=(StackSpec(name=PLUGIN, plugins=(PLUGIN,)),) if self.stacked else ("factory",),
            runs=runs,
            concurrency=workers,
            limits=self.limits,
            timeout_s=self.timeout_s,
            require=self.require,
        )

    def _endpoint(self) -> EndpointSpec:
        key = EnvName(env=KEY) if self.keyed else None
        return EndpointSpec.model_validate(
            {"base_url": BaseUrl(env=ENDPOINT), "key": key, "wire": self.wire}, strict=False
        )


def run_cells(artifacts: Artifacts, spec: SweepSpec, run_id: str, digest: str) -> bool:
    """Run what is not finished; whether the user stopped it before its end. Shows its progress on stderr.

    Raises InputError, EnvironmentFault, PinMismatch and StoreError as a sweep does.
    """
    # Imported here: of a finished run nothing is shown, and no engine is needed.
    from orchestrator.report.live import watch
    from orchestrator.report.preflight import check
    from orchestrator.report.summary import write_summary

    options = Options(concurrency=spec.concurrency)
    source = Source.beside(artifacts.results)
    call = of_spec(spec, artifacts.results, run_id, digest, source, options)
    if not call.todo():
        return False
    with started(call) as whole:
        ready, interrupted = check(whole)
        if not interrupted:
            interrupted = watch(ready)
        write_summary(ready.store)
    return interrupted


@dataclass(frozen=True)
class Cells:
    """The cells of a run that ended and count, as they are stored."""

    store: CellStore
    found: Mapping[Attempt, CellRecord]

    @classmethod
    def read(cls, artifacts: Artifacts, run_id: str) -> Cells:
        """Raises StoreError where one cannot be read."""
        store = CellStore(artifacts.results, run_id)
        found = {}
        for entry in store.finished().values():
            if entry.condition is None or not TABLE[entry.outcome].counted:
                continue
            key = CellKey(entry.cli, entry.model, entry.task, entry.run, entry.stack, entry.condition)
            instance = entry.task.partition("/")[2]
            found[Attempt(instance, entry.condition, entry.run)] = store.record(key)
        return cls(store, found)

    def work(self, attempt: Attempt) -> Work:
        """What the cell of an attempt came to. Raises StoreError."""
        record = self.found[attempt]
        cell_dir = self.store.cell_dir(record.identity.key)
        with store_errors(cell_dir):
            diff = (cell_dir / "diff.patch").read_bytes()
        tokens = record.scores.get("tokens", {})
        evidence = load_evidence(cell_dir)
        agent = evidence.phases.get("agent")
        return Work(
            outcome=record.outcome.name,
            diff=diff,
            elapsed_s=agent.end - agent.start if agent else None,
            input_tokens=_whole(tokens.get("prompt_tokens")),
            output_tokens=_whole(tokens.get("completion_tokens")),
            cell_id=record.cell_id,
            left_out=is_left_out(evidence.changes, truncated=evidence.diff_truncated),
        )

    def weaknesses(self) -> Iterator[str]:
        """Why numbers of these cells say nothing of a model, as their own claims have it."""
        levels = [record.claim for record in self.found.values() if record.claim.level == "pipeline_only"]
        yield from dict.fromkeys(reason for claim in levels for reason in claim.reasons)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


def laid_beside(cli: str, workdir: Path) -> set[str]:
    """Files of rules that cab lays in a cell's workdir and the repository does not have: a change of such a
    one is no part of a prediction.
    """
    rules = Rules.of(Fleet().adapter(cli), ())
    return {name for name in rules.files(workdir) if not (workdir / name).exists()}
