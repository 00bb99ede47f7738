"""Small readers of what a cell left, each bounded: documents, manifests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from orchestrator.run.hostile import read
from orchestrator.run.workdir import Manifest, shown
from scorers.evidence import FileChange

DOCUMENT_SUFFIXES = {"", ".md", ".markdown", ".txt", ".rst", ".adoc"}
MAX_DOCUMENT_BYTES = 64 << 10
MAX_DOCUMENTS = 20


def documents(workdir: Path, changes: Iterable[FileChange]) -> dict[str, str]:
    """Texts that the agent added or changed, by name: where it may have explained itself."""
    texts: dict[str, str] = {}
    for change in changes:
        suffix = PurePosixPath(change.path).suffix.lower()
        if change.origin != "agent" or suffix not in DOCUMENT_SUFFIXES or len(texts) == MAX_DOCUMENTS:
            continue
        if change.after is not None and change.after.kind == "file":
            content = read(workdir / change.path, MAX_DOCUMENT_BYTES) or b""
            texts[change.path] = content.decode("utf-8", "replace")
    return texts


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Write a listing as JSON, one path a line."""
    lines = (f"{json.dumps(shown(name))}: {state.model_dump_json()}" for name, state in manifest.items())
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
