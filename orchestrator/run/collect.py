"""Small readers of what a cell left, each bounded: documents, manifests."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath

from orchestrator.run.hostile import read
from orchestrator.run.workdir import Difference, Manifest, shown

DOCUMENT_SUFFIXES = {"", ".md", ".markdown", ".txt", ".rst", ".adoc"}
MAX_DOCUMENT_BYTES = 64 << 10
MAX_DOCUMENTS = 20


def documents(workdir: Path, difference: Difference) -> dict[str, str]:
    """Texts that the agent added or changed, by name: where it may have explained itself."""
    texts: dict[str, str] = {}
    for path, now in difference.own.items():
        is_document = PurePosixPath(path).suffix.lower() in DOCUMENT_SUFFIXES
        if is_document and now is not None and now.kind == "file" and len(texts) < MAX_DOCUMENTS:
            content = read(workdir / path, MAX_DOCUMENT_BYTES) or b""
            texts[shown(path)] = content.decode("utf-8", "replace")
    return texts


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Write a listing as JSON, one path a line."""
    lines = (f"{json.dumps(shown(name))}: {state.model_dump_json()}" for name, state in manifest.items())
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
