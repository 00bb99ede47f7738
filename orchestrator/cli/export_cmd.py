"""`cab export parquet | csv | jsonl | junit | atif | otlp | dataset | columns`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from orchestrator.cli._bar import bar
from orchestrator.cli.options import Group, json_option, results_option

if TYPE_CHECKING:
    from orchestrator.export.cells import Seen
    from orchestrator.store.cells import CellStore
    from orchestrator.store.column import Column

_Command = Callable[..., Any]
S = TypeVar("S", bound="Seen")
_STDOUT = Path("-")


@click.group(cls=Group)
def export() -> None:
    """Write finished cells for other programs.

    SWEEP is a sweep's id, its directory, or a directory of sweeps; without one it is the newest. Same
    results, same bytes.
    """


sweeps_argument = click.argument("sweeps", metavar="[SWEEP]...", nargs=-1)
without_option = click.option(
    "--without", multiple=True, metavar="COLUMN", help="Leave a column out; may be given again."
)


def _output(
    what: str, *, stdout: bool = False, directory: bool = False, required: bool = True
) -> Callable[[_Command], _Command]:
    return click.option(
        "-o",
        "--output",
        metavar="DIR" if directory else "FILE",
        type=click.Path(path_type=Path, allow_dash=stdout, file_okay=not directory, dir_okay=directory),
        required=required,
        help=f"{what}; - is standard output." if stdout else f"{what}.",
    )


def _stores(sweeps: tuple[str, ...], results: Path) -> list[CellStore]:
    from orchestrator.store.cells import newest_sweep
    from orchestrator.store.chosen import chosen_sweeps

    return chosen_sweeps(sweeps or [newest_sweep(results)], results)


@contextmanager
def _counted(
    kind: Callable[[Callable[[int], None]], S], stores: Sequence[CellStore], output: Path | None
) -> Iterator[S]:
    """What counts the cells of `stores` on their way to `output`, with a bar in a terminal."""
    of = sum(len(store.finished()) for store in stores)
    with bar("export", stdout=output == _STDOUT) as progress:
        yield kind(lambda done: progress(done, of))


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
    form: Literal["csv", "jsonl"],
    sweeps: tuple[str, ...],
    results: Path,
    output: Path,
    without: tuple[str, ...],
) -> None:
    """Write a table of text, and beside it what its columns are."""
    from orchestrator.export import tables
    from orchestrator.export.cells import Seen, cells_of
    from orchestrator.export.writing import write_chunks

    columns, stores = _columns(without), _stores(sweeps, results)
    with _counted(Seen, stores, output) as seen:
        rows = tables.rows_of(seen.through(cells_of(stores)), columns)
        write_chunks(output, tables.csv(rows, columns) if form == "csv" else tables.jsonl(rows, columns))
    if output != _STDOUT:
        write_chunks(output.with_name(f"{output.name}.columns.json"), [tables.facts(columns)])
    click.echo(str(seen), err=True)


@export.command()
@sweeps_argument
@_output("The file to write")
@without_option
@results_option
def parquet(sweeps: tuple[str, ...], output: Path, without: tuple[str, ...], results: Path) -> None:
    """One row a cell, as Parquet. Its metadata `cab.columns` says what each column is."""
    from orchestrator.export.cells import Seen, cells_of
    from orchestrator.export.tables import rows_of, write_parquet

    columns, stores = _columns(without), _stores(sweeps, results)
    with _counted(Seen, stores, output) as seen:
        write_parquet(output, rows_of(seen.through(cells_of(stores)), columns), columns)
    click.echo(str(seen), err=True)


@export.command()
@sweeps_argument
@_output("The file to write, with FILE.columns.json beside it", stdout=True)
@without_option
@results_option
def csv(sweeps: tuple[str, ...], output: Path, without: tuple[str, ...], results: Path) -> None:
    """One row a cell, as CSV. A text that a spreadsheet would compute gets one ' in front."""
    _table("csv", sweeps, results, output, without)


