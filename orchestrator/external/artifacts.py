"""The directory of one run: where each file is, and which command it belongs to.

Every file is written whole or not at all, and nothing in it names a host, a user or a path of this machine.
The same command again goes on where it stopped; another one is refused.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from orchestrator.context.redact import redact
from orchestrator.errors import InputError, StoreError
from orchestrator.external.tasks import ExternalTask
from orchestrator.run.provenance import Provenance
from orchestrator.store.files import make_dirs, store_errors, write_durably

METADATA = "metadata.json"
TASKS = "tasks.json"
VERSION = 1


@dataclass(frozen=True)
class Attempt:
    """One task under one condition, once."""

    instance_id: str
    condition: str
    run: int


class PromptFacts(BaseModel):
    """`prompts/<instance>/<condition>.json`: what a prompt carries, in tokens and by the state's groups."""

    prompt_tokens: int
    context_tokens: int
    carried: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Artifacts:
    """`root` is the run's directory, `--out`."""

    root: Path

    @property
    def results(self) -> Path:
        """A results directory of cab's, with the sweep of the run's cells."""
        return self.root / "results"

    @property
    def tasks(self) -> Path:
        """The benchmark's tasks as cab's own."""
        return self.root / "tasks"

    @property
    def plugins(self) -> Path:
        return self.root / "plugins"

    @property
    def worktrees(self) -> Path:
        return self.root / "worktrees"

    @property
    def staging(self) -> Path:
        """For what is made elsewhere first, on the same file system."""
        return self.root / ".staging"

    def patch(self, of: Attempt) -> Path:
        return self.root / "patches" / of.instance_id / of.condition / f"run{of.run}.patch"

    def patch_of(self, of: Attempt) -> bytes:
        """The patch that is stored of an attempt. Raises StoreError where it is not there."""
        path = self.patch(of)
        with store_errors(path):
            return path.read_bytes()

    def predictions(self, condition: str, run: int) -> Path:
        return self.root / "predictions" / f"{condition}.run{run}.jsonl"

    def harness(self, condition: str, run: int) -> Path:
        return self.root / "harness" / f"{condition}.run{run}"

    def log(self, of: Attempt, suffix: str) -> Path:
        return self.root / "agent_logs" / of.instance_id / of.condition / f"run{of.run}{suffix}"

    def prompt(self, instance_id: str, condition: str) -> Path:
        return self.root / "prompts" / instance_id / f"{condition}.md"

    def state(self, instance_id: str, condition: str) -> Path:
        """The directory of snapshot.md and receipt.md."""
        return self.root / "stateplane" / instance_id / condition

    def prompt_facts(self, instance_id: str, condition: str) -> PromptFacts:
        """What a prompt carries. Raises StoreError where that is not there, or damaged."""
        path = self.prompt(instance_id, condition).with_suffix(".json")
        with store_errors(path):
            raw = path.read_bytes()
        try:
            return PromptFacts.model_validate_json(raw)
        except ValidationError:
            mend = "give the whole command of the run again, which writes it anew"
            raise StoreError("is damaged", place=str(path), mend=mend) from None

    def write(self, path: Path, data: bytes) -> None:
        """Write one file, its directories included, unless it is there as it should be: a run that goes on
        has most of them. Raises StoreError.
        """
        with store_errors(path):
            if path.is_file() and path.read_bytes() == data:
                return
            make_dirs(path.parent)
            write_durably(path, data)

    def metadata(self) -> dict[str, Any] | None:
        """What is known of the run; None where the directory holds none. Raises StoreError, InputError."""
        path = self.root / METADATA
        if not path.exists():
            if self.root.is_dir() and any(it.name != _LOCK for it in self.root.iterdir()):
                mend = "give another --out, or an empty one"
                raise InputError("is a directory of something else", place=str(self.root), mend=mend)
            return None
        with store_errors(path):
            raw = path.read_bytes()
        try:
            found = json.loads(raw)
            if found["v"] != VERSION:
                raise StoreError(f"is of version {found['v']}", place=str(path), mend="use that cab")
            _Known.model_validate(found)
        except (ValueError, TypeError, KeyError, RecursionError):
            raise StoreError("is damaged", place=str(path), mend="give another --out") from None
        return dict(found)

    def begin(self, asked: Mapping[str, Any], run_id: str) -> dict[str, Any]:
        """The run's metadata, stored now where it is new. Raises InputError where the directory belongs to
        another command, with what differs.
        """
        known = self.metadata()
        if known is not None:
            check_same_command(known["asked"], asked, self.root)
            return known
        provenance = Provenance.read()
        new = {
            "v": VERSION,
            "run_id": run_id,
            "started_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "cab": {
                "version": provenance.version,
                "commit": provenance.commit,
                "dirty": provenance.dirty,
            },
            "platform": provenance.platform,
            "asked": dict(asked),
        }
        self.note(new)
        return new

    def note(self, metadata: Mapping[str, Any]) -> None:
        """Write `metadata.json`."""
        text = json.dumps(metadata, indent=1, ensure_ascii=False)
        self.write(self.root / METADATA, f"{text}\n".encode())

    def write_tasks(self, tasks: tuple[ExternalTask, ...]) -> None:
        """`tasks.json`: the rows with cab's own keys, as `--tasks-json` takes them."""
        rows = [{**task.row, **{key: value for key, value in task.own.items() if value}} for task in tasks]
        self.write(self.root / TASKS, f"{json.dumps(rows, indent=1, default=str)}\n".encode())

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other calls out of the directory, which is made. Raises StoreError where one is at work."""
        with store_errors(self.root):
            make_dirs(self.root)
            fd = os.open(self.root / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                mend = "wait for it, or give another --out"
                raise StoreError("another call is at work", place=str(self.root), mend=mend) from None
            yield
        finally:
            os.close(fd)
            with suppress(OSError):
                self.staging.rmdir()


_LOCK = ".lock"


class _Asked(BaseModel):
    """What of `asked` a run that is there is read by; the rest is only held against another command."""

    benchmark: str
    source: dict[str, Any]
    tasks: dict[str, str]
    conditions: tuple[str, ...]
    runs: int
    mode: Literal["dry_run", "cli", "command"]
    agent: str
    model: str


class _Known(BaseModel):
    run_id: str
    asked: _Asked


def check_same_command(stored: Mapping[str, Any], asked: Mapping[str, Any], root: Path) -> None:
    """Raises InputError that names each thing in which two commands differ."""
    differing = [
        f"{name} is {_short(asked.get(name))} and was {_short(stored.get(name))}"
        for name in sorted({*stored, *asked})
        if stored.get(name) != asked.get(name)
    ]
    if differing:
        raise InputError(
            f"holds the run of another command: {'; '.join(differing)}",
            place=str(root),
            mend="give another --out",
        )


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}…"


def command_as_told(words: tuple[str, ...]) -> list[str]:
    """A command line without keys and without the paths of this machine: of each its last part is kept, also
    where it stands inside a word, such as an option's value or a script.
    """
    return [_PATH.sub(lambda path: f"…/{PurePosixPath(path[0]).name}", redact(word)) for word in words]


# A slash inside a relative path or behind the `:/` of a URL begins none.
_PATH = re.compile(r"(?<![\w.…:/~\]-])~?/(?!/)[^\s\"'`;:,|&<>()=]+")


def digest_of(*parts: str) -> str:
    """`sha256:…` over texts."""
    whole = hashlib.sha256()
    for part in parts:
        raw = part.encode()
        whole.update(f"{len(raw)}\0".encode())
        whole.update(raw)
    return f"sha256:{whole.hexdigest()}"
