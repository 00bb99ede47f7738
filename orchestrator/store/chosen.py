"""Which stored sweeps a command is about."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from orchestrator.errors import InputError
from orchestrator.store.cells import SWEEP, CellStore


def chosen_sweeps(names: Sequence[str], results: Path) -> list[CellStore]:
    """The sweeps that `names` stand for, by id: ids below `results`, directories of a sweep, or directories
    of sweeps, which stand for all of theirs.

    Raises StoreError for what is none of these, InputError where two of them have one id.
    """
    found: dict[str, Path] = {}
    for name in names:
        for root in _roots(name, results):
            other = found.setdefault(root.name, root)
            if other != root:
                mend = "give one of them: their cells would have the same ids"
                raise InputError(f"two sweeps are named {root.name!r}: {other} and {root}", mend=mend)
    return [CellStore(found[sweep_id].parent, sweep_id) for sweep_id in sorted(found)]


def _roots(name: str, results: Path) -> list[Path]:
    named, path = results / name, Path(name)
    if (named / SWEEP).is_file():
        return [named.resolve()]
    if (path / SWEEP).is_file():
        return [path.resolve()]
    if path.is_dir() and (sweeps := sorted(path.glob(f"*/{SWEEP}"))):
        return [sweep.parent.resolve() for sweep in sweeps]
    # Raises, with the nearest name.
    return [CellStore(results, name).root] if CellStore(results, name).sweep() else []
