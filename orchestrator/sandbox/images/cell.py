"""The images for `cab run-cell`: of each CLI's image a child that holds cab and the tasks as its last layers.

`images/cell` is what the children get, and `images/cell/child` how; a child is named `<cli>+cell`. It is made
again when anything changed that lies in it, and only then: its commit is the last that touched one of these.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from orchestrator import __version__
from orchestrator.task_files import content_hash

CELL = "cell"
CHILD = "child"
SUFFIX = "+cell"
IMAGE_FILE = "cab/image.json"
"""In a child's context: what `run-cell` reads there."""

_CODE = ("orchestrator", "scorers")
_DATA = ("plugins", "tasks")
_LOCK = "requirements-cell.lock"
_LEFT_OUT = "orchestrator/site/vendor"
"""Put there by set-up, for pages in a browser alone."""


def child_name(cli: str) -> str:
    """The name, in images.lock, of a CLI's image for run-cell."""
    return f"{cli}{SUFFIX}"


def has_all(repo: Path) -> bool:
    """Whether a checkout, or what was installed of one, holds all that these images are made of."""
    return all((repo / part).exists() for part in (*_CODE, *_DATA, _LOCK))


def carried_files(repo: Path) -> dict[str, Path]:
    """What `images/cell` takes from outside its folder, by path in the repository."""
    found = {_LOCK: repo / _LOCK}
    for part in (*_CODE, *_DATA):
        for path in sorted((repo / part).rglob("*")):
            name = path.relative_to(repo).as_posix()
            if path.is_file() and "__pycache__" not in path.parts and not name.startswith(f"{_LEFT_OUT}/"):
                found[name] = path
    return found


def carried_tasks(repo: Path) -> dict[str, str]:
    """By name the digest of each task that `images/cell` takes. Raises InputError for a symbolic link."""
    found = sorted(path.parent for path in (repo / "tasks").glob("*/*/task.toml"))
    return {task.relative_to(repo / "tasks").as_posix(): content_hash(task) for task in found}


def cab_facts(repo: Path, adapters: Mapping[str, Path]) -> dict[str, dict[str, Any]]:
    """By CLI, which cab its child holds: the version, the last commit that touched any of it, and whether it
    differs from that commit. The last two are None outside a git checkout.
    """
    files = {
        cli: path.relative_to(repo).as_posix() for cli, path in adapters.items() if path.is_relative_to(repo)
    }
    shared = [*_CODE, *_DATA, _LOCK, f"images/{CELL}"]
    commit = _git(repo, "log", "-1", "--format=%H", "--", *shared)
    if not commit:
        return {cli: {"cab_version": __version__, "commit": None, "dirty": None} for cli in adapters}
    # Two calls for all adapters: one for each would take longer than all else that listing images does.
    later = _git(repo, "log", "--format=commit %H", "--name-only", f"{commit}..HEAD", "--", *files.values())
    status = _git(repo, "status", "--porcelain", "-z", "--no-renames", "--", *shared, *files.values())
    changed = {line[3:] for line in (status or "").split("\0") if line}
    own = {path for path in changed if path in files.values()}
    return {
        cli: {
            "cab_version": __version__,
            "commit": _last_of(later or "", files.get(cli)) or commit,
            "dirty": bool(changed - own) or files.get(cli) in own,
        }
        for cli in adapters
    }


def _last_of(log: str, path: str | None) -> str | None:
    """The first commit of a log that has the path."""
    commit = None
    for line in log.splitlines():
        if line.startswith("commit "):
            commit = line.removeprefix("commit ")
        elif line == path:
            return commit
    return None


def image_file(facts: Mapping[str, Any], *, parent_id: str, parent_tag: str, env: Sequence[str]) -> bytes:
    """What a child says of itself. `env` is the environment that its CLI's image sets, as `NAME=value`."""
    whole = {**facts, "parent_id": parent_id, "parent_tag": parent_tag, "env": dict(_variables(env))}
    return json.dumps(whole, indent=1).encode() + b"\n"


def _variables(env: Sequence[str]) -> Iterator[tuple[str, str]]:
    for line in env:
        name, _, value = line.partition("=")
        yield name, value


def _git(repo: Path, *args: str) -> str | None:
    done = subprocess.run(["git", *args], cwd=repo, capture_output=True, text=True, check=False)
    # Only its end: a line of `git status` may begin with a space.
    return done.stdout.rstrip() if done.returncode == 0 else None
