"""Suites that cab carries: small repositories and tasks in them, with images built here.

`external/swebench/repos/<repo>/` is a repository's tree at the base commit of all its tasks, and
`external/swebench/<suite>/<instance>/` one task: instance.toml, problem.md, gold.patch, test.patch, and if
there was earlier work, history.json and prior.patch. Other *.patch files are attempts that tests grade.
"""

from __future__ import annotations

import json
import shlex
import shutil
import tempfile
from collections.abc import Collection
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from orchestrator.errors import InputError
from orchestrator.external.tasks import END_MARKER, START_MARKER, ExternalTask, chosen, task_of
from orchestrator.nearest import nearest
from orchestrator.paths import EXTERNAL
from orchestrator.plan.toml_file import load_toml
from orchestrator.run.workdir import WITHOUT_BYTE_CODE, git
from orchestrator.task_files import content_hash

SWEBENCH = EXTERNAL / "swebench"
REPOS = SWEBENCH / "repos"
IMAGE_REPOSITORY = "cab-swe"
_NOT_SUITES = ("repos", "testbed", "harness")


class _Instance(BaseModel):
    """`instance.toml`. `tests` are the files of tests that are restored before grading, `needs` what of the
    history decides: without it wrong.patch is what one would do.
    """

    model_config = ConfigDict(extra="forbid")

    instance_id: str
    repo: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    tests: tuple[str, ...] = Field(min_length=1)
    fail_to_pass: tuple[str, ...] = Field(min_length=1)
    pass_to_pass: tuple[str, ...]
    needs: tuple[str, ...] = ()


def suite_names() -> list[str]:
    """The suites that cab carries."""
    return sorted(path.name for path in SWEBENCH.iterdir() if path.is_dir() and path.name not in _NOT_SUITES)


def load_suite(name: str, ids: Collection[str] | None = None) -> tuple[ExternalTask, ...]:
    """The tasks of a suite by id, all or those of `ids`. Raises InputError for an unknown suite or id, and
    for a wrong file of a task.
    """
    if name not in suite_names():
        raise InputError(f"no suite {name!r}", place="--suite", mend=nearest(name, suite_names()))
    folders = sorted(path.parent for path in (SWEBENCH / name).glob("*/instance.toml"))
    return chosen((load_instance(folder) for folder in folders), ids, f"suite {name}")


def load_instance(folder: Path, repos: Path = REPOS) -> ExternalTask:
    """The task in a suite's directory. Raises InputError that names the file."""
    told = load_toml(folder / "instance.toml", _Instance, docs="docs/external.md")
    if told.instance_id != folder.name:
        raise InputError(f"instance_id is not {folder.name!r}", place=str(folder / "instance.toml"), mend="")
    tree = repos / told.repo
    if not tree.is_dir():
        known = [path.name for path in sorted(repos.iterdir())]
        raise InputError(
            f"no repository {told.repo!r}",
            place=str(folder / "instance.toml"),
            mend=nearest(told.repo, known),
        )
    base, test_patch = base_commit(tree), _read(folder / "test.patch")
    row = {
        "instance_id": told.instance_id,
        "repo": f"{IMAGE_REPOSITORY}/{told.repo}",
        "base_commit": base,
        "version": "1",
        "problem_statement": _read(folder / "problem.md"),
        "hints_text": "",
        "patch": _read(folder / "gold.patch"),
        "test_patch": test_patch,
        "FAIL_TO_PASS": list(told.fail_to_pass),
        "PASS_TO_PASS": list(told.pass_to_pass),
        "image": image_of(told.repo, base),
        "log_parser": "parse_log_pytest_v2",
        "eval_type": "pass_and_fail",
        "eval_script": _eval_script(base, tree, told.tests, test_patch),
    }
    own = {"history": _history(folder / "history.json"), "prior_patch": _optional(folder / "prior.patch")}
    if told.needs:
        own |= {"needs": list(told.needs), "wrong_patch": _read(folder / "wrong.patch")}
    return task_of({**row, **own}, str(folder), source=tree)


def image_of(repo: str, base: str) -> str:
    """The image of a carried repository at its base commit."""
    return f"{IMAGE_REPOSITORY}/{repo}:{base[:12]}"


def base_commit(tree: Path) -> str:
    """The id of the commit that holds `tree` and nothing before it, the same on every machine."""
    return _committed(tree, content_hash(tree))


@cache
def _committed(tree: Path, _content: str) -> str:
    with tempfile.TemporaryDirectory(prefix="cab-base-") as scratch:
        copy = Path(scratch, "repo")
        shutil.copytree(tree, copy, ignore=WITHOUT_BYTE_CODE)
        return commit_all(copy)


def commit_all(tree: Path) -> str:
    """Make `tree` a repository with one commit that holds all of it; the commit's id."""
    git("init", "--quiet", "--initial-branch=main", "--object-format=sha1", cwd=tree)
    git("add", "--all", "--force", cwd=tree)
    git("commit", "--quiet", "--message=base", cwd=tree)
    return git("rev-parse", "HEAD", cwd=tree).decode().strip()


def _eval_script(base: str, tree: Path, tests: tuple[str, ...], test_patch: str) -> str:
    """Tests as the task has them, whatever the patch did to these files; then the repository's tests."""
    there = [path for path in tests if (tree / path).is_file()]
    restore = []
    if there:
        restore.append(f"git checkout {base} -- {shlex.join(there)}")
    if new := [path for path in tests if path not in there]:
        restore.append(f"rm -rf -- {shlex.join(new)}")
    return "\n".join(
        [
            "#!/bin/bash",
            "set -uxo pipefail",
            "cd /testbed",
            *restore,
            "git apply -v - <<'EOF_TESTPATCH'",
            test_patch.rstrip("\n"),
            "EOF_TESTPATCH",
            f": '{START_MARKER}'",
            f"pytest -rA -p no:cacheprovider {shlex.join(tests)}",
            f": '{END_MARKER}'",
            *restore,
            "",
        ]
    )


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", place=str(path), mend="see docs/external.md") from None


def _optional(path: Path) -> str:
    return _read(path) if path.is_file() else ""


def _history(path: Path) -> list[object] | None:
    if not path.is_file():
        return None
    try:
        found = json.loads(_read(path))
    except ValueError as error:
        raise InputError(f"is no JSON: {error}", place=str(path), mend="a list of events") from None
    if not isinstance(found, list):
        raise InputError("is no list of events", place=str(path), mend="see docs/external.md")
    return found
