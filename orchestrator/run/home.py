"""HOME: as a CLI finds it, and as evidence, what a CLI left there, listed and kept, bounded in size."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

from orchestrator.run.hostile import read
from orchestrator.run.workdir import Manifest, give, scan, shown

MAX_FILE_BYTES = 1 << 20
MAX_TOTAL_BYTES = 8 << 20


def lay(home: Path, files: Mapping[str, str], owner: tuple[int, int]) -> None:
    """Make HOME as a CLI is to find it, with `files` in it."""
    home.mkdir(mode=0o700)
    for name, content in files.items():
        file = home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, "utf-8")
    give(home, owner)


def archive(home: Path, target: Path) -> Manifest:
    """Write the small files of `home` to the gzipped tar `target`; returns the listing of all of them.

    Files over 1 MiB, and whatever comes after 8 MiB in all, are in the listing only.
    """
    manifest = scan(home)
    budget = MAX_TOTAL_BYTES
    with tarfile.open(target, "w:gz", compresslevel=1, format=tarfile.PAX_FORMAT) as tar:
        for path, state in manifest.items():
            if state.kind != "file" or state.size > min(MAX_FILE_BYTES, budget):
                continue
            content = read(home / path, MAX_FILE_BYTES)
            if content is None:
                continue
            budget -= len(content)
            entry = tarfile.TarInfo(shown(path))
            entry.size = len(content)
            entry.mode = state.mode & 0o777
            tar.addfile(entry, io.BytesIO(content))
    return manifest
