"""What grading needs, shared by the cells of a sweep and by proofs: the sandbox, scratch, templates, the base
image.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.plan.task import Task
from orchestrator.run.verify import OnStart, Verifier
from orchestrator.run.workdir import Classifier, Difference, Template, compare, copy_tree, scan
from orchestrator.sandbox.contract import Limits
from orchestrator.sandbox.docker import DockerSandbox
from orchestrator.sandbox.scratch import ScratchRoot
from scorers.evidence import Verification

AGENT_UID = 1000
BASE = "base"
"""The name of the base image: tasks are graded in it, whatever CLI ran."""


def agent_user() -> tuple[int, int]:
    """The user agents run as: 1000 where cab is root, else cab's own, which can own the files it lays out."""
    return (AGENT_UID, AGENT_UID) if os.geteuid() == 0 else (os.geteuid(), os.getegid())


@dataclass
class Grader:
    """Used by all threads of a run; a context that removes what it made. `base` is the pinned base image."""

    sandbox: DockerSandbox
    scratch: ScratchRoot
    base: str
    sweep_id: str
    limits: Limits = field(default_factory=Limits)
    _templates: dict[str, Template] = field(default_factory=dict)
    _references: dict[str, bool] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stack: ExitStack = field(default_factory=ExitStack)
    _directory: Path | None = None

    def labels(self, cell_id: str) -> dict[str, str]:
        """Labels by which everything of this run is found again, whatever dies."""
        return {"cab": "1", "cab.sweep": self.sweep_id, "cab.cell": cell_id}

    def template(self, task: Task) -> Template:
        """The committed workdir of a task, made once."""
        with self._lock:
            if task.name not in self._templates:
                if self._directory is None:
                    self._directory = self._stack.enter_context(self._own_scratch())
                place = self._directory / str(len(self._templates))
                self._templates[task.name] = Template.make(task.workdir, place)
            return self._templates[task.name]

    def verify(
        self,
        task: Task,
        workdir: Path,
        difference: Difference,
        place: Path,
        cell_id: str,
        *,
        on_start: OnStart | None = None,
    ) -> Verification:
        """Grade `workdir`, which differs by `difference` from the template, in the new directory `place`."""
        return self._verify(task, self.template(task), workdir, difference, place, cell_id, on_start=on_start)

    def reference_passes(self, task: Task) -> bool:
        """Whether the reference solution passes in this verifier; asked only when a verification came to no
        result.

        It tells `build_broken` (the agent's fault) from `verify_error` (nobody's), and runs once a task.
        """
        template = self.template(task)
        with self._lock:
            if task.name not in self._references:
                self._references[task.name] = self._verify_reference(task, template)
            return self._references[task.name]

    def _verify_reference(self, task: Task, template: Template) -> bool:
        with self._own_scratch() as scratch:
            workdir = scratch / "workdir"
            copy_tree(template.path, workdir)
            task.solution.apply(workdir)
            difference = compare(template, workdir, scan(workdir), Classifier(template.path, ()))
            verification = self._verify(task, template, workdir, difference, scratch / "verify", "reference")
        return verification.exit_code == 0 and verification.reward == 1

    @contextmanager
    def _own_scratch(self) -> Iterator[Path]:
        """Scratch of cab's own: what is in it goes with this process, however that ends."""
        limits = self.limits
        with self.scratch.cell(limits.scratch_bytes, limits.scratch_inodes, os.geteuid()) as scratch:
            yield scratch.path

    def _verify(
        self,
        task: Task,
        template: Template,
        workdir: Path,
        difference: Difference,
        place: Path,
        cell_id: str,
        *,
        on_start: OnStart | None = None,
    ) -> Verification:
        place.mkdir()
        verifier = Verifier(self.sandbox, self.base, self.limits, self.labels(cell_id))
        return verifier.verify(task, template, workdir, difference, place, on_start=on_start)

    def close(self) -> None:
        """Remove the templates, and every container that is left of this run."""
        self._stack.close()
        self.sandbox.remove_leftovers({"cab.sweep": self.sweep_id})
