"""From a spec to cells, in the order in which they start.

The order is seeded and interleaved. Run 1 of every cell comes before run 2 of any. Within a run each CLI's
cells are shuffled, and the CLIs are spread evenly over the whole length in proportion to their number, so
that no CLI has a block of the endpoint's hours to itself. A cell's place comes from SHA-256 of the seed and
its name, not from a random generator: the same seed gives the same order on every machine, Python and date,
and another cell in the matrix does not reshuffle the rest of its CLI.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from orchestrator.adapter import Wire
from orchestrator.gateway.scripts import SCRIPTED_WIRE, ScriptKind
from orchestrator.gateway.translate import reaches
from orchestrator.plan.runs import most
from orchestrator.plan.spec import EMBEDDED_MODELS, FACTORY, ModelSpec, Point, SweepSpec
from orchestrator.store.names import NO_MODEL, NO_STACK, CellKey, less_run


class UsesModel(Protocol):
    """What expansion asks of an adapter."""

    @property
    def uses_model(self) -> bool: ...

    @property
    def wire(self) -> Wire | None: ...


REPLAY = "replay/"
"""Before the name of a model whose recorded answers were given again: no model answered."""


@dataclass(frozen=True)
class Recorded:
    """The finished cell that a cell replays, and the model that it asked."""

    cell_id: str
    cell_dir: Path
    model: str
    paced: bool = False


@dataclass(frozen=True)
class PlannedCell:
    """One cell to run. `endpoint` names an endpoint of the spec, or is the id of a local model; it is None
    for an embedded model or none. A cell with `recorded` is a replay; its key's model begins with REPLAY.
    """

    cell_id: str
    key: CellKey
    endpoint: str | None
    order_index: int
    recorded: Recorded | None = None

    @property
    def model(self) -> str:
        """The model that the CLI is told to ask."""
        return self.recorded.model if self.recorded else self.key.model

    @property
    def script(self) -> ScriptKind | None:
        """Which scripted model this cell asks; None for a model at an endpoint, and for none."""
        return EMBEDDED_MODELS.get(self.key.model)


@dataclass(frozen=True)
class Plan:
    """`cells` in the order they start; `skipped` (cell id, reason) by name."""

    cells: tuple[PlannedCell, ...]
    skipped: tuple[tuple[str, str], ...]

    def in_order(self, order: Sequence[str]) -> Plan:
        """Only the cells that `order` has, in that order: what a stored sweep says, whatever matches now."""
        cells = {cell.cell_id: cell for cell in self.cells}
        found = (
            replace(cells[cell_id], order_index=at) for at, cell_id in enumerate(order) if cell_id in cells
        )
        return Plan(tuple(found), self.skipped)

    def up_to(self, runs: int) -> Plan:
        """Only the first `runs` runs of each cell: they come before all others."""
        return Plan(
            tuple(cell for cell in self.cells if cell.key.run <= runs),
            tuple((cell_id, reason) for cell_id, reason in self.skipped if less_run(cell_id)[1] <= runs),
        )


def expand(
    spec: SweepSpec,
    *,
    sweep_id: str,
    clis: Mapping[str, UsesModel],
    tasks: Sequence[str],
    env: Mapping[str, str],
    unfit: Mapping[str, str] = MappingProxyType({}),
    untaken: Mapping[tuple[str, str], str] = MappingProxyType({}),
    unavailable: Mapping[str, str] = MappingProxyType({}),
) -> Plan:
    """All cells of a sweep. `clis` holds an adapter for each CLI, `tasks` the names that the globs match.

    A CLI that uses no model has one cell a task, of model `none`. A model is skipped whose endpoint lacks an
    environment variable, speaks a wire to which the CLI's is not translated or has no word for one of its
    settings, and so is a local one that `unfit` has a reason for, by id, and a stack of which `untaken` says,
    by CLI and stack, why the CLI takes none of it. A CLI that cannot run, for a reason that `unavailable` has
    by its name, is skipped with every model. What the spec excludes is no cell. Of adaptive runs there are
    all that there may come to be.
    """
    runnable: dict[CellKey, str | None] = {}
    skipped: list[tuple[str, str]] = []
    for cli in spec.clis:
        for model_id, endpoint, reason in _models(spec, clis.get(cli), env, unfit, unavailable.get(cli)):
            for task, stack, condition in product(tasks, spec.stack_names, spec.conditions or (None,)):
                if spec.excludes((cli, model_id, task, shown_stack(stack))):
                    continue
                why_not = reason or untaken.get((cli, stack))
                for run in range(1, most(spec.runs) + 1):
                    key = CellKey(cli, model_id, task, run, stack, condition)
                    if why_not is None:
                        runnable[key] = endpoint
                    else:
                        skipped.append((key.cell_id(sweep_id), why_not))
    order = interleave(runnable, spec.seed)
    cells = tuple(PlannedCell(key.cell_id(sweep_id), key, runnable[key], at) for at, key in enumerate(order))
    return Plan(cells, tuple(sorted(skipped)))


def points(spec: SweepSpec, clis: Mapping[str, UsesModel], tasks: Sequence[str]) -> Iterator[Point]:
    """The whole matrix, with what the spec excludes."""
    for cli in spec.clis:
        asked = _asked(spec, clis.get(cli))
        yield from product((cli,), asked, tasks, map(shown_stack, spec.stack_names))


def shown_stack(stack: str) -> str:
    """A cell's stack as a sweep file names it."""
    return FACTORY if stack == NO_STACK else stack


