"""Predictions: whatever an agent did, the patch applies to the base commit and gives the same tree."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.errors import InputError
from orchestrator.external.patches import lines_of, predictor
from orchestrator.run.workdir import Classifier, Template, compare, scan

CRLF = b"one\r\ntwo\r\nthree\r\n"
BASE = {
    "plain.py": b"a = 1\nb = 2\nc = 3\n",
    "crlf.txt": CRLF,
    "no_end.txt": b"first\nlast",
    "image.bin": bytes(range(256)),
    "long.py": b"".join(b"line_%d = %d\n" % (n, n) for n in range(40)),
    "run.sh": b"#!/bin/sh\necho hi\n",
    "latin.txt": "caf\xe9\n".encode("latin-1"),
    ".gitattributes": b"* text=auto eol=lf\n*.bin -diff\nplain.py export-ignore\n",
    ".gitignore": b"*.log\n",
    "kept.log": b"tracked, though ignored\n",
    "dir/with space/ü.txt": b"odd name\n",
}


def lay(root: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return root


def edit(root: Path) -> None:
    (root / "plain.py").write_bytes(b"a = 1\nb = 20\nc = 3\n")


def crlf(root: Path) -> None:
    (root / "crlf.txt").write_bytes(CRLF.replace(b"two", b"2"))


def no_end(root: Path) -> None:
    (root / "no_end.txt").write_bytes(b"first\nchanged")
    (root / "plain.py").write_bytes(b"a = 1\nb = 2\nc = 4")


def binary(root: Path) -> None:
    (root / "image.bin").write_bytes(bytes(reversed(range(256))))
    (root / "new.bin").write_bytes(b"\0\1\2" * 500)


def rename(root: Path) -> None:
    (root / "long.py").rename(root / "dir" / "moved.py")
    with (root / "dir" / "moved.py").open("ab") as file:
        file.write(b"more = 1\n")


def mode(root: Path) -> None:
    (root / "run.sh").chmod(0o755)


def link(root: Path) -> None:
    (root / "link").symlink_to("plain.py")


def removed(root: Path) -> None:
    (root / "dir" / "with space" / "ü.txt").unlink()


def latin(root: Path) -> None:
    (root / "latin.txt").write_bytes("caf\xe9s\n".encode("latin-1"))


def empty(root: Path) -> None:
    (root / "empty.py").write_bytes(b"")


def nothing(root: Path) -> None:
    del root


EDITS = [edit, crlf, no_end, binary, rename, mode, link, removed, latin, empty, nothing]


def states(root: Path) -> dict[str, tuple[str, bool, bytes]]:
    """Every file as git would keep it."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if name.split("/")[0] == ".git":
            continue
        if path.is_symlink():
            found[name] = ("link", False, os.fsencode(path.readlink()))
        elif path.is_file():
            found[name] = ("file", bool(path.stat().st_mode & 0o100), path.read_bytes())
    return found


def applied(base: Path, patch: bytes, into: Path) -> dict[str, tuple[str, bool, bytes]]:
    """The tree that plain `git apply` makes of a repository with `base` in it."""
    shutil.copytree(base, into, symlinks=True)
    env = {"PATH": os.defpath, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "init", "-q"], cwd=into, env=env, check=True)
    if patch:
        subprocess.run(["git", "apply", "-"], cwd=into, env=env, input=patch, check=True)
    return states(into)


def changed_by(root: Path, change: Callable[[Path], None], work: Path) -> tuple[bytes, Path]:
    """What a cell keeps of an agent that does `change`, and the tree that it left."""
    template = Template.make(root, work / "template")
    tree = work / "tree"
    shutil.copytree(template.path, tree, symlinks=True)
    change(tree)
    return compare(template, tree, scan(tree), Classifier(template.path)).patch, tree


@pytest.mark.parametrize("change", EDITS)
def test_a_prediction_gives_what_the_agent_left(tmp_path: Path, change: Callable[[Path], None]) -> None:
    base = lay(tmp_path / "base", BASE)
    diff, tree = changed_by(base, change, tmp_path)
    with predictor(base, "") as made:
        patch = made.prediction(diff)
    patch.decode("utf-8")
    assert applied(base, patch, tmp_path / "again") == states(tree)
    assert bool(patch) == (change is not nothing)


def test_the_work_that_the_agent_began_from_is_part_of_the_prediction(tmp_path: Path) -> None:
    base = lay(tmp_path / "base", BASE)
    prior, start = changed_by(base, edit, tmp_path / "first")
    shutil.rmtree(start / ".git")
    diff, tree = changed_by(start, mode, tmp_path / "second")
    with predictor(start, prior.decode()) as made:
        assert applied(base, made.prediction(diff), tmp_path / "again") == states(tree)
        assert applied(base, made.prediction(b""), tmp_path / "untouched") == states(start)


def test_undoing_earlier_work_leaves_nothing_to_predict(tmp_path: Path) -> None:
    base = lay(tmp_path / "base", BASE)
    prior, start = changed_by(base, edit, tmp_path / "first")
    shutil.rmtree(start / ".git")

    def undo(root: Path) -> None:
        (root / "plain.py").write_bytes(BASE["plain.py"])

    diff, _ = changed_by(start, undo, tmp_path / "second")
    with predictor(start, prior.decode()) as made:
        assert made.prediction(diff) == b""


def test_a_file_that_cab_laid_beside_is_left_out(tmp_path: Path) -> None:
    base = lay(tmp_path / "base", BASE)
    beside = lay(tmp_path / "beside", BASE | {"CLAUDE.md": b"rules\n"})

    def both(root: Path) -> None:
        edit(root)
        (root / "CLAUDE.md").write_bytes(b"rules\nmore\n")

    diff, _ = changed_by(beside, both, tmp_path / "work")
    with predictor(base, "") as made:
        patch = made.prediction(diff, {"CLAUDE.md"})
    assert b"plain.py" in patch
    assert b"CLAUDE.md" not in patch


def test_a_prior_patch_that_is_not_in_the_tree_is_told(tmp_path: Path) -> None:
    base = lay(tmp_path / "base", BASE)
    prior, _ = changed_by(base, edit, tmp_path / "first")
    with pytest.raises(InputError, match="prior_patch is not in it"), predictor(base, prior.decode()):
        pass


def test_lines_are_those_added_and_removed() -> None:
    patch = (
        b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n--- b\n+++ c\n d\n"
        b"diff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n"
    )
    assert lines_of(patch) == 4
    assert lines_of(b"") == 0
