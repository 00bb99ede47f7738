"""The files of a task, and the digest by which a task is known wherever it lies."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from orchestrator.errors import InputError

PROOF_FILE = "proof.json"


def task_files(task: Path, *, links: bool = False) -> Iterator[Path]:
    """Every file of the task in directory `task`, in order of path; its proof and byte-code of a local run
    are none. Raises InputError at a symbolic link, unless `links` are among them.
    """
    for path in sorted(task.rglob("*")):
        relative = path.relative_to(task)
        if path.is_symlink() and not links:
            raise InputError("is a symbolic link", place=str(path), mend="a task holds plain files only")
        if "__pycache__" in relative.parts or relative == Path(PROOF_FILE):
            continue
        if path.is_file() or path.is_symlink():
            yield path


def content_hash(task: Path, *, links: bool = False) -> str:
    """`sha256:…` over path, executable bit and content of every file but the proof; of `links` it is the
    target.
    """
    digest = hashlib.sha256()
    for path in task_files(task, links=links):
        link = path.is_symlink()
        content = os.fsencode(path.readlink()) if link else path.read_bytes()
        kind = "l" if link else "x" if path.stat().st_mode & 0o100 else "-"
        digest.update(f"{path.relative_to(task).as_posix()}\0{kind}\0{len(content)}\0".encode())
        digest.update(content)
    return f"sha256:{digest.hexdigest()}"
