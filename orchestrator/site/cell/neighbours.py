"""The cells beside one: other CLIs on its task, other models with its CLI, other tasks of its category.

Of one sweep alone, so that all of them ran by the same rules on the same days. Read from the index: no
evidence is opened for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from orchestrator.site import links
from orchestrator.site.output import digest_of
from orchestrator.site.source import Source
from orchestrator.store.names import CellKey

MAX_SHOWN = 40
_COLUMNS = ("cell_id", "sweep_id", "passed", "counted", "claim", "outcome")
_Group = tuple[Any, ...]
"""What cells share, led by the kind of that."""
TITLES = (
    "Other CLIs on this task",
    "Other models with this CLI",
    "Other tasks of this category",
    "Other runs of this cell",
)


class Neighbour(NamedTuple):
    """`name` is what sets it apart from the cell that it stands beside; `result` a word for its class."""

    page: str
    name: str
    result: str
    words: str
    claim: str


@dataclass(frozen=True)
class Group:
    cells: Sequence[Neighbour]
    left_out: int


class _Cell(NamedTuple):
    """What is told of a cell beside another."""

    cell_id: str
    sweep_id: str
    key: CellKey
    result: str
    words: str
    claim: str


class Neighbours:
    """All cells of a site, by what they share."""

    def __init__(self, source: Source) -> None:
        self._groups: dict[_Group, list[_Cell]] = defaultdict(list)
        self._digests: dict[_Group, str] = {}
        for cell_id, sweep_id, passed, counted, claim, outcome in source.frame.select(_COLUMNS).iter_rows():
            key = source.key(cell_id)
            cell = _Cell(cell_id, sweep_id, key, *result_of(passed, counted, outcome), claim)
            for group in _groups(sweep_id, key):
                self._groups[group].append(cell)

    def of(self, sweep_id: str, key: CellKey) -> list[tuple[str, Group]]:
        """The groups of a cell with their titles. In the first three each other stands once, by the first
        of its runs.
        """
        names = (_contestant, _model, _task, _run)
        found = []
        for title, group, name in zip(TITLES, _groups(sweep_id, key), names, strict=True):
            own, seen = name(key), dict[str, _Cell]()
            for cell in self._groups[group]:
                called = name(cell.key)
                if called != own and (called not in seen or cell.key.run < seen[called].key.run):
                    seen[called] = cell
            cells = [
                Neighbour(_page(cell), called, cell.result, cell.words, cell.claim)
                for called, cell in sorted(
                    seen.items(), key=lambda it: (len(it[0]) if name is _run else 0, it[0])
                )
            ]
            found.append((title, Group(cells[:MAX_SHOWN], max(0, len(cells) - MAX_SHOWN))))
        return found

    def digest(self, sweep_id: str, key: CellKey) -> str:
        """A digest that changes with what `of` gives for a cell."""
        return digest_of(*(self._digest(group) for group in _groups(sweep_id, key)))

    def _digest(self, group: _Group) -> str:
        if group not in self._digests:
            cells = self._groups[group]
            self._digests[group] = digest_of(*(f"{it.cell_id} {it.words} {it.claim}" for it in cells))
        return self._digests[group]


def _page(cell: _Cell) -> str:
    return links.cell_page(cell.sweep_id, cell.key)


def _groups(sweep_id: str, key: CellKey) -> tuple[_Group, ...]:
    """What a cell shares with those of each title, in their order."""
    variant = (sweep_id, key.stack, key.condition)
    category = links.category_of(key.task)
    return (
        ("cli", sweep_id, key.condition, key.model, key.task),
        ("model", *variant, key.cli, key.task),
        ("task", *variant, key.cli, key.model, category),
        ("run", *variant, key.cli, key.model, key.task),
    )


def _contestant(key: CellKey) -> str:
    return links.contestant(key)


def _model(key: CellKey) -> str:
    return key.model


def _task(key: CellKey) -> str:
    return key.task


def _run(key: CellKey) -> str:
    return f"run {key.run}"


def result_of(passed: float | None, counted: bool, outcome: str) -> tuple[str, str]:
    """What came of a cell: a word for its class, and the words for it."""
    if not counted:
        return "uncounted", outcome.replace("_", " ")
    if passed is None:
        return "unknown", "not measured"
    return ("passed", "passed") if passed == 1 else ("failed", "failed")
