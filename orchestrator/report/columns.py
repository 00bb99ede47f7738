"""Tables that fit the terminal: columns are left out by worth, never squeezed until every word wraps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text


@dataclass(frozen=True)
class Column:
    """One column. `worth` is None where it is never left out; the least worth goes first.

    `least` is the width down to which its texts may be folded; None where they may not. `styles` colours its
    texts, on terminals that have colours.
    """

    name: str
    cells: Sequence[str]
    worth: int | None = None
    right: bool = True
    least: int | None = None
    styles: Sequence[str] = ()

    @property
    def natural(self) -> int:
        return max(cell_len(text) for text in (self.name, *self.cells))

    @property
    def narrowest(self) -> int:
        return self.natural if self.least is None else min(self.least, self.natural)


def fit(columns: Sequence[Column], title: str, out: Console) -> tuple[RenderableType, list[str]]:
    """The table of as many columns as the console is wide enough for, and the names of those left out.

    A table without rows is its title alone.
    """
    # Not the table's own title, which would wrap at the table's width.
    head = Text(title, style="bold")
    if not any(column.cells for column in columns):
        return head, []
    kept, left_out = list(columns), []
    while not fits(kept, out):
        droppable = [column for column in kept if column.worth is not None]
        if not droppable:
            break
        least = min(droppable, key=lambda column: column.worth or 0)
        kept.remove(least)
        left_out.append(least.name)
    table = _table(kept, _widths(kept, out.width))
    return Group(head, table) if title else table, left_out[::-1]


def fits(columns: Sequence[Column], out: Console) -> bool:
    """Whether the console is wide enough for all of them."""
    return sum(column.narrowest + 1 for column in columns) - 1 <= out.width


def _widths(columns: Sequence[Column], available: int) -> list[int]:
    """Natural widths, less what is too much, taken from the last column that may be folded first."""
    widths = [column.natural for column in columns]
    for index in reversed(range(len(columns))):
        too_much = sum(width + 1 for width in widths) - 1 - available
        widths[index] -= max(0, min(too_much, widths[index] - columns[index].narrowest))
    return widths


def _texts(column: Column) -> list[Text]:
    styles = column.styles or [""] * len(column.cells)
    return [Text(text, style=style) for text, style in zip(column.cells, styles, strict=True)]


def _table(columns: Sequence[Column], widths: Sequence[int]) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=0,
        header_style="dim",
    )
    for column, width in zip(columns, widths, strict=True):
        table.add_column(
            column.name, justify="right" if column.right else "left", overflow="fold", width=width
        )
    for cells in zip(*(_texts(column) for column in columns), strict=True):
        table.add_row(*cells)
    return table
