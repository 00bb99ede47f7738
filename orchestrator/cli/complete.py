"""What a shell may offer for an argument: names of what is there. Nothing heavy is imported for a Tab.

Each is a `shell_complete` of click. One that cannot read what it looks in offers nothing: a Tab is no place
for an error.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable
from pathlib import Path

import click

from orchestrator.errors import CabError
from orchestrator.paths import IMAGES, RESULTS, TASKS

Completer = Callable[[click.Context, click.Parameter, str], list[str]]


def _offered(find: Callable[[click.Context], Iterable[str]]) -> Completer:
    """The names that `find` finds and that begin as the word does, sorted."""

    @functools.wraps(find)
    def complete(context: click.Context, parameter: click.Parameter, word: str) -> list[str]:
        del parameter
        try:
            return sorted(name for name in find(context) if name.startswith(word))
        except (CabError, OSError, ValueError):
            return []

    return complete


def _results(context: click.Context) -> Path:
    return Path(context.params.get("results") or RESULTS)


@_offered
def sweeps(context: click.Context) -> Iterable[str]:
    """Ids of the stored sweeps."""
    return [path.parent.name for path in _results(context).glob("*/sweep.json")]


@_offered
def cells(context: click.Context) -> Iterable[str]:
    """Ids of the finished cells of all stored sweeps."""
    found = set()
    for index in _results(context).glob("*/index.jsonl"):
        for line in index.read_bytes().splitlines():
            try:
                found.add(str(json.loads(line)["cell_id"]))
            except (ValueError, KeyError, TypeError):
                continue
    return found


@_offered
def tasks(context: click.Context) -> Iterable[str]:
    """Names of tasks, and their categories with `/*`."""
    root = Path(context.params.get("tasks_dir") or TASKS)
    names = [path.parent.relative_to(root).as_posix() for path in root.glob("*/*/task.toml")]
    return [*names, *{f"{name.split('/')[0]}/*" for name in names}]


@_offered
def images(context: click.Context) -> Iterable[str]:
    """Folders of images: CLIs, and what they stand on."""
    roots = [IMAGES, *([Path(given)] if (given := context.params.get("images_dir")) else [])]
    return [path.parent.name for root in roots for path in root.glob("*/Dockerfile")]


@_offered
def clis(context: click.Context) -> Iterable[str]:
    """CLIs that can run."""
    roots = [IMAGES, *([Path(given)] if (given := context.params.get("images_dir")) else [])]
    return [path.parent.name for root in roots for path in root.glob("*/adapter.py")]


@_offered
def local_models(context: click.Context) -> Iterable[str]:
    """Local models that were added, without their prefix."""
    del context
    from orchestrator.gateway.local.registry import PREFIX, Registry

    return [model.id.removeprefix(PREFIX) for model in Registry.default().models()]
