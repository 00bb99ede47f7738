"""What grading needs, shared by the cells of a sweep and by proofs: the sandbox, scratch, templates, the base
image.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex

from orchestrator.plan.task import Task
from orchestrator.run.stack import Rules
from orchestrator.run.verify import OnStart, Verifier, verifier_user
from orchestrator.run.workdir import Classifier, Difference, Template, compare, copy_tree, scan
from orchestrator.sandbox.contract import Limits, Sandbox
from orchestrator.sandbox.scratch import ScratchRoot
from scorers.evidence import Verification

OWNER_LABEL = "cab.owner"
"""Says whose a container is: another results directory may hold a sweep of the same id."""

OWN_SCRATCH_BYTES = 1 << 30
"""At least, for the templates of a run and the diffs under way, which no cell's limit is meant for."""

AGENT_UID = 1000
NO_RULES = Rules(None)


def agent_user() -> tuple[int, int]:
    """The user agents run as: 1000 where cab is root, else cab's own, which can own the files it lays out."""
    return (AGENT_UID, AGENT_UID) if os.geteuid() == 0 else (os.geteuid(), os.getegid())


@dataclass
class Grader:
    """Used by all threads of a run.

    `base` is the pinned base image, None where nothing is pinned; `owner` a token of whatever this run
    belongs to; `agent` and `verifier` are the users that the one's and the other's commands run as.
    """

    sandbox: Sandbox
    scratch: ScratchRoot
    base: str | None
    sweep_id: str
    owner: str
    limits: Limits = field(default_factory=Limits)
    agent: tuple[int, int] = field(default_factory=agent_user)
    verifier: tuple[int, int] = field(default_factory=verifier_user)
    _templates: dict[tuple[str, tuple[tuple[str, bytes], ...]], Template] = field(default_factory=dict)
    _references: dict[str, bool] = field(default_factory=dict)
    _asking: dict[str, threading.Lock] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stack: ExitStack = field(default_factory=ExitStack)
    _directory: Path | None = None

    def labels(self, cell_id: str) -> dict[str, str]:
        """Labels by which everything of this run is found again, whatever dies."""
        return {"cab": "1", "cab.sweep": self.sweep_id, "cab.cell": cell_id, OWNER_LABEL: self.owner}

    def template(self, task: Task, rules: Rules = NO_RULES) -> Template:
        """The committed workdir of a task, made once for all that get the same rules."""
        place, files = self._place("templates"), rules.files(task.workdir)
        key = (task.name, tuple(files.items()))
        with self._lock:
            if key not in self._templates:
                place.mkdir(exist_ok=True)
                self._templates[key] = Template.make(task.workdir, place / str(len(self._templates)), files)
            return self._templates[key]

    def verify(
        self,
        task: Task,
        workdir: Path,
        difference: Difference,
        cell_id: str,
        on_start: OnStart | None = None,
    ) -> Verification:
        """Grade `workdir`, where an agent's own changes are `difference`.

        They are graded on top of the task as it is, without the rules that a CLI was given besides. In
        scratch of its own: an agent that filled its own is graded like any other.
        """
        output = self._place(f"output-{token_hex(6)}")
        output.mkdir()
        try:
            with self._own_scratch() as scratch:
                verifier = Verifier(self.sandbox, self.base, self.limits, self.labels(cell_id), self.verifier)
                return verifier.verify(
                    task, self.template(task), workdir, difference, scratch, output, on_start
                )
        finally:
            shutil.rmtree(output)

    def reference_passes(self, task: Task, on_start: OnStart | None = None) -> bool:
        """Whether the reference solution passes in this verifier; asked only when a verification came to no
        result.

        It tells `build_broken` (the agent's fault) from `verify_error` (nobody's), and runs once a task.
        """
        with self._lock:
            asking = self._asking.setdefault(task.name, threading.Lock())
        # A lock for each task: cells of other tasks go on meanwhile.
        with asking:
            if task.name not in self._references:
                self._references[task.name] = self._verify_reference(task, on_start)
            return self._references[task.name]

    def _verify_reference(self, task: Task, on_start: OnStart | None) -> bool:
        template = self.template(task)
        with self._own_scratch() as scratch:
            workdir = scratch / "workdir"
            copy_tree(template.path, workdir)
            task.solution.apply(workdir)
            difference = compare(template, workdir, scan(workdir), Classifier(template.path))
            verification = self.verify(task, workdir, difference, "reference", on_start)
        return verification.exit_code == 0 and verification.reward == 1

    @contextmanager
    def _own_scratch(self) -> Iterator[Path]:
        """Scratch of cab's own: what is in it goes with this process, however that ends."""
        limits = self.limits
        size = max(limits.scratch_bytes, OWN_SCRATCH_BYTES)
        with self.scratch.cell(size, limits.scratch_inodes, os.geteuid()) as scratch:
            yield scratch.path

    def _place(self, name: str) -> Path:
        """A new path in the run's own scratch, out of reach of any container."""
        with self._lock:
            if self._directory is None:
                self._directory = self._stack.enter_context(self._own_scratch())
            return self._directory / name

    def close(self) -> None:
        """Remove the templates, and every container that is left of this run."""
        self._stack.close()
        self.sandbox.remove_leftovers({OWNER_LABEL: self.owner})
