"""The two sides of a comparison: which cells each has, and by what they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from orchestrator.analysis.cells import NO_CONDITION, Cell
from orchestrator.errors import InputError
from orchestrator.nearest import nearest
from orchestrator.store.names import NO_STACK

Dimension = Literal["sweep", "cli", "stack", "condition", "model"]
DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)

VALUE: Mapping[Dimension, Callable[[Cell], str]] = {
    "sweep": lambda cell: cell.sweep_id,
    "cli": lambda cell: cell.cli,
    "stack": lambda cell: cell.stack,
    "condition": lambda cell: cell.condition or NO_CONDITION,
    "model": lambda cell: cell.model,
}
_NONE: Mapping[Dimension, str] = {"stack": NO_STACK, "condition": NO_CONDITION}
"""What is meant by a side that does not name a dimension which the other names."""


@dataclass(frozen=True)
class Side:
    """One side: the cells whose dimensions have the values of `where`. `name` is as it was asked for."""

    name: str
    where: Mapping[Dimension, str]
    cells: tuple[Cell, ...]


def sides(cells: Sequence[Cell], a: str, b: str) -> tuple[Side, Side]:
    """The sides that are meant by two words, such as `aider` and `opencode`.

    A word is a name of one dimension, `cli+stack@condition`, `CLI × MODEL`, or `cli=NAME,model=NAME`. Raises
    InputError where no cell is meant, more than one dimension could be, or the sides are not two.
    """
    meant = [_meanings(cells, word) for word in (a, b)]
    wheres = [_chosen(word, *pair) for word, pair in ((a, meant), (b, meant[::-1]))]
    named = {dimension for where in wheres for dimension in where}
    found = []
    for word, where in zip((a, b), wheres, strict=True):
        unnamed = [dimension for dimension in DIMENSIONS if dimension in named - where.keys()]
        if lacking := [dimension for dimension in unnamed if dimension not in _NONE]:
            mend = f"name one for both: {word},{lacking[0]}=…"
            raise InputError(f"names no {lacking[0]}, and the other side does", place=word, mend=mend)
        found.append(side(cells, word, {**where, **{dimension: _NONE[dimension] for dimension in unnamed}}))
    if found[0].where == found[1].where:
        raise InputError("is on both sides", place=a, mend="name two that differ")
    return found[0], found[1]


def side(cells: Iterable[Cell], name: str, where: Mapping[Dimension, str]) -> Side:
    """The cells whose dimensions have these values. Raises InputError where there is none."""
    of = tuple(cell for cell in cells if all(VALUE[key](cell) == value for key, value in where.items()))
    if not of:
        said = ", ".join(f"{key} {value}" for key, value in where.items())
        raise InputError(f"no finished cell has {said}", place=name, mend="see `cab report`")
    return Side(name, where, of)


def differing(a: Side, b: Side) -> frozenset[Dimension]:
    """The dimensions that tell the sides apart; over all others they are paired."""
    return frozenset(key for key in {*a.where, *b.where} if a.where.get(key) != b.where.get(key))


Where = dict[Dimension, str]


def _chosen(word: str, meanings: Sequence[Where], of_other: Sequence[Where]) -> Where:
    """The one meaning of a word; where it has several, that which the other word has as well."""
    if len(meanings) == 1:
        return meanings[0]
    alike = [where for where in meanings if any(where.keys() == other.keys() for other in of_other)]
    if len(alike) == 1:
        return alike[0]
    found = [dimension for where in meanings for dimension in where]
    mend = "write " + " or ".join(f"{dimension}={word}" for dimension in found)
    raise InputError(f"is a {' and a '.join(found)}", place=word, mend=mend)


def _meanings(cells: Sequence[Cell], word: str) -> list[Where]:
    """All that a word may mean; at least one."""
    if "=" in word:
        return [_spelled_out(cells, word)]
    cli, times, model = word.partition(" × ")
    if times:
        return [{**_contestant(cli), "model": model}]
    known = {dimension: {of(cell) for cell in cells} for dimension, of in VALUE.items()}
    meant: list[Where] = [{dimension: word} for dimension in DIMENSIONS if word in known[dimension]]
    contestants = {cell.contestant for cell in cells}
    if not meant and word in contestants:
        return [_contestant(word)]
    if not meant:
        names = sorted({name for of in known.values() for name in of} | contestants)
        sweeps = sorted(known["sweep"])
        # Without further words only the newest sweep is read, which nobody sees who does not name it.
        where = sweeps[0] if len(sweeps) == 1 else f"these {len(sweeps)} sweeps"
        thing = f"is no sweep, CLI, model, stack or condition in {where}"
        raise InputError(thing, place=word, mend=nearest(word, names))
    return meant


def _contestant(name: str) -> Where:
    rest, at, condition = name.partition("@")
    cli, plus, stack = rest.partition("+")
    where: Where = {"cli": cli}
    return where | ({"stack": stack} if plus else {}) | ({"condition": condition} if at else {})


def _spelled_out(cells: Sequence[Cell], word: str) -> Where:
    where: Where = {}
    for part in word.split(","):
        key, _, value = part.partition("=")
        dimension = next((it for it in DIMENSIONS if it == key), None)
        if dimension is None or not value:
            mend = f"write {'=, '.join(DIMENSIONS)}=, as in cli=aider,model=…"
            raise InputError(f"{part!r} names no dimension", place=word, mend=mend)
        known = {VALUE[dimension](cell) for cell in cells}
        if value not in known:
            raise InputError(
                f"no finished cell has {dimension} {value!r}", place=word, mend=nearest(value, known)
            )
        where[dimension] = value
    return where
