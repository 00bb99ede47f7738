"""From a sweep file, or a stored sweep, to cells that are running; and back to a clean machine.

A sweep stores what it resolved (images, tasks, adapters, order) before its first cell. On a resume that
decides: a cell runs exactly what the sweep said, or the sweep is refused with both digests named.

`of_file` and `of_stored` find out what a call is about, and only read; `started` takes the lock and runs.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from orchestrator.adapter import Adapter
from orchestrator.errors import InputError, StoreError
from orchestrator.fleet import Fleet, where_elsewhere
from orchestrator.gateway.local.registry import PREFIX as LOCAL
from orchestrator.gateway.local.registry import LocalModel, Registry
from orchestrator.paths import IMAGES_LOCK, INIT_BINARY, cab_command, resume_command
from orchestrator.plan.expand import Plan, PlannedCell, expand, points
from orchestrator.plan.only import choose, matches
from orchestrator.plan.plugin import Plugin, list_plugins
from orchestrator.plan.runs import adaptive, fewest, most
from orchestrator.plan.spec import LoadedSpec, Requirement, Spending, SweepSpec, load_spec, sweep_id
from orchestrator.plan.task import Task, list_tasks
from orchestrator.run.budget import with_budget
from orchestrator.run.grow import grow
from orchestrator.run.outcome import TABLE
from orchestrator.run.pins import check_same
from orchestrator.run.provenance import Provenance
from orchestrator.run.source import Source, applied_stacks
from orchestrator.sandbox.scratch import ScratchRoot
from orchestrator.store.cells import SWEEP, CellStore
from orchestrator.store.index import IndexEntry
from orchestrator.store.names import less_run
from orchestrator.store.record import Cab, Machine, SkippedCell, SweepRecord
from scorers.evidence import Price

if TYPE_CHECKING:
    from orchestrator.run.bench import Bench


@dataclass(frozen=True)
class Matrix:
    """A spec with everything it names: adapters, proved tasks, and the cells it expands to."""

    spec: SweepSpec
    sweep_id: str
    adapters: Mapping[str, Adapter]
    tasks: Mapping[str, Task]
    plan: Plan
    local: Mapping[str, LocalModel] = field(default_factory=dict)
    """The local models that can be served here, by id."""
    stacks: Mapping[str, tuple[Plugin, ...]] = field(default_factory=dict)
    """The plugins of each stack that has some."""
    fleet: Fleet = field(default_factory=Fleet)
    whole: Plan = field(default_factory=lambda: Plan((), ()))
    """`plan` with all that it may come to: of adaptive runs the most."""

    @cached_property
    def plugins_skipped(self) -> Mapping[tuple[str, str], tuple[tuple[str, str], ...]]:
        """By CLI and stack, where the CLI takes a part of it: the plugins (name, reason) that it does not."""
        return {
            pair: applied.skipped
            for pair, applied in applied_stacks(self.adapters, self.stacks).items()
            if applied.skipped and applied.plugins
        }

    @cached_property
    def plugin_digests(self) -> Mapping[str, str]:
        """`sha256:…` of each plugin."""
        return {plugin.name: plugin.digest for plugins in self.stacks.values() for plugin in plugins}

    @cached_property
    def adapter_digests(self) -> Mapping[str, str]:
        """`sha256:…` of each CLI's adapter file."""
        files = {cli: self.fleet.adapter_file(cli) for cli in self.adapters}
        return {cli: f"sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}" for cli, file in files.items()}

    def adapters_of(self, cells: Iterable[PlannedCell]) -> dict[str, Adapter]:
        """The adapters of the CLIs of these cells, by name."""
        return {name: self.adapters[name] for name in sorted({cell.key.cli for cell in cells})}

    @classmethod
    def of(
        cls,
        spec: SweepSpec,
        name: str,
        loaded: LoadedSpec | None = None,
        fleet: Fleet | None = None,
        source: Source | None = None,
    ) -> Matrix:
        """Resolve the names of a spec. Raises InputError for an unknown one, or where there is no cell."""
        fleet, source = fleet or Fleet(), source or Source()
        if loaded is not None:
            loaded.require_known("clis", fleet.known)
            loaded.require_known("tasks", list_tasks(source.tasks_dir), cutoff=0.4)
        # What is stored are names: a CLI that comes later is not part of the sweep.
        spec = spec.model_copy(update={"clis": fleet.matching(spec.clis)})
        adapters = {cli: fleet.adapter(cli) for cli in spec.clis if cli not in fleet.unavailable}
        if loaded is not None:
            loaded.require_models(cli for cli, adapter in adapters.items() if adapter.uses_model)
        tasks = source.tasks(spec)
        if loaded is not None:
            loaded.require_exclusions(points(spec, adapters, list(tasks)))
            loaded.require_plugins(list_plugins(source.plugins_dir))
        stacks = source.stacks(spec)
        local, unfit = _local_models(spec)
        plan = expand(
            spec,
            sweep_id=name,
            clis=adapters,
            tasks=list(tasks),
            env=os.environ,
            unfit=unfit,
            untaken={
                (cli, stack): f"stack {stack}: {reason}"
                for (cli, stack), applied in applied_stacks(adapters, stacks).items()
                if (reason := applied.reason_to_skip)
            },
            unavailable=fleet.unavailable,
        )
        if not plan.cells and not plan.skipped:
            raise InputError(
                "the sweep has no cell", place=name, mend="start one with --id from a file with some"
            )
        first = plan.up_to(fewest(spec.runs))
        return cls(spec, name, adapters, tasks, first, local, stacks, fleet, whole=plan)

    def in_order(self, order: Sequence[str]) -> Matrix:
        """With the cells that a stored sweep has, and no others."""
        runs = max((less_run(cell_id)[1] for cell_id in order), default=1)
        return replace(self, plan=self.whole.up_to(runs).in_order(order))

    @cached_property
    def prices(self) -> dict[str, Price | str]:
        """By model: its price as of now, or why there is none."""
        from orchestrator.run.prices import prices_of

        return prices_of(self.spec)

    def check_proved(self) -> None:
        """Raises InputError for a task that is not proved as it is now."""
        for task in self.tasks.values():
            if task.graded and not task.proved:
                raise InputError(
                    "the task is not proved as it is now",
                    place=str(task.path),
                    mend=f"cab task validate {task.name}",
                )


