"""`cab export parquet | csv | jsonl | junit | atif | otlp | dataset | columns`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orchestrator.cli.options import Group, json_option, results_option

if TYPE_CHECKING:
    from orchestrator.store.column import Column

_Command = Callable[..., Any]


@click.group(cls=Group)
def export() -> None:
    """Write finished cells for other programs.

    SWEEP is a sweep's id, its directory, or a directory of sweeps. Same results, same bytes.
    """


sweeps_argument = click.argument("sweeps", metavar="SWEEP...", nargs=-1, required=True)
without_option = click.option(
    "--without", multiple=True, metavar="COLUMN", help="Leave a column out; may be given again."
)


def _output(what: str, *, stdout: bool = True, required: bool = True) -> Callable[[_Command], _Command]:
    help_text = f"{what}; - is standard output." if stdout else f"{what}."
    return click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path, allow_dash=stdout),
        required=required,
        help=help_text,
    )


def _columns(without: tuple[str, ...]) -> tuple[Column, ...]:
    from orchestrator.errors import InputError
    from orchestrator.nearest import nearest
    from orchestrator.store.columns import COLUMNS

    known = [column.name for column in COLUMNS]
    for name in without:
        if name not in known:
            raise InputError(f"there is no column {name!r}", place="--without", mend=nearest(name, known))
    return tuple(column for column in COLUMNS if column.name not in without)


def _table(
    chunks: str, sweeps: tuple[str, ...], results: Path, output: Path, without: tuple[str, ...]
) -> None:
    """Write a table of text, and beside it what its columns are."""
    from orchestrator.export import tables
    from orchestrator.export.cells import cells_of
    from orchestrator.export.writing import STDOUT, write_chunks
    from orchestrator.store.chosen import chosen_sweeps

    columns = _columns(without)
    cells = cells_of(chosen_sweeps(sweeps, results))
    write_chunks(output, getattr(tables, chunks)(cells, columns))
    if output != STDOUT:
        write_chunks(output.with_name(f"{output.name}.columns.json"), [tables.facts(columns)])


@export.command()
@sweeps_argument
@_output("The file to write", stdout=False)
@without_option
@results_option
def parquet(sweeps: tuple[str, ...], output: Path, without: tuple[str, ...], results: Path) -> None:
    """One row a cell, as Parquet. Its metadata `cab.columns` holds unit, source and meaning of each column."""
    from orchestrator.export.cells import cells_of
    from orchestrator.export.tables import write_parquet
    from orchestrator.store.chosen import chosen_sweeps

    write_parquet(output, cells_of(chosen_sweeps(sweeps, results)), _columns(without))


@export.command()
@sweeps_argument
@_output("The file to write, with FILE.columns.json beside it")
@without_option
@results_option
def csv(sweeps: tuple[str, ...], output: Path, without: tuple[str, ...], results: Path) -> None:
    """One row a cell, as CSV. A text that a spreadsheet would compute gets one ' in front."""
    _table("csv", sweeps, results, output, without)


@export.command()
@sweeps_argument
@_output("The file to write, with FILE.columns.json beside it")
@without_option
@results_option
def jsonl(sweeps: tuple[str, ...], output: Path, without: tuple[str, ...], results: Path) -> None:
    """One JSON object a cell and line."""
    _table("jsonl", sweeps, results, output, without)


@export.command()
@json_option
def columns(as_json: bool) -> None:
    """Print every column of the tables: type, unit, source and meaning (docs/columns.md)."""
    from orchestrator.store.columns import COLUMNS

    if as_json:
        from orchestrator.report.text import print_json
        from orchestrator.store.column import column_facts

        print_json(column_facts(COLUMNS))
    else:
        from orchestrator.export.columns_doc import markdown

        click.echo(markdown(COLUMNS), nl=False)
