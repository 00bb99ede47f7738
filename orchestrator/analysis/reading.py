"""The finished cells that a command is about, and what their plans left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.analysis.cells import Cell, cells_of
from orchestrator.analysis.sides import Side, sides
from orchestrator.errors import InputError
from orchestrator.store.cells import SWEEP, newest_sweep
from orchestrator.store.chosen import chosen_sweeps
from orchestrator.store.frame import load_frame
from orchestrator.store.preflight import incompatible_cells
from orchestrator.store.record import SkippedCell


@dataclass(frozen=True)
class Read:
    """`sweeps` are the ids, sorted; `cells` the finished cells of all of them, by id."""

    sweeps: tuple[str, ...]
    cells: tuple[Cell, ...]
    skipped: tuple[SkippedCell, ...]


def read(names: Sequence[str], results: Path) -> Read:
    """The cells of the sweeps that `names` stand for (`chosen_sweeps`), by default of the newest.

    Raises StoreError, and InputError where no cell is finished.
    """
    stores = chosen_sweeps(names or [newest_sweep(results)], results)
    cells = cells_of(load_frame([store.root for store in stores]))
    sweeps = tuple(store.sweep_id for store in stores)
    if not cells:
        mend = "see `cab sweep status` for how far it is"
        raise InputError("no cell is finished", place=", ".join(sweeps), mend=mend)
    skipped = [cell for store in stores for cell in (*store.sweep().skipped, *incompatible_cells(store))]
    return Read(sweeps, tuple(cells), tuple(skipped))


def read_sides(a: str, b: str, names: Sequence[str], results: Path) -> tuple[Side, Side]:
    """The two sides of a comparison: two sweeps (or directories of sweeps), or two CLIs, models, stacks, … of
    the sweeps that `names` stand for, by default of the newest.

    Raises StoreError, and InputError for what is neither.
    """
    if not names and all(_stored(word, results) for word in (a, b)):
        found = [Side(word, {"sweep": word}, read([word], results).cells) for word in (a, b)]
        same = {(cell.cell_id, cell.record_sha256) for cell in found[0].cells}
        if any((cell.cell_id, cell.record_sha256) in same for cell in found[1].cells):
            raise InputError("both sides have the same cells", place=f"{a}, {b}", mend="name two sweeps")
        return found[0], found[1]
    return sides(read(names, results).cells, a, b)


def _stored(word: str, results: Path) -> bool:
    """Whether a word is a sweep, by id or directory, or a directory of sweeps."""
    paths = (results / word, Path(word))
    return any((path / SWEEP).is_file() for path in paths) or any(Path(word).glob(f"*/{SWEEP}"))
