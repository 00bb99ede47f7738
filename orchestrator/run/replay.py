"""A finished cell once more, with the recorded answers: the same CLI in the same container, no endpoint.

The replay is a sweep of one cell, stored where it is told to be; its model is `replay/` and the recorded
one's name. It runs what the recorded sweep pinned, or is refused with both digests named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from orchestrator.errors import CellFault, InputError, StoreError
from orchestrator.gateway.contract import ReplayReport
from orchestrator.gateway.evidence import recorded_wire
from orchestrator.gateway.replay import load_recording
from orchestrator.gateway.replay.normalise import normalise_value
from orchestrator.plan.expand import REPLAY, Plan, PlannedCell, Recorded
from orchestrator.plan.spec import Spending
from orchestrator.plan.task import load_task
from orchestrator.run.outcome import REPLAY_DIFFERS, with_cause
from orchestrator.run.pins import BASE, check_same
from orchestrator.run.rescore import rescore
from orchestrator.run.source import Source
from orchestrator.run.start import Matrix, Ready, stored_fleet, stored_spec, sweep_record
from orchestrator.sandbox.scratch import ScratchRoot
from orchestrator.store.cells import CellStore, read_cell
from orchestrator.store.files import store_errors
from orchestrator.store.record import CellRecord, SweepRecord

REPORT = "replay.json"
DIFF = "diff.patch"

TIME_NAMES = (
    "latency",
    "composite.composite",
    "composite.bounds",
    "composite.components.active_time",
    "composite_published.composite",
    "composite_published.bounds",
    "composite_published.components.wall_clock_ms",
    "composite_published.components.latency_efficiency",
)
"""Scores that hold time, with all below them: recorded answers come at once, so these are not compared."""


@dataclass(frozen=True)
class Prepared:
    """A replay that was found good; nothing was touched yet. `recorded` counts the recorded calls."""

    matrix: Matrix
    stored: SweepRecord
    cell: PlannedCell
    recorded: int

    @property
    def source(self) -> Recorded:
        assert self.cell.recorded is not None
        return self.cell.recorded


@dataclass(frozen=True)
class Comparison:
    """A recorded cell beside its replay. `differences`: name of a score -> (recorded, replayed), without what
    holds time.
    """

    recorded: CellRecord
    replayed: CellRecord
    same_diff: bool
    differences: Mapping[str, tuple[Any, Any]]
    report: ReplayReport

    @property
    def same_outcome(self) -> bool:
        one, other = self.recorded.outcome, self.replayed.outcome
        return (one.name, one.cause) == (other.name, other.cause)

    @property
    def same(self) -> bool:
        """Whether all that is compared is the same."""
        same = self.same_outcome and self.same_diff and not self.differences
        return same and self.report.difference is None and not self.report.not_asked


def prepare(cell_dir: Path, *, paced: bool = False, images_dir: Path | None = None) -> Prepared:
    """Find out what to run. Raises InputError for a cell that cannot be replayed, PinMismatch where its task
    or adapter is not what it was, StoreError where its record or its sweep's cannot be read.
    """
    cell_dir = cell_dir.resolve()
    record = read_cell(cell_dir)
    _check_replayable(record)
    store = CellStore(cell_dir.parents[5], cell_dir.parents[4].name)
    stored = store.sweep()
    cli, task, stack = record.identity.cli, record.identity.task, record.identity.stack
    fleet = stored_fleet([cli], images_dir, place=record.cell_id)
    whole = stored_spec(store, stored)
    source = Source.of_stored(store.root.parent, whole)
    adapter, found = fleet.adapter(cli), load_task(source.tasks_dir, task)
    if adapter.wire is None:
        raise InputError(f"{cli} asks no model", place=record.cell_id, mend="there is nothing to replay")
    asked = Recorded(record.cell_id, cell_dir, record.identity.model, paced)
    wire_path = cell_dir / "wire.jsonl.gz"
    wire = recorded_wire(wire_path) or adapter.wire
    recorded = load_recording(cell_dir / "calls.jsonl", wire_path, wire)
    # Without endpoints and budget: a replay has no key and spends nothing. It is made no second time.
    alone: dict[str, Any] = {"clis": (cli,), "tasks": (task,), "models": (), "endpoints": {}, "exclude": ()}
    once = {"runs": 1, "concurrency": 1, "retries": 0, "budget": Spending()}
    spec = whole.model_copy(update=alone | once | {"stacks": whole.only_stack(stack)})
    key = replace(record.identity.key, model=f"{REPLAY}{asked.model}")
    name = f"replay-{stored.sweep_id}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    cell = PlannedCell(key.cell_id(name), key, None, 0, asked)
    alone_in_it = Plan((cell,), ())
    matrix = Matrix(
        spec, name, {cli: adapter}, {task: found}, alone_in_it, stacks=source.stacks(spec), fleet=fleet
    )
    check_same("task", {task: stored.tasks[task]}, {task: found.content_hash})
    check_same("adapter", {cli: stored.adapters[cli]}, dict(matrix.adapter_digests))
    plugins = {name: stored.plugins[name] for name in matrix.plugin_digests}
    check_same("plugin", plugins, dict(matrix.plugin_digests))
    return Prepared(matrix, stored, cell, len(recorded))


def _check_replayable(record: CellRecord) -> None:
    def refuse(thing: str, mend: str) -> InputError:
        return InputError(thing, place=record.cell_id, mend=mend)

    if record.imported is not None:
        raise refuse("was imported: no exchange of it is stored", "replay a cell of your own")
    if record.replay_of is not None:
        raise refuse("is a replay itself", f"replay {record.replay_of}")
    if not record.outcome.counted:
        outcome = with_cause(record.outcome.name, record.outcome.cause)
        raise refuse(f"ended as {outcome}, so its record may lack a part", "replay a cell that was counted")


@contextmanager
def started(call: Prepared, output: Path) -> Iterator[Ready]:
    """Make the replay's sweep in the results directory `output`, and start the gateway.

    Raises PinMismatch where the engine has not the pinned images. Whatever way it ends, no container, process
    or scratch directory is left.
    """
    from orchestrator.run import machine

    matrix, store = call.matrix, CellStore(output, call.matrix.sweep_id)
    cli = call.cell.key.cli
    pins = {name: call.stored.pins[name] for name in sorted({BASE, cli})}
    with ExitStack() as stack:
        stack.enter_context(store)
        sandbox = machine.start_engine(stack, pins, [cli], matrix.fleet)
        sweep = sweep_record(matrix, call.stored.spec_digest, pins)
        asked = call.source.model
        prices = {model: price for model, price in call.stored.prices.items() if model == asked}
        store.create(sweep.model_copy(update={"replay_of": call.source.cell_id, "prices": prices}))
        scratch = ScratchRoot.default()
        scratch.sweep_dead()
        bench = machine.start_bench(stack, matrix, store, pins, scratch, sandbox)
        yield Ready(matrix, store, (call.cell,), [call.cell], bench)


def compare(call: Prepared, store: CellStore) -> Comparison:
    """The recorded cell, scored by the rules of today, beside its replay.

    Raises CellFault where a fault of the machine ended the replay, StoreError where a file cannot be read.
    """
    cell_dir = store.cell_dir(call.cell.key)
    again, replayed = rescore(call.source.cell_dir), read_cell(cell_dir)
    outcome = replayed.outcome
    if not outcome.counted and outcome.cause != REPLAY_DIFFERS:
        thing = f"the replay ended as {with_cause(outcome.name, outcome.cause)}: {outcome.detail}"
        raise CellFault(outcome.cause or outcome.name, thing, place=replayed.cell_id, mend="replay it again")
    return Comparison(
        recorded=again.record,
        replayed=replayed,
        same_diff=_bytes(call.source.cell_dir / DIFF) == _bytes(cell_dir / DIFF),
        differences=differing(again.scores, replayed.scores),
        report=_report(cell_dir / REPORT),
    )


def differing(
    recorded: Mapping[str, Mapping[str, Any]], replayed: Mapping[str, Mapping[str, Any]]
) -> dict[str, tuple[Any, Any]]:
    """Scores by name that are not the same, without those of TIME_NAMES; texts are compared less the times
    and ids in them, as requests are.
    """
    old, new = _flat(recorded), _flat(replayed)
    return {
        name: (old.get(name), new.get(name))
        for name in sorted(old | new)
        if (name in old) != (name in new) or normalise_value(old[name]) != normalise_value(new[name])
    }


def _flat(value: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, inner in value.items():
        name = f"{above}{key}"
        if name in TIME_NAMES:
            continue
        if isinstance(inner, Mapping) and inner:
            found |= _flat(inner, f"{name}.")
        else:
            found[name] = inner
    return found


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _report(path: Path) -> ReplayReport:
    with store_errors(path):
        raw = path.read_bytes()
    try:
        return ReplayReport.model_validate_json(raw)
    except ValidationError as error:
        raise StoreError(error.errors()[0]["msg"], place=str(path), mend="replay the cell again") from None
