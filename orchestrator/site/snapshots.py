"""Builds of the site that were put away under a name: `snapshots/<name>/` in the site's folder.

A snapshot is a whole site, complete before its directory has its name, and no build ever writes to it again:
it holds no manifest, without which a build refuses a folder that holds something. `SHA256SUMS` in it has a
line for each of its files, and that file's digest is the snapshot's.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from orchestrator.errors import InputError, StoreError
from orchestrator.store.files import store_errors

SNAPSHOTS = "snapshots"
SUMS = "SHA256SUMS"
FACTS = "snapshot.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class Facts:
    """What a snapshot was made of. `last` is when its last cell ended, UTC ISO 8601."""

    name: str
    cells: int
    last: str
    methodologies: tuple[str, ...]
    cab_version: str
    cab_commit: str | None
    data_digest: str


@dataclass(frozen=True)
class Snapshot(Facts):
    """A snapshot with the digest of its `SHA256SUMS`."""

    digest: str


def kept(out: Path) -> tuple[Snapshot, ...]:
    """The snapshots in a site's folder, by name. Raises StoreError where one is damaged."""
    return tuple(_read(path) for path in sorted((out / SNAPSHOTS).glob("[!.]*")) if path.is_dir())


def check_new(out: Path, name: str) -> None:
    """Raises InputError where `name` cannot name a snapshot, or names one already: none is ever replaced."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} cannot name a snapshot",
            place="--snapshot",
            mend="use letters, digits and . _ -, and begin with a letter or digit",
        )
    if (out / SNAPSHOTS / name).exists():
        raise InputError(
            "is a snapshot already, and none is ever replaced",
            place=str(out / SNAPSHOTS / name),
            mend="give another name",
        )


def take(out: Path, name: str, build: Callable[[Path], Facts], leave_out: str) -> None:
    """Put a build away as `snapshots/<name>` of the site in `out`.

    `build` makes a site in the folder that it is given; its file `leave_out` is not kept. A snapshot that was
    cut short is none, and the next one removes what is left of it. Raises InputError as `check_new`,
    StoreError for what the file system refuses.
    """
    check_new(out, name)
    above = out / SNAPSHOTS
    making = above / f".{name}.new"
    with store_errors(above):
        above.mkdir(parents=True, exist_ok=True)
        if making.exists():
            shutil.rmtree(making)
        facts = build(making)
        (making / leave_out).unlink()
        (making / FACTS).write_text(json.dumps(asdict(facts), indent=1) + "\n", "utf-8")
        (making / SUMS).write_text("".join(_sums(making)), "utf-8")
        making.rename(above / name)


def _sums(root: Path) -> Iterator[str]:
    """Lines of `sha256sum` for every file below `root`, by path."""
    for path in sorted(root.rglob("*")):
        if path.is_file():
            yield f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(root).as_posix()}\n"


def _read(root: Path) -> Snapshot:
    try:
        facts = json.loads((root / FACTS).read_bytes())
        facts["methodologies"] = tuple(facts["methodologies"])
        return Snapshot(**facts, digest=hashlib.sha256((root / SUMS).read_bytes()).hexdigest())
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise StoreError(
            f"is no whole snapshot: {error}",
            place=str(root),
            mend="restore it from where the site was published, or remove it",
        ) from None
