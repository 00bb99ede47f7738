"""Where a sweep's tasks and plugins are: in the repository, or with an external benchmark's run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.adapter import Adapter
from orchestrator.paths import PLUGINS, TASKS
from orchestrator.plan.plugin import Plugin, load_plugin
from orchestrator.plan.spec import SweepSpec
from orchestrator.plan.stack import Applied, would_apply
from orchestrator.plan.task import Task, load_task, match_tasks


@dataclass(frozen=True)
class Source:
    """The directories that hold tasks and plugins."""

    tasks_dir: Path = field(default_factory=lambda: TASKS)
    plugins_dir: Path = field(default_factory=lambda: PLUGINS)

    @classmethod
    def of_stored(cls, results: Path, spec: SweepSpec) -> Source:
        """Those of a sweep that is stored in `results`: of one with conditions they stand beside it."""
        if not spec.conditions:
            return cls()
        return cls.beside(results)

    @classmethod
    def beside(cls, results: Path) -> Source:
        """Those of an external benchmark's run whose sweep is in `results`."""
        return cls(results.parent / "tasks", results.parent / "plugins")

    def tasks(self, spec: SweepSpec) -> dict[str, Task]:
        """The tasks of a spec by name. Raises InputError for an unknown one, or one without a prompt of each
        condition.
        """
        names = match_tasks(self.tasks_dir, list(spec.tasks))
        found = {name: load_task(self.tasks_dir, name) for name in names}
        for task in found.values():
            for condition in spec.conditions:
                task.prompt(condition)
        return found

    def stacks(self, spec: SweepSpec) -> dict[str, tuple[Plugin, ...]]:
        """The plugins of each stack of a spec. Raises InputError."""
        names = {name for names in spec.plugins.values() for name in names}
        loaded = {name: load_plugin(self.plugins_dir, name) for name in sorted(names)}
        return {stack: tuple(loaded[name] for name in names) for stack, names in spec.plugins.items()}


def applied_stacks(
    adapters: Mapping[str, Adapter], stacks: Mapping[str, tuple[Plugin, ...]]
) -> dict[tuple[str, str], Applied]:
    """By CLI and stack: what the CLI takes of it."""
    return {
        (cli, stack): would_apply(adapter, plugins)
        for cli, adapter in adapters.items()
        for stack, plugins in stacks.items()
    }
