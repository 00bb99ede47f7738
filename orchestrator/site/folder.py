"""The folder of a site: its files, and the manifest that tells of each what decided its bytes."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from orchestrator.errors import InputError, StoreError
from orchestrator.store.files import write_all

MANIFEST = ".cab-site.json"
SEEN = ".cab-site.seen"
"""What the last build looked at on this machine: no part of the site, which is the same on any."""
_VERSION = 2
_NEW = ".new"
"""The end of the name of a file that is being written."""


class Made(NamedTuple):
    """A file of the site in the manifest: the digest of what decides its bytes, and their number."""

    inputs: str
    size: int


UNFINISHED = Made("", 0)
"""A file that is there or will be, and is not to be taken for finished."""


def read_manifest(out: Path) -> dict[str, Made]:
    """What an earlier build left in the folder; nothing where there was none, or one of another form."""
    path = out / MANIFEST
    if not path.is_file():
        # A first build that was killed may have left the beginning of its manifest, and no more.
        if out.is_dir() and any(it.name != f"{MANIFEST}{_NEW}" for it in out.iterdir()):
            raise InputError(
                "holds something, and no site of cab's",
                place=str(out),
                mend="give an empty or a new folder with -o",
            )
        return {}
    try:
        stored = json.loads(path.read_bytes())
        # Of another form, every file is made again, and known to be one that may be removed.
        known = stored["v"] == _VERSION
        return {
            name: Made(*made) if known else UNFINISHED
            for name, made in stored["files"].items()
            if is_relative(name)
        }
    except (ValueError, TypeError, KeyError, AttributeError):
        raise StoreError(
            "is damaged", place=str(path), mend="remove the folder, and build the site again"
        ) from None


def write_manifest(out: Path, files: Mapping[str, Made]) -> None:
    whole = {"v": _VERSION, "files": {path: files[path] for path in sorted(files)}}
    write(out, MANIFEST, json.dumps(whole, separators=(",", ":")).encode() + b"\n")


def is_left_by(out: Path, looked: str) -> bool:
    """Whether the last build in the folder had seen this (`seen.py`), and came to its end."""
    try:
        return (out / SEEN).read_bytes() == _left(out, looked)
    except FileNotFoundError:
        return False


def leave(out: Path, looked: str) -> None:
    """Note what the build had seen whose manifest is there now."""
    if not is_left_by(out, looked):
        write(out, SEEN, _left(out, looked))


def _left(out: Path, looked: str) -> bytes:
    """With the manifest's own digest: whoever makes it another has seen something else."""
    whole = hashlib.sha256(looked.encode() + (out / MANIFEST).read_bytes())
    return whole.hexdigest().encode() + b"\n"


def is_there(out: Path, path: str, made: Made) -> bool:
    """Whether a file of an earlier build is still as that left it, as far as its size tells."""
    try:
        return os.stat(f"{out}/{path}").st_size == made.size
    except OSError:
        return False


def write(out: Path, path: str, raw: bytes) -> None:
    """Write a file, whole as seen by whoever is served meanwhile."""
    # Plain calls of the system: a site has tens of thousands of files, and pathlib takes as long as these.
    target = f"{out}/{path}"
    temporary = f"{target}{_NEW}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    try:
        file = os.open(temporary, flags, 0o666)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        file = os.open(temporary, flags, 0o666)
    try:
        write_all(file, raw)
    finally:
        os.close(file)
    os.replace(temporary, target)


def remove(out: Path, path: str) -> None:
    """Remove a file, and the folders that are then empty."""
    target = out / path
    for one in (target, target.with_name(f"{target.name}{_NEW}")):
        one.unlink(missing_ok=True)
    for folder in target.relative_to(out).parents:
        if folder == Path():
            break
        try:
            (out / folder).rmdir()
        except OSError:
            break  # holds more, or is gone


def is_relative(path: str) -> bool:
    """Whether a path lies below the site's root, however it is read."""
    return "\\" not in path and not {"", ".", ".."} & set(path.split("/"))