def _asked(spec: SweepSpec, adapter: UsesModel | None) -> list[str]:
    """The models that a CLI has cells with. Of one that cannot run (None) it is not known whether it asks
    any: it is told with all, and with none where there are none.
    """
    if adapter is not None and not adapter.uses_model:
        return [NO_MODEL]
    return [model.id for model in spec.models] or ([] if adapter else [NO_MODEL])


def interleave(keys: Iterable[CellKey], seed: int) -> list[CellKey]:
    """The cells in the order in which they start: see the module's text."""
    groups: dict[tuple[int, str], list[tuple[int, CellKey]]] = defaultdict(list)
    for key in keys:
        groups[key.run, key.cli].append((_number(seed, "cell", key.matrix_id()), key))
    placed = []
    for (run, cli), members in groups.items():
        # One offset for each CLI keeps its cells evenly apart, and CLIs of equal number out of step.
        offset = _number(seed, "cli", f"{run}/{cli}") / 2**64
        for index, (number, key) in enumerate(sorted(members)):
            placed.append((run, (index + offset) / len(members), number, key))
    return [key for *_, key in sorted(placed)]


def _models(
    spec: SweepSpec,
    adapter: UsesModel | None,
    env: Mapping[str, str],
    unfit: Mapping[str, str],
    unavailable: str | None,
) -> list[tuple[str, str | None, str | None]]:
    """(model id, endpoint, reason to skip it) for one CLI; it has no adapter where it is `unavailable`."""
    if adapter is None:
        return [(model, None, unavailable) for model in _asked(spec, None)]
    if not adapter.uses_model:
        return [(NO_MODEL, None, None)]
    return [
        (
            model.id,
            model.id if model.local else model.endpoint,
            unfit.get(model.id) or _reason_to_skip(spec, model, adapter, env),
        )
        for model in spec.models
    ]


def _reason_to_skip(
    spec: SweepSpec, model: ModelSpec, adapter: UsesModel, env: Mapping[str, str]
) -> str | None:
    spoken, where = SCRIPTED_WIRE, "a local model" if model.local else "a scripted model"
    if model.endpoint is not None:
        spoken, where = spec.endpoints[model.endpoint].wire, f"endpoint {model.endpoint}"
    if adapter.wire is not None and not reaches(adapter.wire, spoken):
        return f"the CLI speaks the wire {adapter.wire}, {where} speaks {spoken}"
    if model.settings.given():
        # Imported here: most sweeps set nothing, and need no wire to be planned.
        from orchestrator.gateway.wires import WIRES

        if reason := WIRES[spoken].cannot_set(model.settings):
            return reason
    if model.endpoint is None:
        return None
    missing = [name for name in spec.endpoints[model.endpoint].variables() if not env.get(name)]
    if not missing:
        return None
    return f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set"


def _number(seed: int, what: str, name: str) -> int:
    """A number below 2**64 that looks random and is the same everywhere."""
    return int.from_bytes(hashlib.sha256(f"{seed}\n{what}\n{name}".encode()).digest()[:8], "big")