def _local_models(spec: SweepSpec) -> tuple[dict[str, LocalModel], dict[str, str]]:
    """The local models of a spec: those that can be served here, and why the others cannot, by id."""
    registry = Registry.default()
    local, unfit = {}, {}
    for model in spec.models:
        if not model.local:
            continue
        if reason := registry.reason_to_skip(model.id):
            unfit[model.id] = reason
        else:
            local[model.id] = registry.get(model.id.removeprefix(LOCAL))
    return local, unfit


@dataclass(frozen=True)
class Options:
    """What a call asks beside its sweep; None is what the sweep says itself.

    `runs` is part of what a sweep is: a stored one can only be given more of them, by a resume. `concurrency`
    is how it runs, and stands in each cell's record. `only` limits the call, not the sweep. A part of
    `budget` that is given takes the place of the sweep's; `require` adds to it. `images_dir` holds folders of
    CLIs beside the repository's.
    """

    runs: int | None = None
    concurrency: int | None = None
    only: tuple[str, ...] = ()
    budget: Spending = field(default_factory=Spending)
    require: tuple[Requirement, ...] = ()
    images_dir: Path | None = None

    def applied(self, spec: SweepSpec) -> SweepSpec:
        budget = spec.budget.model_copy(update=self.budget.model_dump(exclude_none=True))
        require = tuple(dict.fromkeys((*spec.require, *self.require)))
        asked = {"runs": self.runs, "concurrency": self.concurrency, "budget": budget, "require": require}
        return spec.model_copy(update={name: value for name, value in asked.items() if value is not None})


_AS_IT_IS = Options()


