"""What a CLI sent of its main thread, on whichever wire."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from orchestrator.store.evidence import load_evidence


def main_requests(cell: Path) -> list[dict[str, Any]]:
    """The bodies of the requests of a cell's main thread, of which there is at least one."""
    with gzip.open(cell / "wire.jsonl.gz", "rt", encoding="utf-8") as lines:
        exchanges = [json.loads(line) for line in lines]
    wanted = {call.index for call in load_evidence(cell).calls if call.main}
    main: list[dict[str, Any]] = [it["request"] for it in exchanges if it["index"] in wanted]
    assert main
    return main


def words(body: dict[str, Any]) -> str:
    """All texts of a request, but for what its tools say of themselves."""
    return "\n".join(_strings({key: value for key, value in body.items() if key != "tools"}))


def tools(body: dict[str, Any]) -> list[str]:
    """The names of the tools on offer."""
    return list(_names(body.get("tools", ())))


def _strings(part: Any) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    elif isinstance(part, dict | list):
        for inner in part.values() if isinstance(part, dict) else part:
            yield from _strings(inner)


def _names(part: Any) -> Iterator[str]:
    """Of `function`s in chat, of `functionDeclarations` in Gemini's, of namespaces' tools in responses."""
    if isinstance(part, list):
        for inner in part:
            yield from _names(inner)
    elif isinstance(part, dict):
        if isinstance(part.get("name"), str):
            yield part["name"]
        for inner in ("function", "functionDeclarations", "tools"):
            yield from _names(part.get(inner))
