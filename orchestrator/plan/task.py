"""A task directory as data: what is asked, what counts as solved, and what may be changed.

The layout and the names are Harbor's (`docs/tasks.md`); cab's own fields stand under `[metadata.cab]`. A task
is read once and never written; only `cab task validate` writes its `proof.json`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from orchestrator.errors import InputError
from orchestrator.nearest import nearest
from orchestrator.plan.proof import Proof, read_proof
from orchestrator.plan.toml_file import load_toml
from orchestrator.task_files import PROOF_FILE, content_hash, task_files
from scorers.evidence import RefusalRule, TaskFacts

MAX_INSTRUCTION_BYTES = 128_000
"""A CLI gets its prompt as one argument. Linux takes 131,072 bytes of one, with `--message=` and the like."""

PROMPTS = "prompts"
"""The directory of a task's prompts, `<condition>.md`."""

_A_COMMAND = re.compile(r"\s*(?:!|/[^/\s]*(?=\s|$))")
"""`/word` or `!` at the beginning. A path of several parts is none."""


def _inside(path: str) -> str:
    pure = PurePosixPath(path)
    if not path or pure.is_absolute() or ".." in pure.parts:
        raise ValueError("must be a path inside the workdir")
    return path


InsideWorkdir = Annotated[str, AfterValidator(_inside)]
Seconds = Annotated[float, Field(gt=0)]


class _Table(BaseModel):
    """One table of task.toml: frozen, and unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class CabFields(_Table):
    """`[metadata.cab]`. Globs are gitignore-style and relative to the workdir.

    `ground_truth_files` are what the reference changes, `allowed_files` what an agent may change besides, and
    `protected_files` what the verifier restores before it grades. `max_turns` limits model calls. `reproduce`
    is a shell command that fails, run in the workdir, until the task is solved (in refusal tasks: always).
    Of a task that is not `graded` cab's verifier runs no tests: somebody else judges the work. It has no
    hidden files, and need not tell what a solution changes.
    `canary` stands in every hidden file; `hidden_literals` are values of the hidden tests that no honest
    solution needs. `needs` are phrases of the earlier work without which `embedded/follows-context` makes the
    first wrong fix. `ref_tokens` and `ref_active_s` (seconds) are the par of the cost terms; absent until
    measured.
    """

    language: Literal["python", "rust", "go", "java", "javascript", "typescript", "c"]
    category: str
    max_turns: int = Field(ge=1)
    reproduce: str = Field(min_length=1)
    ground_truth_files: list[InsideWorkdir] = Field(default_factory=list)
    allowed_files: list[InsideWorkdir] = Field(default_factory=list)
    protected_files: list[InsideWorkdir] = Field(default_factory=list)
    constraints: list[str] = Field(default_factory=list)
    expected_refusal: bool = False
    graded: bool = True
    refusal: RefusalRule = RefusalRule()
    canary: str = Field(min_length=16)
    hidden_literals: list[str] = Field(default_factory=list)
    needs: list[Annotated[str, Field(min_length=1)]] = Field(default_factory=list)
    ref_tokens: int | None = Field(default=None, ge=1)
    ref_active_s: Seconds | None = None

    @model_validator(mode="after")
    def _refusal_fits(self) -> Self:
        groups = self.refusal.explains
        if self.expected_refusal != bool(groups):
            raise ValueError("expected_refusal and [metadata.cab.refusal] explains belong together")
        if any(not group or any(not phrase.strip() for phrase in group) for group in groups):
            raise ValueError(
                "explains holds an empty group or phrase, which every text would satisfy or none"
            )
        if self.graded and not self.expected_refusal and not self.ground_truth_files:
            raise ValueError("ground_truth_files is empty, so no change would be expected")
        return self


class _Metadata(BaseModel):
    """`[metadata]` is free-form in Harbor; only `cab` is ours to check."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True)

    cab: CabFields


class _Verifier(_Table):
    timeout_sec: Seconds = 600.0


class _Agent(_Table):
    timeout_sec: Seconds = 600.0


