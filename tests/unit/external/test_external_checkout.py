"""The files that an agent begins with: those of the base commit, and nothing of what came after."""

from __future__ import annotations

from pathlib import Path

import pytest
from external_samples import FILES, PRIOR, clone, task, tree

from orchestrator.errors import InputError
from orchestrator.external.checkout import base_tree


def contents(root: Path) -> dict[str, str]:
    return {it.relative_to(root).as_posix(): it.read_text() for it in sorted(root.rglob("*")) if it.is_file()}


def test_a_carried_tree_is_copied_as_it_is(tmp_path: Path) -> None:
    base_tree(task(tree(tmp_path / "repo")), tmp_path / "into", repos=None)
    assert contents(tmp_path / "into") == FILES


@pytest.mark.parametrize("folder", ["lab__calc", "lab/calc", "calc"])
def test_a_clone_gives_the_base_commit_without_history(tmp_path: Path, folder: str) -> None:
    files = FILES | {".gitattributes": "notes.txt export-ignore\n*.py eol=crlf ident\n", "id.py": "$Id$\n"}
    _, base = clone(tmp_path / "repos" / folder, files)
    base_tree(task(base_commit=base), tmp_path / "into", repos=tmp_path / "repos")
    assert contents(tmp_path / "into") == files


def test_earlier_work_is_applied(tmp_path: Path) -> None:
    _, base = clone(tmp_path / "repos" / "calc")
    expected = {"calc.py": FILES["calc.py"], "todo.txt": "mend mean\n"}
    interrupted = task(base_commit=base, prior_patch=PRIOR)
    base_tree(interrupted, tmp_path / "one", repos=tmp_path / "repos")
    base_tree(task(tree(tmp_path / "repo"), prior_patch=PRIOR), tmp_path / "two", repos=None)
    assert contents(tmp_path / "one") == contents(tmp_path / "two") == expected


def test_earlier_work_that_does_not_fit_is_told(tmp_path: Path) -> None:
    source = tree(tmp_path / "repo", FILES | {"notes.txt": "new\n"})
    with pytest.raises(InputError, match="prior_patch does not apply to the base commit"):
        base_tree(task(source, prior_patch=PRIOR), tmp_path / "into", repos=None)


def test_without_a_clone_it_says_which_to_make(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        base_tree(task(), tmp_path / "into", repos=tmp_path)
    assert caught.value.place == "lab__calc-1"
    assert f"git clone https://github.com/lab/calc {tmp_path / 'lab__calc'}" in caught.value.mend
    assert "--repos-dir" in caught.value.mend


def test_a_clone_without_the_commit_says_what_to_fetch(tmp_path: Path) -> None:
    clone(tmp_path / "calc")
    with pytest.raises(InputError, match="has no commit bbbb") as caught:
        base_tree(task(base_commit="b" * 40), tmp_path / "into", repos=tmp_path)
    assert "git fetch origin" in caught.value.mend
