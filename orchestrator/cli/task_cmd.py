"""`cab task`: what tasks there are, and proving them."""

from __future__ import annotations

from pathlib import Path

import click

from orchestrator import paths
from orchestrator.cli.complete import tasks
from orchestrator.cli.options import Group, json_option
from orchestrator.errors import InputError
from orchestrator.report.text import print_json

_tasks_dir = click.option(
    "--tasks-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=paths.TASKS,
    show_default="cab's own",
    help="Directory of tasks.",
)


@click.group(cls=Group)
def task() -> None:
    """Tasks: list and prove them."""


@task.command("list")
@_tasks_dir
@json_option
def list_command(tasks_dir: Path, as_json: bool) -> None:
    """List tasks, one a line, with language and whether they are proved."""
    from orchestrator.plan.task import list_tasks, load_task

    tasks = [load_task(tasks_dir, name) for name in list_tasks(tasks_dir)]
    if as_json:
        keys = ("name", "language", "category", "expected_refusal", "proved", "content_hash")
        print_json([{key: getattr(item, key) for key in keys} for item in tasks], indent=2)
        return
    width = max((len(item.name) for item in tasks), default=0)
    for item in tasks:
        click.echo(f"{item.name:<{width}}  {item.language:<8}  {'proved' if item.proved else 'not proved'}")


@task.command("validate")
@click.argument("names", nargs=-1, shell_complete=tasks)
@click.option(
    "--runs", type=click.IntRange(min=2), default=10, show_default=True, help="Runs of the reference."
)
@_tasks_dir
@json_option
@click.pass_context
def validate_command(
    context: click.Context, names: tuple[str, ...], runs: int, tasks_dir: Path, as_json: bool
) -> None:
    """Prove tasks (all, or those that NAMES match) and write their proof.json.

    Exit code 2 when any of them cannot be proved.
    """
    from orchestrator.plan.task import load_task, match_tasks
    from orchestrator.report.called import as_called
    from orchestrator.run.prove import prove
    from orchestrator.task_files import PROOF_FILE

    outcomes: list[dict[str, object]] = []
    for name in match_tasks(tasks_dir, list(names) or ["*"]):
        item = load_task(tasks_dir, name)
        try:
            proof = prove(item, runs=runs, on_progress=lambda line: click.echo(line, err=True))
        except InputError as error:
            outcomes.append({"name": name, "proved": False, "error": str(error)})
            error.mend = as_called(error.mend)
            click.echo(f"{name}: {error}", err=True)
            continue
        changed = write_if_changed(item.path / PROOF_FILE, proof.to_json())
        outcomes.append({"name": name, "proved": True, "changed": changed, **proof.model_dump(mode="json")})
    if as_json:
        print_json(outcomes, indent=2)
    else:
        for outcome in outcomes:
            click.echo(f"{outcome['name']}  {'proved' if outcome['proved'] else 'NOT PROVED'}")
    if not all(outcome["proved"] for outcome in outcomes):
        context.exit(InputError.exit_code)


def write_if_changed(path: Path, text: str) -> bool:
    """Replace `path` atomically unless it holds `text` already; says whether it did. Raises StoreError."""
    from orchestrator.store.files import store_errors, write_durably

    with store_errors(path):
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            return False
        write_durably(path, text.encode())
    return True