@export.command()
@sweeps_argument
@_output("The file to write, with FILE.columns.json beside it", stdout=True)
@without_option
@results_option
def jsonl(sweeps: tuple[str, ...], output: Path, without: tuple[str, ...], results: Path) -> None:
    """One JSON object a line and cell."""
    _table("jsonl", sweeps, results, output, without)


@export.command()
@sweeps_argument
@_output("The file to write", stdout=True)
@results_option
def junit(sweeps: tuple[str, ...], output: Path, results: Path) -> None:
    """One test case a cell, as JUnit XML. Cells that did not run are skipped tests."""
    from orchestrator.export.junit import Written
    from orchestrator.export.junit import junit as report
    from orchestrator.export.writing import write_chunks

    stores = _stores(sweeps, results)
    with _counted(Written, stores, output) as written:
        write_chunks(output, report(stores, written))
    click.echo(str(written), err=True)


@export.command()
@sweeps_argument
@_output("The new directory to write", directory=True)
@results_option
def atif(sweeps: tuple[str, ...], output: Path, results: Path) -> None:
    """One trajectory a cell, in Harbor's Agent Trajectory Interchange Format. It holds what was said."""
    from orchestrator.export.atif import write_trajectories
    from orchestrator.export.cells import Seen, cells_of
    from orchestrator.export.writing import new_directory
    from orchestrator.report.text import plural

    stores = _stores(sweeps, results)
    with _counted(Seen, stores, output) as seen, new_directory(output) as root:
        written, without = write_trajectories(seen.through(cells_of(stores)), root)
    none = f"; {plural(without, 'cell')} without a recorded answer" if without else ""
    click.echo(f"{written} trajector{'y' if written == 1 else 'ies'}{none}", err=True)


@export.command()
@sweeps_argument
@_output("The file to write", stdout=True, required=False)
@click.option("--send", "sends", is_flag=True, help="Send them to the collector of OTEL_EXPORTER_OTLP_*.")
@results_option
def otlp(sweeps: tuple[str, ...], output: Path | None, sends: bool, results: Path) -> None:
    """The spans of each cell, as one line of OTLP/JSON for a collector's file receiver, or to a collector."""
    from orchestrator.export.cells import Seen, cells_of
    from orchestrator.export.otlp import Written, send
    from orchestrator.export.otlp import otlp as lines
    from orchestrator.export.writing import write_chunks
    from orchestrator.report.text import plural

    if output is None and not sends:
        raise click.UsageError("give --output, --send, or both", click.get_current_context())
    stores = _stores(sweeps, results)
    if output is not None:
        with _counted(Written, stores, output) as written:
            write_chunks(output, lines(cells_of(stores), written))
        click.echo(str(written), err=True)
    if sends:
        with _counted(Seen, stores, None) as seen:
            sent = send(seen.through(cells_of(stores)))
        click.echo(f"{plural(sent, 'span')} sent", err=True)


@export.command()
@sweeps_argument
@_output("The new directory to write", directory=True)
@click.option("--title", help="The dataset's title, instead of one made of the sweeps' ids.")
@click.option("--license", "licence", metavar="ID", help="The licence it is published under, as cc-by-4.0.")
@click.option(
    "--allow",
    multiple=True,
    metavar="TEXT",
    help="A found text that is meant to be there; may be given again.",
)
@without_option
@results_option
def dataset(
    sweeps: tuple[str, ...],
    output: Path,
    title: str | None,
    licence: str | None,
    allow: tuple[str, ...],
    without: tuple[str, ...],
    results: Path,
) -> None:
    """A directory to publish: tables, a dataset card, columns, provenance and checksums.

    Refused where it would tell a path, a user or a host of this machine, an address, or a key.
    """
    from orchestrator.export.dataset import Publication, write_dataset
    from orchestrator.export.leaks import Check
    from orchestrator.report.text import plural

    stores, columns = _stores(sweeps, results), _columns(without)
    check = Check.of_this_machine([store.root for store in stores], allow)
    publication = Publication(title or f"cab: {', '.join(store.sweep_id for store in stores)}", licence)
    with bar("export") as progress:
        parts = write_dataset(stores, output, columns, publication, check, progress)
    for part, count in parts.items():
        click.echo(f"{part.name}: {plural(count, 'cell')}", err=True)


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
