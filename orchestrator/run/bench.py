"""What all cells of a sweep share: the sandbox, the gateway, the pins, the tasks and their templates."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.adapter import Adapter
from orchestrator.gateway.client import Gateway
from orchestrator.plan.task import Task
from orchestrator.run.provenance import Provenance
from orchestrator.run.verify import Verifier
from orchestrator.run.workdir import Classifier, Template, compare, copy_tree, scan
from orchestrator.sandbox.contract import Limits, Sandbox
from orchestrator.sandbox.scratch import ScratchRoot

AGENT_UID = 1000
BASE = "base"
"""The name of the base image: tasks are graded in it, whatever CLI ran."""


@dataclass(frozen=True)
class Pinned:
    """An image of a sweep: what runs is the id."""

    name: str
    id: str


def agent_user() -> tuple[int, int]:
    """The user agents run as: 1000 where cab is root, else cab's own, which can own the files it lays out."""
    return (AGENT_UID, AGENT_UID) if os.geteuid() == 0 else (os.geteuid(), os.getegid())


@dataclass
class Bench:
    """Built once for a sweep (or a proof) and shared by its cells, which run in threads."""

    sweep_id: str
    sandbox: Sandbox
    gateway: Gateway | None
    scratch: ScratchRoot
    images: Mapping[str, Pinned]
    adapters: Mapping[str, Adapter]
    tasks: Mapping[str, Task]
    provenance: Provenance
    limits: Limits = Limits()
    concurrency: int = 1
    timeout_s: float | None = None
    _templates: dict[str, Template] = field(default_factory=dict)
    _references: dict[str, bool] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _directory: tempfile.TemporaryDirectory[str] | None = None

    def labels(self, cell_id: str) -> dict[str, str]:
        """Labels by which everything of this sweep is found again, whatever dies."""
        return {"cab": "1", "cab.sweep": self.sweep_id, "cab.cell": cell_id}

    def verifier(self, cell_id: str) -> Verifier:
        """The verifier of a cell: the base image, whatever CLI ran."""
        return Verifier(self.sandbox, self.images[BASE].id, self.limits, self.labels(cell_id))

    def template(self, task: Task) -> Template:
        """The committed workdir of a task, made once."""
        with self._lock:
            if task.name not in self._templates:
                if self._directory is None:
                    self._directory = tempfile.TemporaryDirectory(prefix="cab-templates-")
                place = Path(self._directory.name) / str(len(self._templates))
                self._templates[task.name] = Template.make(task.workdir, place)
            return self._templates[task.name]

    def reference_passes(self, task: Task) -> bool:
        """Whether the reference solution passes in this sweep's verifier; asked only when a verifier left no reward.

        It tells `build_broken` (the agent's fault) from `verify_error` (nobody's), and runs once a task.
        """
        template = self.template(task)
        with self._lock:
            if task.name not in self._references:
                self._references[task.name] = self._verify_reference(task, template)
            return self._references[task.name]

    def _verify_reference(self, task: Task, template: Template) -> bool:
        with self.scratch.cell(self.limits.scratch_bytes, self.limits.scratch_inodes, os.geteuid()) as scratch:
            workdir = scratch.path / "solved"
            copy_tree(template.path, workdir)
            task.solution.apply(workdir)
            difference = compare(template, workdir, scan(workdir), Classifier(template.path, ()))
            place = scratch.path / "verify"
            place.mkdir()
            verification = self.verifier("reference").verify(
                task, template, workdir, difference, place, "cab-reference"
            )
        return verification.exit_code == 0 and verification.reward == 1

    def close(self) -> None:
        """Remove the templates."""
        if self._directory is not None:
            self._directory.cleanup()
