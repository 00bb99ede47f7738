"""A model whose build changed in mid-sweep: its cells measured more than one thing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rich.console import Console

from orchestrator.report.text import plural, safe_line
from orchestrator.store.index import IndexEntry


@dataclass(frozen=True)
class Build:
    """A build as its answers named it, how many cells it answered in, and the first of them."""

    build: str
    cells: int
    first_cell: str


def changes(entries: Iterable[IndexEntry]) -> dict[str, list[Build]]:
    """By model: its builds in the order in which they came, where there were several.

    An answer that names a model without a fingerprint tells no other build than one that names both.
    """
    seen: dict[str, dict[str, list[str]]] = {}
    for entry in sorted(entries, key=lambda entry: entry.started_at):
        for build in entry.model_builds:
            seen.setdefault(entry.model, {}).setdefault(build, []).append(entry.cell_id)
    found = {}
    for model, builds in sorted(seen.items()):
        distinct = [name for name in builds if not any(other.startswith(f"{name} ") for other in builds)]
        if len(distinct) > 1:
            found[model] = [Build(name, len(builds[name]), builds[name][0]) for name in distinct]
    return found


def print_changes(entries: Iterable[IndexEntry], out: Console) -> None:
    """One line for each model that changed."""
    for model, builds in changes(entries).items():
        said = "; ".join(
            f"{build.build} in {plural(build.cells, 'cell')}, first {build.first_cell}" for build in builds
        )
        out.print(safe_line(f"{model} changed in mid-sweep: {said}"), soft_wrap=True)