@dataclass(frozen=True)
class Prepared:
    """A call that was found good and has not touched anything yet.

    `spec_digest` is that of the file where the sweep is to be started, None where it is stored; `grown` is
    its new record where runs are added to it. `chosen` is what the call is about.
    """

    matrix: Matrix
    store: CellStore
    options: Options
    chosen: tuple[PlannedCell, ...]
    spec_digest: str | None = None
    grown: SweepRecord | None = None

    def todo(self) -> list[PlannedCell]:
        """What of the chosen cells is not finished. Raises InputError where some of it cannot be run here, as
        for want of a key.
        """
        finished = self.store.finished()
        planned = {cell.cell_id for cell in self.matrix.plan.cells}
        reasons = dict(self.matrix.plan.skipped)
        for cell_id in self._order():
            if cell_id in planned or ended(finished.get(cell_id)):
                continue
            if matches(cell_id, self.options.only):
                raise InputError(
                    reasons.get(cell_id, "is no cell of its sweep any more"),
                    place=cell_id,
                    mend="the sweep was started with it: give it back, or start a new sweep with --id",
                )
        return [cell for cell in self.chosen if not ended(finished.get(cell.cell_id))]

    def images_to_build(self) -> dict[str, str | None]:
        """The images that the call would be refused for, as images.lock has them: `pins.to_build` of the CLIs
        that are not pinned yet.
        """
        from orchestrator.run.pins import to_build
        from orchestrator.sandbox.images import known_lock

        pinned = () if self.spec_digest is not None else self.store.sweep().pins
        adapters = self.matrix.adapters_of(cell for cell in self.todo() if cell.key.cli not in pinned)
        return to_build(known_lock(IMAGES_LOCK), adapters, INIT_BINARY) if adapters else {}

    def _order(self) -> Sequence[str]:
        if self.spec_digest is not None:
            return ()
        return (self.grown or self.store.sweep()).order


@dataclass(frozen=True)
class Ready:
    """A sweep whose lock is held. `chosen` is what the call is about, `todo` what of it is not finished;
    `bench` is None where that is nothing. `only` are the globs that the call is limited to. Of preflight are
    `incompatible` (not run, ever) and `held` (not run by this call: their handshake came to no result).
    """

    matrix: Matrix
    store: CellStore
    chosen: Sequence[PlannedCell]
    todo: Sequence[PlannedCell]
    bench: Bench | None
    only: tuple[str, ...] = ()
    incompatible: Sequence[PlannedCell] = ()
    held: Sequence[PlannedCell] = ()


def plan_of(loaded: LoadedSpec, name: str | None = None, options: Options = _AS_IT_IS) -> Matrix:
    """The matrix of a sweep file, without a machine to run it; whether its tasks are proved is not asked."""
    today = datetime.now(UTC).date()
    spec = options.applied(loaded.spec)
    return Matrix.of(spec, name or sweep_id(spec, today), loaded, Fleet(elsewhere=options.images_dir))


def of_file(path: Path, results: Path, name: str | None, options: Options = _AS_IT_IS) -> Prepared:
    """A call to start the sweep of a file, or to go on with it where a cell of its id is finished already.

    Raises InputError where those were made from another version of the file, or with other runs.
    """
    loaded = load_spec(path)
    matrix = plan_of(loaded, name, options)
    store = CellStore(results, matrix.sweep_id)
    if store.finished():
        _check_same_sweep(store, loaded, options)
        return of_stored(results, matrix.sweep_id, replace(options, runs=None))
    if not matrix.plan.cells:
        reason = matrix.plan.skipped[0][1]
        raise InputError(f"every cell is skipped: {reason}", place=str(path), mend="see `cab sweep plan`")
    matrix.check_proved()
    return _new(matrix, store, options, loaded.digest, str(path))


def of_spec(
    spec: SweepSpec, results: Path, name: str, digest: str, source: Source, options: Options = _AS_IT_IS
) -> Prepared:
    """A call to start a sweep that stands in no file, or to go on with it where a cell of it is finished.
    `digest` is that of what the sweep was made of: whoever calls has seen that it is the same.

    Raises InputError where it has no cell that can be run.
    """
    store = CellStore(results, name)
    if store.finished():
        return of_stored(results, name, options)
    matrix = Matrix.of(options.applied(spec), name, fleet=Fleet(elsewhere=options.images_dir), source=source)
    if not matrix.plan.cells:
        raise InputError(f"every cell is skipped: {matrix.plan.skipped[0][1]}", place=name)
    return _new(matrix, store, options, digest, name)


