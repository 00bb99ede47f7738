"""`--only GLOB`: which cells of a sweep one call is about.

A glob is held against a cell's id as tables print it, with or without its sweep before it and its run after
it: `opencode/*`, `*/polyglot/*`, `*+careful`, `*#run2`. A `*` goes across slashes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from orchestrator.errors import InputError
from orchestrator.nearest import nearest
from orchestrator.plan.expand import Plan, PlannedCell
from orchestrator.store.names import NO_STACK

_KNOWN = 5
"""Globs that are named where none is near."""


def matches(cell_id: str, globs: Sequence[str]) -> bool:
    """Whether a call that is limited to `globs` is about this cell; without any it is about all."""
    if not globs:
        return True
    in_sweep = cell_id.partition("/")[2]
    names = [cell_id, in_sweep]
    names += [name.rpartition("#")[0] for name in names]
    return any(fnmatchcase(name, glob) for name in names for glob in globs)


def choose(plan: Plan, globs: Sequence[str]) -> tuple[PlannedCell, ...]:
    """The cells that `globs` name, in the order of the plan.

    Raises InputError for a glob that names none, with the nearest that does, or why its cells are skipped.
    """
    for glob in globs:
        if any(matches(cell.cell_id, [glob]) for cell in plan.cells):
            continue
        reasons = [reason for cell_id, reason in plan.skipped if matches(cell_id, [glob])]
        if reasons:
            thing = f"--only {glob!r} names only cells that are skipped: {reasons[0]}"
            raise InputError(thing, mend="see `cab sweep plan` for what is skipped")
        raise InputError(f"--only {glob!r} names no cell of this sweep", mend=_nearest(glob, plan.cells))
    return tuple(cell for cell in plan.cells if matches(cell.cell_id, globs))


def _nearest(glob: str, cells: Iterable[PlannedCell]) -> str:
    """The glob that may have been meant, of those that people write: a CLI, a model, a task, a category."""
    keys = [cell.key for cell in cells]
    known = dict.fromkeys(f"{key.cli}/*" for key in keys)
    near = known | dict.fromkeys(
        form
        for key in keys
        for form in (
            f"*/{key.model}/*",
            f"*/{key.task.partition('/')[0]}/*",
            f"*/{key.task}",
            f"{key.cli}/{key.model}/*",
            key.matrix_id().rpartition("#")[0],
            *([] if key.stack == NO_STACK else [f"*+{key.stack}", f"{key.cli}/*+{key.stack}"]),
        )
    )
    return nearest(glob, near, otherwise=f"as one of: {', '.join(list(known)[:_KNOWN])}")
