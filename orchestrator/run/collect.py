"""Small readers of what a cell left, each bounded: documents, manifests."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import Any

from orchestrator.adapter import Adapter
from orchestrator.run.hostile import read
from orchestrator.run.workdir import Difference, Manifest, shown
from scorers.evidence import CliUsage

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


def cli_usage(adapter: Adapter, printed: str) -> dict[str, Any]:
    """What the CLI itself says of its tokens as `Evidence.cli_usage`, else why that is not known.

    An adapter's reader is given what an agent may have written, so whatever it raises is one more reason.
    """
    if adapter.reported_usage is None:
        return {"no_cli_usage": "the adapter reads no totals of the CLI's own"}
    try:
        found = adapter.reported_usage(printed)
        said = None if found is None else CliUsage(**asdict(found))
    except Exception as error:  # noqa: BLE001 - hostile text: a cell does not end by its cross-check
        return {"no_cli_usage": f"what the CLI printed could not be read: {type(error).__name__}"}
    return {"no_cli_usage": "the CLI did not print its totals"} if said is None else {"cli_usage": said}


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Write a listing as JSON, one path a line."""
    lines = (f"{json.dumps(shown(name))}: {state.model_dump_json()}" for name, state in manifest.items())
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