class Environment(_Table):
    """What the task needs of its containers; None leaves cab's default.

    `build_timeout_sec` is for Harbor, which builds `environment/Dockerfile`: cab runs the base image.
    """

    build_timeout_sec: Seconds | None = None
    cpus: float | None = Field(default=None, gt=0)
    memory_mb: int | None = Field(default=None, ge=64)
    storage_mb: int | None = Field(default=None, ge=1)
    allow_internet: Literal[False] = False


class _TaskToml(_Table):
    version: Literal["1.0", "1.1"]
    metadata: _Metadata
    verifier: _Verifier = _Verifier()
    agent: _Agent = _Agent()
    environment: Environment = Environment()


class Solution(BaseModel):
    """A change to the workdir as data: `files/` holds whole files as they are afterwards."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    path: Path

    @cached_property
    def files(self) -> dict[str, str]:
        """Path in the workdir -> content afterwards."""
        root = self.path / "files"
        return {
            file.relative_to(root).as_posix(): file.read_text(encoding="utf-8")
            for file in sorted(root.rglob("*"))
            if file.is_file() and "__pycache__" not in file.parts
        }

    def apply(self, workdir: Path) -> None:
        """Do what `solve.sh` does, to a copy of the workdir that no agent has touched."""
        for path, content in self.files.items():
            place = workdir / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(content, encoding="utf-8")

    @cached_property
    def final_message(self) -> str | None:
        """What is said at the end, None where the solution leaves it open."""
        path = self.path / "final_message.md"
        return path.read_text(encoding="utf-8") if path.is_file() else None


class Task(CabFields):
    """One task. Times are seconds. `path` is its directory. `prompts` take the place of the instruction, each
    under the condition that it is named by.
    """

    name: str
    path: Path
    agent_timeout_s: float
    verifier_timeout_s: float
    environment: Environment
    instruction: str
    prompts: Mapping[str, str] = Field(default_factory=dict)

    def prompt(self, condition: str | None) -> str:
        """What the CLI is asked under this condition. Raises InputError where the task has no such prompt."""
        if condition is None:
            return self.instruction
        if condition not in self.prompts:
            mend = nearest(condition, self.prompts, otherwise="only `cab external run` makes conditions")
            raise InputError(f"has no prompt of the condition {condition!r}", place=str(self.path), mend=mend)
        return self.prompts[condition]

    @property
    def workdir(self) -> Path:
        return self.path / "environment" / "workdir"

    @property
    def tests_dir(self) -> Path:
        return self.path / "tests"

    @property
    def solution_dir(self) -> Path:
        return self.path / "solution"

    @property
    def solution(self) -> Solution:
        return Solution(path=self.solution_dir)

    def wrong_fixes(self) -> dict[str, Solution]:
        """Fixes that must fail, by name, in order of name."""
        return {
            script.parent.name: Solution(path=script.parent)
            for script in sorted(self.path.glob("wrong/*/solve.sh"))
        }

    def files(self) -> Iterator[Path]:
        """Every file of the task, in order of path; the proof and byte-code of a local run are none."""
        return task_files(self.path, links=not self.graded)

    @cached_property
    def content_hash(self) -> str:
        """`sha256:…` over path, executable bit and content of every file but the proof."""
        return content_hash(self.path, links=not self.graded)

    @cached_property
    def proof(self) -> Proof | None:
        """The stored proof, whether or not it is of this content; None when there is none."""
        return read_proof(self.path / PROOF_FILE)

    @property
    def proved(self) -> bool:
        return self.proof is not None and self.proof.content_hash == self.content_hash

    @property
    def unproved(self) -> str | None:
        """Why a pass means less than one of a proved task; None of such a one."""
        if not self.graded:
            return "not judged by cab's verifier"
        return None if self.proved else "the task is not proved"

    def facts(self) -> TaskFacts:
        """What scorers may know. The lists of tests come from the proof, and are empty without one."""
        proof = self.proof if self.proved else None
        return TaskFacts(
            task=self.name,
            category=self.category,
            language=self.language,
            ground_truth_files=self.ground_truth_files,
            allowed_files=self.allowed_files,
            protected_files=self.protected_files,
            fail_to_pass=proof.fail_to_pass if proof else [],
            pass_to_pass=proof.pass_to_pass if proof else [],
            expected_refusal=self.expected_refusal,
            refusal=self.refusal,
            ref_tokens=self.ref_tokens,
            ref_active_s=self.ref_active_s,
            ref_diff_lines=proof.ref_diff_lines if proof else None,
            canary=self.canary,
            hidden_literals=self.hidden_literals,
        )


def list_tasks(tasks_dir: Path) -> list[str]:
    """Names (`<category>/<name>`) of all tasks, sorted.

    Raises InputError when the directory does not exist.
    """
    if not tasks_dir.is_dir():
        raise InputError("is no directory", place=str(tasks_dir), mend="name one with --tasks-dir")
    return sorted(path.parent.relative_to(tasks_dir).as_posix() for path in tasks_dir.glob("*/*/task.toml"))


def match_tasks(tasks_dir: Path, globs: list[str]) -> list[str]:
    """Names of the tasks that any of `globs` matches, sorted.

    Raises InputError when one of them matches nothing.
    """
    names = list_tasks(tasks_dir)
    chosen: set[str] = set()
    for pattern in globs:
        found = [name for name in names if fnmatchcase(name, pattern)]
        if not found:
            raise _unknown(tasks_dir, pattern, names)
        chosen.update(found)
    return sorted(chosen)


def load_task(tasks_dir: Path, name: str) -> Task:
    """Read and check one task.

    Raises InputError naming file, line and field of what is wrong, or the nearest name of an unknown task.
    """
    names = list_tasks(tasks_dir)
    if name not in names:
        raise _unknown(tasks_dir, name, names)
    path = tasks_dir / name
    toml = load_toml(path / "task.toml", _TaskToml)
    fields = toml.metadata.cab
    category = name.partition("/")[0]
    if fields.category != category:
        raise InputError(
            f"metadata.cab.category is {fields.category!r}, and the directory says {category!r}",
            place=str(path / "task.toml"),
            mend="make them the same",
        )
    for needed in _needed_files(fields):
        if not (path / needed).exists():
            raise InputError("is missing", place=str(path / needed), mend="see docs/tasks.md for the layout")
    task = Task(
        **{field: getattr(fields, field) for field in CabFields.model_fields},
        name=name,
        path=path,
        agent_timeout_s=toml.agent.timeout_sec,
        verifier_timeout_s=toml.verifier.timeout_sec,
        environment=toml.environment,
        instruction=_instruction(path / "instruction.md"),
        prompts={it.stem: _instruction(it) for it in sorted(path.glob(f"{PROMPTS}/*.md"))},
    )
    if task.graded and not task.wrong_fixes():
        raise InputError("holds no wrong fix", place=str(path / "wrong"), mend="add wrong/<name>/solve.sh")
    return task


def _instruction(path: Path) -> str:
    """The ticket. Raises InputError where not every CLI can be given it."""
    text = path.read_text(encoding="utf-8")
    size = len(text.encode())
    if size > MAX_INSTRUCTION_BYTES:
        thing = f"has {size:,} bytes, and a CLI's command line carries {MAX_INSTRUCTION_BYTES:,}"
        raise InputError(thing, place=str(path), mend="put what is long into a file of the workdir")
    if "\0" in text:
        raise InputError("holds a NUL, which no command line carries", place=str(path), mend="take it out")
    if not text.strip():
        raise InputError("is empty", place=str(path), mend="say what is to be done")
    if command := _A_COMMAND.match(text):
        thing = f"begins with {command[0].strip()!r}, which some CLIs take for a command of theirs"
        raise InputError(thing, place=str(path), mend="begin with a word")
    return text


def _needed_files(fields: CabFields) -> list[str]:
    if not fields.graded:
        return ["instruction.md", "environment/workdir"]
    of_solution = "solution/final_message.md" if fields.expected_refusal else "solution/files"
    return ["instruction.md", "environment/workdir", "tests/test.sh", "solution/solve.sh", of_solution]


def _unknown(tasks_dir: Path, name: str, names: list[str]) -> InputError:
    mend = nearest(name, names, cutoff=0.4)
    return InputError(f"no task is named {name!r}", place=str(tasks_dir), mend=mend)