def _new(matrix: Matrix, store: CellStore, options: Options, digest: str, place: str) -> Prepared:
    """A call to start a sweep. Raises InputError where a price is wanting that it needs."""
    if matrix.spec.needs_prices:
        from orchestrator.run.prices import check_known

        check_known(matrix.spec, matrix.prices, place)
    return Prepared(matrix, store, options, choose(matrix.plan, options.only), spec_digest=digest)


def _check_same_sweep(store: CellStore, loaded: LoadedSpec, options: Options) -> None:
    stored = _own(store)
    if stored.spec_digest != loaded.digest:
        raise InputError(
            f"is not what {store.sweep_id} was started from",
            place=str(loaded.document.path),
            mend="give another --id, or undo the edit",
        )
    has = stored_spec(store, stored).runs
    if options.runs is not None and (adaptive(has) or options.runs != has):
        resume = resume_command(store.root, *where_elsewhere(stored.adapters))
        grows = f"`{resume} --runs {options.runs}` adds to it"
        raise InputError(
            f"{store.sweep_id} has runs: {has}",
            place=f"--runs {options.runs}",
            mend=f"{grows if options.runs > most(has) else 'leave --runs out'}, or give another --id",
        )


def of_stored(results: Path, name: str, options: Options = _AS_IT_IS) -> Prepared:
    """A call to go on with a stored sweep: its spec, pins and order.

    Raises PinMismatch where it cannot be run as it was, InputError where runs were to be taken from it.
    """
    store = CellStore(results, name)
    stored = _own(store)
    spec = stored_spec(store, stored)
    fleet = stored_fleet(spec.clis, options.images_dir, place=str(store.root))
    asked = options.applied(spec)
    if options.runs is not None and (limits := adaptive(spec.runs)):
        asked = asked.model_copy(update={"runs": limits.model_copy(update={"max": options.runs})})
    matrix = Matrix.of(asked, name, fleet=fleet, source=Source.of_stored(results, spec))
    check_same("task", stored.tasks, {task.name: task.content_hash for task in matrix.tasks.values()})
    check_same("adapter", stored.adapters, dict(matrix.adapter_digests))
    check_same("plugin", stored.plugins, dict(matrix.plugin_digests))
    builds = {name: model.build_id for name, model in matrix.local.items()}
    check_same("local model", {name: stored.models[name] for name in builds if name in stored.models}, builds)
    if matrix.spec.needs_prices:
        from orchestrator.run.prices import NOT_LOOKED_UP, check_known

        prices = {model.id: stored.prices.get(model.id, NOT_LOOKED_UP) for model in spec.models}
        check_known(matrix.spec, prices, str(store.root / SWEEP))
    grown = None
    if options.runs is not None and options.runs != most(spec.runs):
        grown = grow(stored, spec, options.runs, matrix.whole)
    matrix = matrix.in_order((grown or stored).order)
    return Prepared(matrix, store, options, choose(matrix.plan, options.only), grown=grown)


@contextmanager
def started(call: Prepared, further: Callable[[Prepared], Prepared] = lambda call: call) -> Iterator[Ready]:
    """Take the sweep's lock, mend what a dead runner left, and start the gateway.

    `further` may give a stored sweep more cells once its results are mended. Whatever way it ends, no
    container, process or scratch directory of the sweep is left.
    """
    store = call.store
    with ExitStack() as stack:
        stack.enter_context(store)
        sandbox = None
        if call.spec_digest is None:
            record = store.open()
            call = further(call)
            if call.grown is not None:
                # It was made without the lock: a call that ended since may have pinned more, or spent more.
                record = call.grown.model_copy(update={"pins": record.pins, "budgets": record.budgets})
                store.write_sweep(record)
        else:
            # First, so that a machine that cannot run the sweep does not come to store it.
            from orchestrator.run import machine

            adapters = call.matrix.adapters_of(call.chosen)
            pins = machine.pins_now(adapters, call.matrix.fleet)
            sandbox = machine.start_engine(stack, pins, adapters, call.matrix.fleet)
            record = sweep_record(call.matrix, call.spec_digest, pins)
            store.create(record)
        scratch = ScratchRoot.default()
        scratch.sweep_dead()
        matrix, todo = call.matrix, call.todo()
        bench = None
        if todo:
            from orchestrator.run import machine

            # Of adaptive runs the next rounds may be of contestants that have nothing to do in this one.
            ahead = call.chosen if adaptive(matrix.spec.runs) else todo
            adapters = matrix.adapters_of(ahead)
            pins = machine.pins_of(record.pins, adapters, matrix.fleet)
            sandbox = sandbox or machine.start_engine(stack, pins, adapters, matrix.fleet)
            so_run = with_budget(
                record.model_copy(update={"pins": pins}), matrix.spec.budget, datetime.now(UTC)
            )
            if so_run != record:
                store.write_sweep(so_run)
            asked = {cell.key.model for cell in ahead}
            bench = machine.start_bench(stack, matrix, store, pins, scratch, sandbox, asked)
        yield Ready(matrix, store, call.chosen, todo, bench, call.options.only)


