"""An interrupted session of the user's own as a task: what was said and done, what was left in the
repository, and the last goal as the problem.

Nobody has tests for it: patches can be generated under each condition and looked at, and the harness refuses
it.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.context.importers import Imported
from orchestrator.context.redact import has_key
from orchestrator.errors import EnvironmentFault, InputError
from orchestrator.run.workdir import GIT_ENV

OWNER = "local"
"""Stands for the owner of a repository that is the user's own."""


@dataclass(frozen=True)
class SessionTask:
    """A row as `--tasks-json` takes it, and what whoever imports it should know."""

    row: Mapping[str, Any]
    notes: tuple[str, ...]


def session_task(cli: str, log: Path, session: Imported, repo: Path, base: str | None = None) -> SessionTask:
    """The task of a session that worked in the repository `repo`, from the revision `base`; where none is
    given from the commit that the log names, else from the repository's last one.

    `prior_patch` is all that differs from it in the working tree now, but what git ignores. Nothing of the
    repository is changed. Raises InputError where `repo` is no repository, the revision is not in it or the
    session has no goal, and EnvironmentFault where git fails or cannot run.
    """
    if not session.goal:
        raise InputError("nobody asked for anything in it", place=str(log), mend="give another session's log")
    git = _Git.of(repo)
    commit, note = _commit(git, session, base)
    patch = git.difference(commit)
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", git.top.name).strip("-.") or "repository"
    digest = hashlib.sha256(log.read_bytes()).hexdigest()
    row = {
        "instance_id": f"{name[:80]}__{cli}-{digest[:8]}",
        "repo": f"{OWNER}/{name}",
        "base_commit": commit,
        "problem_statement": session.goal,
        "history": session.history.as_json(),
        "prior_patch": patch,
    }
    return SessionTask(row, (*_of_log(session), note, *_of_patch(patch)))


def _commit(git: _Git, session: Imported, base: str | None) -> tuple[str, str]:
    if base is not None:
        return git.commit(base), f"base: {base}, as given"
    if session.base is not None:
        try:
            return git.commit(session.base), "base: the commit that the log names"
        except InputError as error:
            raise InputError(
                f"has no commit {session.base}, which the log names",
                place=error.place,
                mend="give the repository that the session worked in, or --base",
            ) from None
    return git.commit("HEAD"), "base: HEAD, since the log names no commit; --base for an earlier one"


def _of_log(session: Imported) -> list[str]:
    kinds = sorted({event.kind for event in session.history})
    counted = ", ".join(f"{kind} {sum(it.kind == kind for it in session.history)}" for kind in kinds)
    notes = [f"{len(session.history.events)} events of {session.lines} lines: {counted}"]
    if session.unknown:
        of = ", ".join(f"{kind} ({count})" for kind, count in session.unknown.items())
        notes.append(f"{sum(session.unknown.values())} lines of a type that is not known were left out: {of}")
    if session.broken:
        notes.append(f"{session.broken} lines are no JSON object and were left out")
    if session.redacted:
        notes.append(f"{session.redacted} keys were taken out")
    return notes


def _of_patch(patch: str) -> list[str]:
    if not patch:
        return ["prior_patch: nothing differs from the base"]
    notes = [f"prior_patch: {patch.count(chr(10))} lines"]
    if has_key(patch):
        notes.append("prior_patch holds what looks like a key: take it out before the file goes anywhere")
    return notes


@dataclass(frozen=True)
class _Git:
    """git in a user's repository, which is only read: indexes and objects that it makes are elsewhere."""

    top: Path

    @classmethod
    def of(cls, path: Path) -> _Git:
        """The repository that `path` is in. Raises InputError where it is in none."""
        done = cls(path)._run("rev-parse", "--show-toplevel")
        if done is None:
            mend = "give the repository that the session worked in"
            raise InputError("is in no git repository", place=str(path), mend=mend)
        return cls(Path(os.fsdecode(done.rstrip(b"\n"))))

    def commit(self, revision: str) -> str:
        """The id of a commit. Raises InputError where it is none of the repository's."""
        found = self._run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        if found is None:
            raise InputError(f"has no commit {revision}", place=self.top.name, mend="give another --base")
        return found.decode().strip()

    def difference(self, commit: str) -> str:
        """The working tree against a commit, as a patch; files that git ignores are no part of it.

        Raises EnvironmentFault where git fails, InputError for a patch that is no UTF-8.
        """
        with tempfile.TemporaryDirectory(prefix="cab-import-") as scratch:
            objects = self._needed("rev-parse", "--git-path", "objects").decode().strip()
            env = {
                "GIT_INDEX_FILE": str(Path(scratch, "index")),
                "GIT_OBJECT_DIRECTORY": scratch,
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": str((self.top / objects).resolve()),
            }
            self._needed("read-tree", commit, env=env)
            self._needed("add", "--all", "--", ".", env=env)
            plain = ("--no-color", "--no-ext-diff", "--no-textconv", "--binary", "--no-renames")
            patch = self._needed(
                "-c", "diff.noprefix=false", "-c", "diff.mnemonicPrefix=false",
                "diff", "--cached", *plain, commit, env=env,
            )  # fmt: skip
        try:
            return patch.decode("utf-8")
        except UnicodeDecodeError:
            mend = "commit or remove files in other encodings, or give another --base"
            raise InputError("what differs is not all UTF-8", place=self.top.name, mend=mend) from None

    def _needed(self, *args: str, env: Mapping[str, str] | None = None) -> bytes:
        done = self._run(*args, env=env)
        if done is None:
            raise EnvironmentFault(
                f"git {' '.join(args[:2])} failed", place=self.top.name, mend="see `git status`"
            )
        return done

    def _run(self, *args: str, env: Mapping[str, str] | None = None) -> bytes | None:
        """What git printed; None where it failed."""
        try:
            done = subprocess.run(
                ["git", "-c", "safe.directory=*", *args],
                cwd=self.top,
                env={**GIT_ENV, **(env or {})},
                capture_output=True,
                check=False,
            )
        except OSError as error:
            raise EnvironmentFault(f"git cannot run there: {error.strerror}", place=str(self.top)) from None
        return done.stdout if done.returncode == 0 else None
