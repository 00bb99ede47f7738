"""Patches by git in scratch repositories: none of a user's or an agent's git configuration is ever read, no
filter or attribute of the tree is heeded, and every byte of a file counts.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from orchestrator.errors import EnvironmentFault, InputError
from orchestrator.run.workdir import GIT_ENV

_AS_BYTES = "* !diff !text !filter !ident !eol !working-tree-encoding !export-ignore !export-subst\n"


class NotApplied(Exception):
    """A patch does not fit the tree; the text is git's first line."""


@dataclass(frozen=True)
class Scratch:
    """A repository that holds no branch, and an index over the work tree `tree`."""

    path: Path
    tree: Path

    def git(self, *args: str, stdin: bytes = b"") -> bytes:
        """What git printed. Raises EnvironmentFault where it failed."""
        done = self._run(*args, stdin=stdin)
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip()
            raise EnvironmentFault(f"git {args[0]} failed: {said}", place=self.tree.name)
        return done.stdout

    def apply(self, patch: bytes, *options: str) -> None:
        """Apply a patch to the index. Raises NotApplied."""
        if not patch.strip():
            return
        done = self._run("apply", "--whitespace=nowarn", "--cached", *options, "-", stdin=patch)
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise NotApplied(said[0].removeprefix("error: ") if said else "git says no more")

    def written(self) -> str:
        """The index as a tree, by its id."""
        return self.git("write-tree").decode().strip()

    def load(self, tree: str) -> None:
        """Have the index hold this tree."""
        self.git("read-tree", tree)

    def lay_out(self) -> None:
        """Write what the index holds into the work tree."""
        self.git("checkout-index", "--all", "--force")

    def difference(self, before: str, after: str) -> bytes:
        """The patch between two trees; it applies with `git apply`, and is UTF-8: where a changed file is
        text of another encoding, all of it is as for binary files.
        """
        options = ("-r", "--find-renames", "--no-ext-diff", "--no-textconv", "--patch", "--binary")
        patch = self.git("diff-tree", *options, "--full-index", before, after)
        try:
            patch.decode()
        except UnicodeDecodeError:
            attributes = self.path / "info" / "attributes"
            attributes.write_text(_AS_BYTES.replace("!diff", "-diff"))
            patch = self.git("diff-tree", *options, "--full-index", before, after)
            attributes.write_text(_AS_BYTES)
        return patch

    def content(self, tree: str, path: str) -> bytes:
        return self.git("cat-file", "blob", f"{tree}:{path}")

    def changed(self, before: str, after: str) -> dict[str, str]:
        """Paths that differ, each with git's letter: A added, D deleted, M and T modified."""
        out = self.git("diff-tree", "-r", "--no-renames", "--name-status", "-z", before, after)
        fields = [os.fsdecode(field) for field in out.split(b"\0")[:-1]]
        return dict(zip(fields[1::2], fields[::2], strict=True))

    def _run(self, *args: str, stdin: bytes) -> subprocess.CompletedProcess[bytes]:
        # The work tree is where it runs: in a subdirectory of it git would read paths otherwise.
        command = ["git", f"--git-dir={self.path}", f"--work-tree={self.tree}", *args]
        try:
            return subprocess.run(
                command, cwd=self.tree, input=stdin, env=GIT_ENV, capture_output=True, check=False
            )
        except FileNotFoundError:
            raise EnvironmentFault("git is not installed", place="git", mend="install git") from None


@contextmanager
def scratch(tree: Path, objects: Path | None = None) -> Iterator[Scratch]:
    """A repository over `tree`, which goes at the end; with `objects`, those of another are in it, too."""
    with tempfile.TemporaryDirectory(prefix="cab-git-") as name:
        path = Path(name)
        for directory in ("objects/info", "refs", "info"):
            (path / directory).mkdir(parents=True)
        (path / "HEAD").write_text("ref: refs/heads/none\n")
        (path / "config").write_text("[core]\nrepositoryformatversion = 0\nbare = false\n")
        (path / "info" / "attributes").write_text(_AS_BYTES)
        if objects is not None:
            (path / "objects" / "info" / "alternates").write_text(f"{objects.resolve()}\n")
        yield Scratch(path, tree)


@dataclass(frozen=True)
class Predictor:
    """Makes predictions of what agents changed: whole changes against the base commit, the earlier work that
    they began from among them.
    """

    scratch: Scratch
    base: str
    start: str

    def prediction(self, diff: bytes, without: Collection[str] = ()) -> bytes:
        """The change from the base commit to the starting tree with `diff` on it, less what that does to the
        paths in `without`. Raises NotApplied.
        """
        self.scratch.load(self.start)
        self.scratch.apply(diff, *(f"--exclude={_literal(path)}" for path in without))
        return self.scratch.difference(self.base, self.scratch.written())


@contextmanager
def predictor(tree: Path, prior: str) -> Iterator[Predictor]:
    """One for `tree`, in which the patch `prior` was applied to the base commit. Raises InputError where that
    is not so.
    """
    with scratch(tree) as repo:
        start = added(repo)
        try:
            repo.apply(prior.encode(), "--reverse")
        except NotApplied as error:
            raise InputError(f"prior_patch is not in it: {error}", place=str(tree)) from None
        yield Predictor(repo, repo.written(), start)


def added(repo: Scratch) -> str:
    """The whole work tree as a tree of git's."""
    repo.git("add", "--all", "--force", ".")
    return repo.written()


def lines_of(patch: bytes) -> int:
    """Added and removed lines of a patch; those of binary files are none."""
    count, left = 0, 0
    for line in patch.split(b"\n"):
        if line.startswith(b"@@ ") and left == 0:
            ranges = line.split(b" ")[1:3]
            left = sum(int(it.partition(b",")[2] or 1) for it in ranges)
        elif left:
            sign = line[:1]
            # A line of context stands in both ranges; `\` is a remark of git's, and in none.
            left -= 2 if sign == b" " else 0 if sign == b"\\" else 1
            count += sign in (b"+", b"-")
    return count


def _literal(path: str) -> str:
    """A pattern of `git apply` that is this path alone."""
    return "".join(f"\\{letter}" if letter in "*?[\\" else letter for letter in path)
