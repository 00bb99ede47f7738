"""Tasks of a benchmark as tasks of cab's: a directory each, as `load_task` reads it, with a prompt for each
condition. They are not graded by cab.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from orchestrator.context.packaging import Packaged, package, prompt_of
from orchestrator.context.select import PolicyName, Profile
from orchestrator.external.checkout import base_tree
from orchestrator.external.patches import NotApplied, predictor
from orchestrator.external.tasks import ExternalTask
from orchestrator.plan.task import PROMPTS
from orchestrator.plan.toml_text import dump_toml
from orchestrator.store.files import sync_tree

AGENT_TIMEOUT_S = 1800.0
MAX_CALLS = 250
"""Of one cell, unless the run says otherwise. Both are cab's choice: the benchmark has no limit."""

_LANGUAGES = {
    ".py": "python",
    ".rs": "rust",
    ".go": "go",
    ".java": "java",
    ".js": "javascript",
    ".ts": "typescript",
    ".c": "c",
    ".h": "c",
}
_SOLVE = """\
#!/bin/sh
# A patch, as files.
cp -R "$(dirname "$0")/files/." .
"""


@dataclass(frozen=True)
class Prompt:
    """What a cell of one task is asked under one condition, and what the condition put into it."""

    text: str
    packaged: Packaged


def task_name(task: ExternalTask) -> str:
    """How cells name the task."""
    return f"{task.benchmark}/{task.instance_id}"


def prompts_of(
    task: ExternalTask, conditions: tuple[str, ...], policy: PolicyName, profile: Profile | None
) -> dict[str, Prompt]:
    """The prompt of each condition. Raises InputError where what must be carried does not fit."""
    found = {}
    for condition in conditions:
        packaged = package(condition, task.history, task.problem_statement, policy=policy, profile=profile)
        found[condition] = Prompt(prompt_of(task.problem_statement, packaged), packaged)
    return found


def write_task(
    task: ExternalTask, prompts: Mapping[str, Prompt], path: Path, *, staging: Path, repos: Path | None
) -> None:
    """Make the task's directory `path`, whole or not at all; one that is there is left as it is.

    `staging` is a directory on the same file system. Raises InputError where the task's files are nowhere.
    """
    if path.is_dir():
        return
    made = staging / path.name
    shutil.rmtree(made, ignore_errors=True)
    (made / "environment").mkdir(parents=True)
    workdir = made / "environment" / "workdir"
    base_tree(task, workdir, repos=repos)
    (made / "instruction.md").write_text(prompt_of(task.problem_statement, NOTHING), "utf-8")
    (made / PROMPTS).mkdir()
    for condition, prompt in prompts.items():
        (made / PROMPTS / f"{condition}.md").write_text(prompt.text, "utf-8")
    truth = _write_fix(task, task.patch or "", workdir, made / "solution")
    if task.needs:
        _write_fix(task, task.wrong_patch, workdir, made / "wrong" / "without-context")
    (made / "task.toml").write_text(_toml(task, truth), "utf-8")
    path.parent.mkdir(parents=True, exist_ok=True)
    sync_tree(made)
    made.rename(path)


NOTHING = Packaged(condition="none", text="", tokens=0, snapshot=None, receipt=None, carried={})
"""No earlier work."""


def _write_fix(task: ExternalTask, patch: str, workdir: Path, into: Path) -> list[str]:
    """The files that a patch against the base commit changes; what they are afterwards goes to `into`, unless
    it is none that text files can say.
    """
    if not patch:
        return []
    with predictor(workdir, task.prior_patch) as made:
        repo = made.scratch
        repo.load(made.base)
        try:
            repo.apply(patch.encode())
        except NotApplied:
            # It may fit the benchmark's own tree and not this one: then there is no such fix here.
            return []
        fixed = repo.written()
        truth = sorted(repo.changed(made.base, fixed))
        files = {}
        for path, letter in repo.changed(made.start, fixed).items():
            if letter == "D":
                if path in truth:
                    return truth
                continue
            try:
                files[path] = repo.content(fixed, path).decode("utf-8")
            except UnicodeDecodeError:
                return truth
    for path, text in files.items():
        place = into / "files" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode())
    (into / "solve.sh").write_text(_SOLVE, "utf-8")
    (into / "solve.sh").chmod(0o755)
    return truth


def _toml(task: ExternalTask, truth: list[str]) -> str:
    fields = {
        "language": _language(truth),
        "category": task.benchmark,
        "graded": False,
        "max_turns": MAX_CALLS,
        # No command of the repository's is known to run in a CLI's image: scripted models run this one.
        "reproduce": "git status --short && false",
        "ground_truth_files": [_glob(path) for path in truth],
        "canary": "no file of this task is hidden",
        **({"needs": list(task.needs)} if task.needs else {}),
    }
    return dump_toml(
        {"version": "1.1", "metadata": {"cab": fields}, "agent": {"timeout_sec": AGENT_TIMEOUT_S}}
    )


def _language(paths: list[str]) -> str:
    """That of most files of the reference; python where none tells."""
    found = Counter(
        language for path in paths if (language := _LANGUAGES.get(PurePosixPath(path).suffix)) is not None
    )
    return found.most_common(1)[0][0] if found else "python"


def _glob(path: str) -> str:
    """A gitignore-style glob of this path; of one without a directory also of its name elsewhere."""
    return "".join(f"\\{letter}" if letter in "*?[\\!# " else letter for letter in path)