def _own(store: CellStore) -> SweepRecord:
    """A stored sweep that cab ran. Raises InputError for one that was imported."""
    stored = store.sweep()
    if stored.imported is not None:
        raise InputError(
            "is a published sweep that was imported, and cannot be run",
            place=str(store.root),
            mend="start one of your own with another --id",
        )
    if stored.replay_of is not None:
        mend = f"run `{cab_command('cell', 'replay', stored.replay_of)}`"
        raise InputError("is the replay of one cell, and ends with it", place=str(store.root), mend=mend)
    return stored


def stored_spec(store: CellStore, stored: SweepRecord) -> SweepSpec:
    """The spec that a sweep was started with. Raises StoreError where the record's does not hold."""
    try:
        return SweepSpec.of_data(stored.spec)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in ("spec", *first["loc"]))
        place = str(store.root / SWEEP)
        raise StoreError(f"{field}: {first['msg']}", place=place, mend="restore the file") from None


def stored_fleet(clis: Iterable[str], images_dir: Path | None, *, place: str) -> Fleet:
    """The fleet that has these CLIs, which were run before; those that are not the repository's are in
    `images_dir`. Raises InputError for those that are in neither.
    """
    fleet = Fleet(elsewhere=images_dir)
    gone = [name for name in clis if name not in fleet.known]
    if gone:
        beside = f"images/ or {images_dir}" if images_dir else "images/"
        raise InputError(
            f"{beside} has no folder of {', '.join(gone)}, which it ran",
            place=place,
            mend="give --images-dir with the folder that holds the CLIs' folders",
        )
    return fleet


def ended(entry: IndexEntry | None) -> bool:
    """Whether a stored cell stands: one whose outcome the table says to retry is run again on a resume."""
    return entry is not None and not TABLE[entry.outcome].retried


def sweep_record(matrix: Matrix, spec_digest: str | None, pins: Mapping[str, str]) -> SweepRecord:
    """What is stored of a sweep before its first cell."""
    provenance = Provenance.read()
    return SweepRecord(
        sweep_id=matrix.sweep_id,
        started_at=datetime.now(UTC),
        spec=matrix.spec.model_dump(mode="json"),
        spec_digest=spec_digest,
        pins=dict(pins),
        tasks={task.name: task.content_hash for task in matrix.tasks.values()},
        adapters=dict(matrix.adapter_digests),
        models={name: model.build_id for name, model in matrix.local.items()},
        plugins=dict(matrix.plugin_digests),
        order=tuple(cell.cell_id for cell in matrix.plan.cells),
        seed=matrix.spec.seed,
        skipped=tuple(SkippedCell(cell_id=cell_id, reason=reason) for cell_id, reason in matrix.plan.skipped),
        concurrency=matrix.spec.concurrency,
        prices=matrix.prices,
        cab=Cab(version=provenance.version, commit=provenance.commit, dirty=provenance.dirty),
        machine=Machine(
            cores=provenance.cores,
            memory_bytes=provenance.memory_bytes,
            platform=provenance.platform,
            kernel=provenance.kernel,
        ),
    )
