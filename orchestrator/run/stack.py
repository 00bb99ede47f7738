"""What a stack changes of one cell: rules in its workdir, files of its MCP servers, what is said of them.

A CLI that reads a project's rules under another name than AGENTS.md gets the task's under that name, with a
stack or without.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.adapter import Adapter
from orchestrator.plan.plugin import PLUGINS_DIR, Plugin
from orchestrator.plan.stack import Applied, rules_of

if TYPE_CHECKING:
    from orchestrator.trace.spans import Value

AGENTS = "AGENTS.md"
"""The file in which a task states its rules."""


@dataclass(frozen=True)
class Rules:
    """The file in which a CLI reads rules, None of one that reads none, and what plugins add to it."""

    file: str | None
    added: str = ""

    @classmethod
    def of(cls, adapter: Adapter, plugins: Sequence[Plugin]) -> Rules:
        return cls(adapter.rules_file, rules_of(adapter, plugins))

    def files(self, workdir: Path) -> dict[str, bytes]:
        """What a task's workdir has besides, or in place of its own: path -> content."""
        if self.file is None:
            return {}
        common = _content(workdir / AGENTS) or b""
        texts = {AGENTS: common, self.file: _content(workdir / self.file) or common}
        added = {name: _appended(text, self.added.encode()) for name, text in texts.items()}
        return {name: text for name, text in added.items() if text and text != _content(workdir / name)}

    def read_from(self, workdir: Path) -> str | None:
        """The file of rules that the CLI finds, None where it finds none."""
        if self.file is None:
            return None
        return self.file if self.file in self.files(workdir) or (workdir / self.file).is_file() else None

    def text(self, workdir: Path) -> str:
        """What the CLI finds there; "" where it finds none."""
        if self.file is None:
            return ""
        found = self.files(workdir).get(self.file) or _content(workdir / self.file) or b""
        return found.decode("utf-8", "replace")


def lay_plugins(run_dir: Path, plugins: Sequence[Plugin]) -> None:
    """Write the files of MCP servers below the directory that the container sees as /run/cab."""
    for plugin in plugins:
        if plugin.kind != "mcp":
            continue
        root = run_dir / Path(PLUGINS_DIR).name / plugin.name
        for name, file in plugin.files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.content)
            path.chmod(0o555 if file.executable else 0o444)


def offered(plugins: Sequence[Plugin], requests: Iterable[object]) -> frozenset[str]:
    """Which of these plugins are MCP servers of which some request to the model names a tool.

    A server's tools have its name before theirs (`facts_lookup`, `facts-lookup`, `mcp__facts__lookup`), among
    the tools on offer or, where a CLI has its model look tools up, in the text. One that does not start has
    none.
    """
    servers = {plugin.name: _tool_of(plugin.name) for plugin in plugins if plugin.kind == "mcp"}
    found: set[str] = set()
    for request in requests if servers else ():
        text = json.dumps(request)
        found |= {name for name, tool in servers.items() if tool.search(text)}
    return frozenset(found)


def _tool_of(server: str) -> re.Pattern[str]:
    name = re.escape(server).replace(r"\-", "[-_]")
    return re.compile(rf"(?<![A-Za-z0-9]){name}(?:__?|-)[A-Za-z0-9]")


def said_of(cli: str, applied: Applied, count: int) -> Mapping[str, Value]:
    """Attributes of the span `applied_plugins`: the published ones, and the reasons of what was skipped."""
    return {
        "tui": cli,
        "count": count,
        "applied": [plugin.name for plugin in applied.plugins],
        "skipped": [f"{name}: {reason}" for name, reason in applied.skipped],
        "env_keys": list(applied.env_keys),
        "extra_args": list(applied.extra_args),
        "applied_count": len(applied.plugins),
        "skipped_count": len(applied.skipped),
    }


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _appended(text: bytes, added: bytes) -> bytes:
    return b"\n".join(part for part in (text, added) if part)
