"""`cab site build | serve`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestrator.cli._bar import bar
from orchestrator.cli.options import Group, results_option

if TYPE_CHECKING:
    from orchestrator.site.build import Built

SITE = Path("site")

directories_argument = click.argument(
    "directories", metavar="[RESULTS]...", nargs=-1, type=click.Path(path_type=Path, file_okay=False)
)
out_option = click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=SITE,
    show_default=True,
    help="The folder of the site.",
)
base_url_option = click.option(
    "--base-url", metavar="URL", help="Where the site will be found; badges and embeds then name it."
)


@click.group(cls=Group)
def site() -> None:
    """Make a static site of results, and look at it here."""


@site.command()
@directories_argument
@out_option
@base_url_option
@click.option(
    "--snapshot", metavar="NAME", help="Put the site away as it is under this name, too: no build changes it."
)
@results_option
def build(
    directories: tuple[Path, ...], out: Path, base_url: str | None, snapshot: str | None, results: Path
) -> None:
    """Make the site of RESULTS (directories of sweeps, or of one; else those of -r), or bring it up to date.

    The folder works as it is: opened from a disk, or copied to any static host.
    """
    built = _build(directories or (results,), out, base_url, snapshot)
    click.echo(_said(built), err=True)
    click.echo(built.out / "index.html")


@site.command()
@directories_argument
@out_option
@base_url_option
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8321,
    show_default=True,
    help="On the loopback address; 0 takes a free one.",
)
@results_option
def serve(directories: tuple[Path, ...], out: Path, base_url: str | None, port: int, results: Path) -> None:
    """Bring the site of RESULTS up to date and serve it on this machine alone, until Ctrl-C."""
    from orchestrator.site.serve import address, server

    built = _build(directories or (results,), out, base_url)
    click.echo(_said(built), err=True)
    with server(built.out, port) as served, suppress(KeyboardInterrupt):
        click.echo(address(served))
        served.serve_forever()


def _build(
    directories: tuple[Path, ...], out: Path, base_url: str | None, snapshot: str | None = None
) -> Built:
    from orchestrator.site.build import build as build_site

    with bar("site") as progress:
        return build_site(directories, out, base_url=base_url, snapshot=snapshot, progress=progress)


def _said(built: Built) -> str:
    from orchestrator.report.text import plural

    written = plural(built.written, "file")
    said = f"{written} written, {built.kept} up to date, {built.removed} removed in {built.out}"
    if built.alike is None:
        return said
    one, other = built.alike
    return f"{said}\n{one} and {other} differ in case alone: publish it where case counts"
