"""What several commands share: options, and groups that help with a mistyped command."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator.nearest import nearest
from orchestrator.paths import RESULTS

results_option = click.option(
    "-r",
    "--results",
    type=click.Path(path_type=Path, file_okay=False),
    default=RESULTS,
    show_default=True,
    help="Where sweeps are stored.",
)
images_dir_option = click.option(
    "--images-dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="A folder with folders of CLIs beside the repository's images/.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout.")


class Group(click.Group):
    """A group of commands that names the nearest one for a mistyped one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, known = args[0], self.list_commands(ctx)
        if name in known or name.startswith("-"):
            return super().resolve_command(ctx, args)
        raise click.UsageError(f"no such command {name!r}; {nearest(name, known)}", ctx)
