"""Small readers of what a cell left, each bounded: documents, log tails, manifests."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from orchestrator.run.workdir import Manifest, shown
from scorers.evidence import FileChange

DOCUMENT_SUFFIXES = {"", ".md", ".markdown", ".txt", ".rst", ".adoc"}
MAX_DOCUMENT_BYTES = 64 << 10
MAX_DOCUMENTS = 20
TAIL_BYTES = 8_000


def documents(workdir: Path, changes: Iterable[FileChange]) -> dict[str, str]:
    """Texts that the agent added or changed, by name: where it may have explained itself."""
    texts: dict[str, str] = {}
    for change in changes:
        suffix = PurePosixPath(change.path).suffix.lower()
        if change.origin != "agent" or suffix not in DOCUMENT_SUFFIXES or len(texts) == MAX_DOCUMENTS:
            continue
        if change.after is not None and change.after.kind == "file":
            texts[change.path] = _text(workdir / change.path)
    return texts


def _text(path: Path) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    with open(descriptor, "rb") as file:
        return file.read(MAX_DOCUMENT_BYTES).decode("utf-8", "replace")


def tail(path: Path) -> str:
    """The end of a log, as text; empty when there is none."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL_BYTES))
        return file.read().decode("utf-8", "replace")


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Write a listing as JSON, one path a line."""
    lines = (f"{json.dumps(shown(name))}: {state.model_dump_json()}" for name, state in manifest.items())
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
