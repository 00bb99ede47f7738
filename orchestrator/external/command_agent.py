"""A command line of the user's as the agent, on this machine itself: no container, no gateway, no limits but
time. It runs because it was asked for, and every record of it says isolation `none`.

Each attempt has a work tree of its own with one commit, the prompt on stdin and in a file, and its output in
`agent_logs/`. What it left is read as any agent's is: nothing in it is followed or run.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Literal

from orchestrator.errors import InputError
from orchestrator.external.artifacts import Artifacts, Attempt
from orchestrator.external.command_record import CommandRecord, read_record
from orchestrator.external.work import is_left_out
from orchestrator.plan.task import Task
from orchestrator.run.workdir import Classifier, Template, compare, copy_tree, scan
from orchestrator.run.workers import Workers
from orchestrator.store.files import make_dirs, store_errors

PROMPT_FILE = "{prompt_file}"
KEPT_FROM_AGENTS = ("CAB_KEY", "CAB_ENDPOINT")
"""Variables that are cab's own: an endpoint's key reaches no agent."""

MAX_LOG_BYTES = 64 << 20
"""Of one stream's log."""

_GRACE_S = 5.0
_LOOK_EVERY_S = 0.3


class _Stopped(Exception):
    """The user stopped the run while the command was under way: nothing of it is kept."""


@dataclass
class CommandAgent:
    """Runs `command` for each attempt that has no record yet; `tasks` are by instance."""

    artifacts: Artifacts
    command: tuple[str, ...]
    tasks: Mapping[str, Task]
    timeout_s: float
    codex_home: Path | None = None
    told: Callable[[Attempt, CommandRecord], None] = lambda _attempt, _record: None
    _templates: dict[str, Template] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)
    _workers: Workers[Attempt] = field(init=False)

    def __post_init__(self) -> None:
        self._workers = Workers(self._try, "command-worker")

    def check(self) -> None:
        """Raises InputError where there is no such command."""
        if self._program is None:
            mend = "give one that is on PATH, or its path"
            raise InputError(f"no command {self.command[0]!r}", place="--agent-command", mend=mend)

    @property
    def _program(self) -> str | None:
        """The command's file. A relative path is one from here, where the user is, not from a work tree."""
        found = shutil.which(self.command[0])
        return str(Path(found).absolute()) if found else None

    def run(self, attempts: Sequence[Attempt], workers: int) -> None:
        """Run what is not done of `attempts`, `workers` at a time. Raises StoreError."""
        left = [attempt for attempt in attempts if self.record(attempt) is None]
        try:
            self._workers.run(left, workers)
        finally:
            shutil.rmtree(self._templates_dir, ignore_errors=True)
            self._templates.clear()

    def stop(self) -> None:
        """End what is under way, as Ctrl-C does: it runs again with the same command."""
        self._workers.stop()

    def record(self, attempt: Attempt) -> CommandRecord | None:
        """What an attempt came to; None where it has not ended. Raises StoreError for a damaged record."""
        return read_record(self.artifacts, attempt)

    def diff(self, attempt: Attempt) -> bytes:
        """What an ended attempt changed in its work tree."""
        path = self.artifacts.log(attempt, ".diff")
        with store_errors(path):
            return path.read_bytes()

    def _try(self, attempt: Attempt) -> None:
        with suppress(_Stopped):
            self.told(attempt, self._run(attempt))

    def _run(self, attempt: Attempt) -> CommandRecord:
        tree = self.artifacts.worktrees / attempt.instance_id / attempt.condition / f"run{attempt.run}"
        template = self._template(attempt.instance_id)
        with store_errors(tree):
            shutil.rmtree(tree, ignore_errors=True)
            make_dirs(tree.parent)
            copy_tree(template.path, tree)
        started_at, began = datetime.now(UTC), time.monotonic()
        exit_code, timed_out = self._execute(attempt, tree)
        elapsed = time.monotonic() - began
        difference = compare(template, tree, scan(tree), Classifier(template.path))
        outcome: Literal["completed", "timeout", "failed"] = "completed" if exit_code == 0 else "failed"
        record = CommandRecord(
            outcome="timeout" if timed_out else outcome,
            exit_code=exit_code,
            started_at=started_at.isoformat(timespec="seconds"),
            elapsed_s=round(elapsed, 3),
            patch_left_out=is_left_out(difference.changes, truncated=difference.truncated),
        )
        self.artifacts.write(self.artifacts.log(attempt, ".diff"), difference.patch)
        # Last: an attempt has ended once it is there.
        self.artifacts.write(self.artifacts.log(attempt, ".json"), f"{record.model_dump_json()}\n".encode())
        return record

    def _execute(self, attempt: Attempt, tree: Path) -> tuple[int | None, bool]:
        """Exit code (None: a signal's, or none) and whether time was up."""
        prompt_file = self.artifacts.prompt(attempt.instance_id, attempt.condition).resolve()
        argv = [word.replace(PROMPT_FILE, str(prompt_file)) for word in self.command]
        argv[0] = self._program or argv[0]
        env = {name: value for name, value in os.environ.items() if name not in KEPT_FROM_AGENTS}
        if self.codex_home is not None:
            env["CODEX_HOME"] = str(self.codex_home.resolve())
        out, err = (self.artifacts.log(attempt, f".{name}.log") for name in ("stdout", "stderr"))
        with store_errors(out):
            make_dirs(out.parent)
        with (
            store_errors(out),
            out.open("wb") as stdout,
            err.open("wb") as stderr,
            prompt_file.open("rb") as prompt,
        ):
            try:
                process = subprocess.Popen(
                    argv,
                    cwd=tree,
                    env=env,
                    stdin=prompt,
                    stdout=stdout,
                    stderr=stderr,
                    start_new_session=True,
                )
            except OSError as error:
                said = os.strerror(error.errno) if error.errno else str(error)
                mend = "a script needs a first line such as #!/bin/sh"
                raise InputError(
                    f"{argv[0]} cannot be run: {said}", place="--agent-command", mend=mend
                ) from None
            try:
                code = self._wait(process)
            finally:
                _end(process)
        with store_errors(out):
            for log in (out, err):
                if log.stat().st_size > MAX_LOG_BYTES:
                    os.truncate(log, MAX_LOG_BYTES)
        return (code if code is None or code >= 0 else None), code is None

    def _wait(self, process: subprocess.Popen[bytes]) -> int | None:
        """Its exit code, None where time was up. Raises _Stopped."""
        until = time.monotonic() + self.timeout_s
        while (left := until - time.monotonic()) > 0:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(min(left, _LOOK_EVERY_S))
            if self._workers.stopping.is_set():
                raise _Stopped
        return None

    def _template(self, instance_id: str) -> Template:
        with self._lock:
            if instance_id not in self._templates:
                path = self._templates_dir / instance_id
                with store_errors(path):
                    shutil.rmtree(path, ignore_errors=True)
                    make_dirs(path.parent)
                    self._templates[instance_id] = Template.make(self.tasks[instance_id].workdir, path)
            return self._templates[instance_id]

    @property
    def _templates_dir(self) -> Path:
        return self.artifacts.staging / "templates"


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the command's process group, which what it started is in unless it left it."""
    with suppress(ProcessLookupError):
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_GRACE_S)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
